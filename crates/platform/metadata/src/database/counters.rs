//! Numbers that are never given twice.

use forebay_types::Result;
use sqlx::{AnyConnection, Row};

use super::Database;

/// The numbers of table `counters`.
#[derive(Clone, Copy)]
pub(crate) enum Counter {
    Epoch,
    MountId,
}

impl Database {
    /// The next value of a counter; never given twice, as long as the transaction commits.
    pub(crate) async fn next(&self, counter: Counter, connection: &mut AnyConnection) -> Result<u64> {
        let name = match counter {
            Counter::Epoch => "epoch",
            Counter::MountId => "mount_id",
        };
        let row = sqlx::query("UPDATE counters SET value = value + 1 WHERE name = $1 RETURNING value")
            .bind(name)
            .fetch_one(connection)
            .await
            .map_err(|error| self.fault(error))?;
        let value: i64 = row.try_get(0).map_err(|error| self.fault(error))?;
        Ok(u64::try_from(value).expect("counters start at 0 and only grow"))
    }
}
