//! Who leads, in which epoch.

use std::future::pending;
use std::sync::atomic::Ordering;

use forebay_types::Result;
use tracing::info;

use super::Database;
use super::counters::Counter;
use crate::leadership::Leadership;

/// When epochs began to count, in seconds since 1970: so they have 31 bits for long.
const EPOCHS_SINCE: u64 = 1_577_836_800;
/// What a clock says at most, however far ahead it is: an epoch that is in the database stays there, and versions, of which the last are
/// kept as numbers with a sign, have it above 32 bits of their own.
const SECONDS_MAX: u64 = (1 << 31) - (1 << 20);

impl Database {
    pub(crate) async fn acquire_epoch(&self) -> Result<u64> {
        let mut leadership = self.inner.leadership.lock().await;
        if leadership.is_none() {
            *leadership = Some(Leadership::acquire(&self.inner.location).await?);
        }
        let mut transaction = self.inner.pool.begin().await.map_err(|error| self.fault(error))?;
        // A database that was restored, or lost and made anew, does not know of all epochs that there were, and whoever has seen a
        // later one would not listen: seconds go on where it has stopped.
        let floor = seconds(forebay_runtime::time::unix_ms());
        let epoch = self.next(Counter::Epoch, floor, &mut transaction).await?;
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

/// The least epoch of a leader that begins at a time.
fn seconds(unix_ms: u64) -> u64 {
    (unix_ms / 1000).saturating_sub(EPOCHS_SINCE).min(SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_have_their_bits_whatever_a_clock_says() {
        let since_ms = EPOCHS_SINCE * 1000;
        assert_eq!([0, since_ms, since_ms + 220_000_000_999].map(seconds), [0, 0, 220_000_000]);
        assert!(i64::try_from((seconds(u64::MAX) + 1_000_000) << 32).is_ok(), "with a million leaders after it");
    }
}
