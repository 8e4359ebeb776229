//! Everything to disk, and durable there: for a worker that stops and is to come back warm.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::core::{Core, Disk};
use crate::media::Direction;

/// A flush gives a disk that hangs up after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes all that is in DRAM only to the disk tier, and synchronises it. What the disk does not take is left.
pub(crate) async fn flush(core: &Arc<Core>) {
    if core.disks.is_empty() {
        return;
    }
    let all = async {
        let mut before = u64::MAX;
        loop {
            let left = core.offer_all();
            for disk in working(core) {
                disk.pool.done().await;
            }
            if left == 0 || left >= before || !core.disks.iter().any(|disk| disk.health.is_on(Direction::Write)) {
                break;
            }
            before = left;
        }
        let synced = working(core).map(|disk| {
            let ((done, synced), no) = (oneshot::channel(), disk.no);
            disk.pool.task(move |core| {
                core.write_index(core.disk(no));
                sync(core, core.disk(no));
                // The flush may have been given up.
                let _ = done.send(());
            });
            synced
        });
        for synced in synced.collect::<Vec<_>>() {
            // An error means that the store is being dropped.
            let _ = synced.await;
        }
    };
    if forebay_runtime::time::timeout(PATIENCE, all).await.is_err() {
        tracing::warn!(secs = PATIENCE.as_secs(), "disk tier: a flush was given up");
    }
}

/// The disks that are waited for: one that fails beside others is not.
fn working(core: &Core) -> impl Iterator<Item = &Disk> {
    let is_alone = core.disks.len() == 1;
    core.disks.iter().filter(move |disk| is_alone || disk.takes())
}

/// What has been written to a disk is there for good.
fn sync(core: &Core, disk: &Disk) {
    let synced = disk.file.sync().and_then(|()| disk.sums.sync()).and_then(|()| disk.index.sync());
    if let Err(error) = synced {
        core.disk_failed(disk, Direction::Write, false, error);
    }
}
