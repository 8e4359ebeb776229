//! How soon a worker says that its shares of bounds fit no more: all workers together so often as a coordinator hears well.

use std::time::{Duration, Instant};

use crate::rooms::Rooms;

/// How often a worker looks whether its shares still fit, while anything is read or waits for that.
const LOOK: Duration = Duration::from_millis(50);
/// Heartbeats a second at most that come early for it, of all workers of a cluster.
const EARLY_A_SECOND: u32 = 400;

/// Waits until the worker's shares of bounds fit worse or better than the coordinator knows, which was told at `told`. What changes sooner
/// after that than it may be said again is said together.
pub(super) async fn need_changed(rooms: &Rooms, told: Instant) {
    let mounts = &rooms.origin.mounts;
    loop {
        // What is at rest, as the coordinator knows it, stays so until something is read.
        if mounts.is_still() && !mounts.need_changed() {
            mounts.begins().await;
        }
        forebay_runtime::time::sleep(LOOK).await;
        let since = forebay_runtime::now().saturating_duration_since(told);
        if since >= gap(rooms.cluster.view().workers.len()) && mounts.need_changed() {
            return;
        }
    }
}

/// The shortest time from what one of so many workers has told to what it tells early.
fn gap(workers: usize) -> Duration {
    let workers = u32::try_from(workers).unwrap_or(u32::MAX);
    LOOK.max(Duration::from_secs(1).saturating_mul(workers) / EARLY_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_hears_of_needs_so_often_however_many_workers_there_are() {
        assert_eq!([1, 20].map(gap), [LOOK, LOOK], "few say it as soon as they see it");
        assert_eq!(gap(200), Duration::from_millis(500));
        for workers in [1, 7, 20, 21, 200, 1_000, 10_000, 1_000_000] {
            let a_second = workers as f64 / gap(workers).as_secs_f64();
            assert!(a_second <= f64::from(EARLY_A_SECOND) + 1e-3, "{workers} workers: {a_second} a second");
        }
        assert!(gap(usize::MAX) > gap(1_000_000));
    }
}
