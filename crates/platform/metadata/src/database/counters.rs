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

const NEXT: &str = "UPDATE counters SET value = CASE WHEN value + 1 < $1 THEN $1 ELSE value + 1 END WHERE name = $2 \
                    RETURNING value";

impl Database {
    /// The next value of a counter, or `floor` where that is more; never given twice, as long as the transaction commits.
    pub(crate) async fn next(&self, counter: Counter, floor: u64, connection: &mut AnyConnection) -> Result<u64> {
        let name = match counter {
            Counter::Epoch => "epoch",
            Counter::MountId => "mount_id",
        };
        let row = sqlx::query(NEXT)
            .bind(i64::try_from(floor).unwrap_or_default())
            .bind(name)
            .fetch_one(connection)
            .await
            .map_err(|error| self.fault(error))?;
        let value: i64 = row.try_get(0).map_err(|error| self.fault(error))?;
        Ok(u64::try_from(value).expect("counters start at 0 and only grow"))
    }
}
