//! Everything to disk, and durable there: for a worker that stops and is to come back warm.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::core::Core;
use crate::media::Direction;

/// A flush gives a disk that hangs up after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes all that is in DRAM only to the disk tier, and synchronises it. What the disk does not take is left.
pub(crate) async fn flush(core: &Arc<Core>) {
    let Some(disk) = &core.disk else { return };
    let all = async {
        let mut before = u64::MAX;
        loop {
            let left = core.offer_all();
            disk.pool.done().await;
            if left == 0 || left >= before || !disk.health.is_on(Direction::Write) {
                break;
            }
            before = left;
        }
        let (done, synced) = oneshot::channel();
        disk.pool.task(move |core| {
            core.write_index();
            core.sync();
            // The flush may have been given up.
            let _ = done.send(());
        });
        // An error means that the store is being dropped.
        let _ = synced.await;
    };
    if forebay_runtime::time::timeout(PATIENCE, all).await.is_err() {
        tracing::warn!(secs = PATIENCE.as_secs(), "disk tier: a flush was given up");
    }
}

impl Core {
    /// Writes the index's pending records, or all of it when it is stale.
    pub fn write_index(&self) {
        let disk = self.disk();
        if !disk.index.has_work() || !disk.health.is_on(Direction::Write) {
            return;
        }
        let live = disk.tier.account.blocks() * 2;
        if let Err(error) = disk.index.write_out(live, || self.snapshot()) {
            disk.health.failed(Direction::Write, true, format_args!("the index was not written: {error}"));
        }
    }

    fn sync(&self) {
        let disk = self.disk();
        let synced = disk.file.sync().and_then(|()| disk.sums.sync()).and_then(|()| disk.index.sync());
        if let Err(error) = synced {
            disk.health.failed(Direction::Write, false, error);
        }
    }
}
