//! Until when this worker is certain that nobody takes it for lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_runtime::{Defect, planted};
use tokio::sync::Notify;

/// Of a lease, the part that this worker does not count on: its clock may go slower than the coordinator's.
const MARGIN: u32 = 20;

/// So much of a lease is counted on.
pub(super) fn counted(lasts: Duration) -> Duration {
    lasts - lasts / MARGIN
}

/// The coordinator's word that this worker counts as live, by this process's own clock: shorter than the coordinator's, which counts from
/// when it heard, not from when this worker spoke. A process that was stopped finds out when it looks.
pub(crate) struct Lease {
    began: Instant,
    /// Nanoseconds after `began`.
    until: AtomicU64,
    renewed: Notify,
}

impl Default for Lease {
    fn default() -> Self {
        Self { began: forebay_runtime::now(), until: AtomicU64::new(0), renewed: Notify::new() }
    }
}

impl Lease {
    /// Whether nobody takes this worker for lost, now.
    pub(crate) fn holds(&self) -> bool {
        let lapses = !planted(Defect::LeaseLapsed) || self.until.load(Ordering::Acquire) == 0;
        self.holds_at(forebay_runtime::now()) || !lapses
    }

    fn holds_at(&self, now: Instant) -> bool {
        self.since_began(now) < self.until.load(Ordering::Acquire)
    }

    /// A heartbeat that was sent at `sent` has been answered.
    pub(crate) fn renew(&self, sent: Instant, lasts: Duration) {
        self.until.store(self.since_began(sent + counted(lasts)), Ordering::Release);
        self.renewed.notify_waiters();
    }

    /// The coordinator does not know this worker.
    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// Waits until it holds, for so long at most; whether it does.
    pub(crate) async fn held(&self, within: Duration) -> bool {
        if self.holds() {
            return true;
        }
        let held = async {
            loop {
                let renewed = self.renewed.notified();
                if self.holds() {
                    return;
                }
                renewed.await;
            }
        };
        // In a place of its own, which calls that need not wait have none of.
        Box::pin(forebay_runtime::time::timeout(within, held)).await.is_ok()
    }

    fn since_began(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_before_the_coordinator_s() {
        let (lease, now) = (Lease::default(), forebay_runtime::now());
        let after = |millis| now + Duration::from_millis(millis);
        assert!(!lease.holds_at(now), "it has none");
        lease.renew(now, Duration::from_secs(5));
        assert_eq!((lease.holds_at(after(4749)), lease.holds_at(after(4750))), (true, false));
        // The answer to a heartbeat that was sent before the process was stopped.
        lease.renew(now, Duration::from_secs(5));
        assert!(!lease.holds_at(after(20_000)));
        lease.end();
        assert!(!lease.holds_at(now));
    }

    #[tokio::test]
    async fn who_waits_for_it_goes_on_when_it_is_renewed() {
        let lease = Lease::default();
        assert!(!lease.held(Duration::from_millis(1)).await);
        let renew = async {
            tokio::task::yield_now().await;
            lease.renew(forebay_runtime::now(), Duration::from_secs(5));
        };
        let (held, ()) = tokio::join!(lease.held(Duration::from_secs(20)), renew);
        assert!(held);
    }
}
