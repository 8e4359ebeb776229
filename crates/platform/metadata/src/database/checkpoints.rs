//! What is saved of soft state, so that a new leader begins with it.

use forebay_types::{Error, Result};
use sqlx::Row;

use super::Database;

pub(crate) const CHECKPOINT_BYTES_MAX: usize = 64 << 20;

impl Database {
    pub(crate) async fn put_checkpoint(&self, kind: &str, window: u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() > CHECKPOINT_BYTES_MAX {
            return Err(Error::invalid(format!(
                "checkpoint {kind} of {} bytes is larger than {CHECKPOINT_BYTES_MAX} bytes",
                bytes.len()
            )));
        }
        let mut transaction = self.write().await?;
        let checkpoint = sqlx::query(
            "INSERT INTO checkpoints (kind, window_ix, bytes) VALUES ($1, $2, $3) \
             ON CONFLICT (kind) DO UPDATE SET window_ix = excluded.window_ix, bytes = excluded.bytes",
        )
        .bind(kind)
        .bind(i64::try_from(window).map_err(|_| Error::invalid(format!("window {window} is too large")))?)
        .bind(bytes);
        self.run(checkpoint, &mut transaction).await?;
        self.commit(transaction).await
    }

    pub(crate) async fn checkpoint(&self, kind: &str) -> Result<Option<(u64, Vec<u8>)>> {
        let row = sqlx::query("SELECT window_ix, bytes FROM checkpoints WHERE kind = $1")
            .bind(kind)
            .fetch_optional(&self.inner.pool)
            .await
            .map_err(|error| self.fault(error))?;
        let Some(row) = row else { return Ok(None) };
        let window: i64 = row.try_get(0).map_err(|error| self.fault(error))?;
        Ok(Some((window as u64, row.try_get(1).map_err(|error| self.fault(error))?)))
    }
}
