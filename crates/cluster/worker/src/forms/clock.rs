//! Time that a thread spends on reading and on making.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time that the thread has worked: what others take of its core meanwhile does not count, where the system tells.
pub(super) struct Clock {
    worked: Option<Duration>,
    began: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { worked: worked(), began: forebay_runtime::now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        if let (Some(before), Some(now)) = (self.worked, worked()) { now.saturating_sub(before) } else { self.began.elapsed() }
    }
}

/// Of the calling thread, on Linux.
fn worked() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// How long it takes to read bytes as they lie in the tier.
pub(super) fn read_time(bytes: &[u8]) -> (usize, Duration) {
    let clock = Clock::start();
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    black_box(words.fold(0u64, u64::wrapping_add));
    (bytes.len(), clock.elapsed())
}
