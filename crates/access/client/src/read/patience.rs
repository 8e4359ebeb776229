//! How long a worker may take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a worker may take for a read: the base, and what all bytes that this client waits for would take on a slow
/// link. A cold read waits for its share of the bandwidth behind others; to give up on a worker that does its best
/// would fetch everything a second time elsewhere. A worker that was killed is seen by its closed connection.
pub(crate) struct Patience {
    base: Duration,
    waiting_bytes: AtomicU64,
}

/// What is presumed of a link whose bound is not known, and the part of a bound that one client may count on.
const SLOW_BYTES_PER_SEC: u64 = 1 << 20;
const PART_OF_BOUND: u64 = 4;

/// A read that is waited for.
pub(crate) struct Waiting<'a> {
    patience: &'a Patience,
    bytes: u64,
    bytes_per_sec: u64,
}

impl Patience {
    pub(crate) fn new(base: Duration) -> Self {
        Self { base, waiting_bytes: AtomicU64::new(0) }
    }

    /// Begins to wait for a read from a mount with that bound.
    pub(crate) fn wait(&self, bytes: u64, bound_bytes_per_sec: Option<u64>) -> Waiting<'_> {
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let part = bound_bytes_per_sec.map_or(u64::MAX, |bound| (bound / PART_OF_BOUND).max(1));
        Waiting { patience: self, bytes, bytes_per_sec: part.min(SLOW_BYTES_PER_SEC) }
    }
}

impl Waiting<'_> {
    /// The deadline of an attempt that begins now.
    pub(crate) fn deadline(&self) -> Duration {
        let secs = self.patience.waiting_bytes.load(Ordering::Relaxed) / self.bytes_per_sec;
        self.patience.base + Duration::from_secs(secs)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waiting = self.patience.waiting_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        debug_assert!(waiting >= self.bytes, "{} bytes are waited for no more, of {waiting}", self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_what_is_waited_for() {
        let patience = Patience::new(Duration::from_secs(30));
        let first = patience.wait(4096, None);
        assert_eq!(first.deadline().as_secs(), 30);
        let second = patience.wait(64 << 20, None);
        assert_eq!((first.deadline().as_secs(), second.deadline().as_secs()), (94, 94));
        // 10 Mbit/s, a quarter of it for this client.
        let slow = patience.wait(0, Some(1_250_000));
        assert_eq!(slow.deadline().as_secs(), 30 + ((64 << 20) + 4096) / 312_500);
        drop(second);
        assert_eq!(first.deadline().as_secs(), 30);
    }
}
