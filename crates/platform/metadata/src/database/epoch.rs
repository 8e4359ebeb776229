//! Who leads, in which epoch.

use std::future::pending;
use std::sync::atomic::Ordering;

use forebay_types::Result;
use tracing::info;

use super::Database;
use super::counters::Counter;
use crate::leadership::Leadership;

impl Database {
    pub(crate) async fn acquire_epoch(&self) -> Result<u64> {
        let mut leadership = self.inner.leadership.lock().await;
        if leadership.is_none() {
            *leadership = Some(Leadership::acquire(&self.inner.location).await?);
        }
        let mut transaction = self.inner.pool.begin().await.map_err(|error| self.fault(error))?;
        let epoch = self.next(Counter::Epoch, &mut transaction).await?;
        self.commit(transaction).await?;
        self.inner.epoch.store(epoch, Ordering::Release);
        info!(epoch, database = self.shown(), "leadership acquired");
        Ok(epoch)
    }

    pub(crate) async fn leadership_lost(&self) {
        let lost = self.inner.leadership.lock().await.as_ref().and_then(Leadership::lost);
        match lost {
            // An error means that the task is gone, and the connection with it.
            Some(mut lost) => drop(lost.wait_for(|lost| *lost).await),
            None => pending().await,
        }
    }
}
