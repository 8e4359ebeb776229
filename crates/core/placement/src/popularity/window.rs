//! The windows in which accesses are counted.

/// Numbers the counting windows: all who know the period and the time agree, over restarts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    period_ms: u64,
}

impl Windows {
    /// Windows of `period_ms` milliseconds, at least 1, counted from the start of 1970.
    pub fn new(period_ms: u64) -> Self {
        Self { period_ms: period_ms.max(1) }
    }

    /// The window that `time_ms` is in.
    pub fn of(self, time_ms: u64) -> u64 {
        time_ms / self.period_ms
    }
}
