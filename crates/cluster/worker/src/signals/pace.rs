//! A bound on what a worker sends.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forebay_runtime::time::{Instant, sleep_until};
use parking_lot::Mutex;

/// Holds what a worker sends to a number of bytes a second, in the order in which answers are ready. Without a limit it
/// costs nothing.
pub(crate) struct Pace {
    /// 0 for no limit.
    bytes_per_sec: AtomicU64,
    /// When everything that was let through so far is sent.
    free_at: Mutex<Instant>,
}

/// What may be sent at once after a pause, as time: enough for a timer that wakes late.
const BURST: Duration = Duration::from_millis(5);

impl Pace {
    pub(crate) fn new(bytes_per_sec: Option<u64>) -> Self {
        let pace = Self { bytes_per_sec: AtomicU64::new(0), free_at: Mutex::new(forebay_runtime::time::instant()) };
        pace.set(bytes_per_sec);
        pace
    }

    /// Another limit, or none, for what is not let through yet.
    pub(crate) fn set(&self, bytes_per_sec: Option<u64>) {
        self.bytes_per_sec.store(bytes_per_sec.map_or(0, |rate| rate.max(1)), Relaxed);
    }

    /// Waits until `bytes` more may have been sent.
    pub(crate) async fn send(&self, bytes: u64) {
        let rate = self.bytes_per_sec.load(Relaxed);
        if rate == 0 || bytes == 0 {
            return;
        }
        let until = {
            let mut free_at = self.free_at.lock();
            let before = *free_at;
            let start = (*free_at).max(forebay_runtime::time::instant() - BURST);
            *free_at = start + Duration::from_secs_f64(bytes as f64 / rate as f64);
            assert!(*free_at >= before, "what is let through later is sent later");
            *free_at
        };
        sleep_until(until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_leave_at_the_rate() {
        let pace = Pace::new(Some(10_000_000));
        let began = forebay_runtime::time::instant();
        futures::future::join_all((0..20).map(|_| pace.send(100_000))).await;
        let took = began.elapsed().as_secs_f64();
        assert!((0.19..0.4).contains(&took), "2 MB at 10 MB/s took {took} s");
        pace.set(Some(1_000_000));
        let began = forebay_runtime::time::instant();
        pace.send(100_000).await;
        assert!(began.elapsed() >= Duration::from_millis(90), "a tenth of that rate from now on");
        pace.set(None);
        pace.send(u64::MAX).await;
        Pace::new(None).send(u64::MAX).await;
    }
}
