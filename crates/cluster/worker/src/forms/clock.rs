use std::fs;
use std::time::{Duration, Instant};

/// Time that the thread has worked: what others take of its core meanwhile does not count, where the system tells.
pub(super) struct Clock {
    worked: Option<Duration>,
    began: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { worked: worked(), began: Instant::now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        match (self.worked, worked()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.began.elapsed(),
        }
    }
}

/// Of the calling thread, on Linux.
fn worked() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
