//! Which blocks of freed temporary data still have their memory, in the order of their last use.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Whole blocks of the DRAM tier that belonged to temporary data and are still backed by memory, for the next ones: fresh memory
/// costs about as much as what is written to it. They count as used, and go before anything is evicted.
#[derive(Default)]
pub(crate) struct Spares {
    /// First pages, with the time since when; the one used last is at the end.
    blocks: VecDeque<(Instant, u64)>,
}

impl Spares {
    pub fn put(&mut self, start: u64) {
        self.blocks.push_back((forebay_runtime::now(), start));
    }

    /// The one used last.
    pub fn take(&mut self) -> Option<u64> {
        Some(self.blocks.pop_back()?.1)
    }

    /// The one kept longest, if nobody has used it for `idle`.
    pub fn take_idle(&mut self, idle: Duration) -> Option<u64> {
        let is_idle = self.blocks.front().is_some_and(|(since, _)| since.elapsed() >= idle);
        if is_idle { Some(self.blocks.pop_front()?.1) } else { None }
    }
}
