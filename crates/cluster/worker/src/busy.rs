use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Measures how fast a worker sends what it holds: the bytes of reads that found everything here, and the time in which at
/// least one of them was under way. Reads that wait for shared storage say nothing about the worker.
#[derive(Default)]
pub(crate) struct Busy(Mutex<Measured>);

#[derive(Default)]
struct Measured {
    until: Option<Instant>,
    busy: Duration,
    bytes: u64,
}

impl Busy {
    /// A read that began then has been answered now.
    pub(crate) fn answered(&self, began: Instant, bytes: u64) {
        let now = Instant::now();
        let mut measured = self.0.lock();
        let from = measured.until.map_or(began, |until| until.max(began));
        measured.busy += now.saturating_duration_since(from);
        measured.until = Some(now);
        measured.bytes += bytes;
    }

    /// Time and bytes since the last time that this was asked.
    pub(crate) fn take(&self) -> (Duration, u64) {
        let mut measured = self.0.lock();
        let taken = (measured.busy, measured.bytes);
        (measured.busy, measured.bytes) = (Duration::ZERO, 0);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_reads_count_once() {
        let busy = Busy::default();
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        busy.answered(began, 5);
        busy.answered(began, 6);
        let (time, bytes) = busy.take();
        assert_eq!(bytes, 11);
        assert!(time >= Duration::from_millis(20) && time <= began.elapsed(), "{time:?}");
        assert_eq!(busy.take(), (Duration::ZERO, 0));
    }
}
