//! One rate for all connections together, who take turns piece by piece as on a real link.

use std::time::Duration;

use forebay_runtime::time::{Instant, instant};
use parking_lot::Mutex;

/// Time that may be caught up after the scheduler was late, so that the mean rate is the set one.
const SLACK: Duration = Duration::from_millis(20);

/// One direction of a link that all connections share: pieces take their place on it one after the other.
#[derive(Debug)]
pub(crate) struct Pacer(Mutex<State>);

#[derive(Debug)]
struct State {
    bytes_per_sec: Option<u64>,
    free_at: Instant,
}

impl Pacer {
    pub(crate) fn new(bytes_per_sec: Option<u64>) -> Self {
        Self(Mutex::new(State { bytes_per_sec, free_at: instant() }))
    }

    pub(crate) fn set(&self, bytes_per_sec: Option<u64>) {
        let mut state = self.0.lock();
        state.bytes_per_sec = bytes_per_sec;
        state.free_at = instant();
    }

    /// The most that should go over the link in one piece: about 2.5 ms of it, so that connections take turns smoothly.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.0.lock().bytes_per_sec.map_or(usize::MAX, |rate| (rate / 400).clamp(16 << 10, 256 << 10) as usize)
    }

    /// Takes the next place on the link; when the piece will have passed, unless that is now.
    pub(crate) fn take(&self, bytes: usize) -> Option<Instant> {
        let mut state = self.0.lock();
        let rate = state.bytes_per_sec?;
        let now = instant();
        let start = state.free_at.max(now.checked_sub(SLACK).unwrap_or(now));
        state.free_at = start + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        (state.free_at > now).then_some(state.free_at)
    }
}
