//! How many accesses of a segment are in flight, for the one policy that replicates by that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::workload::Micros;

/// Accesses in flight of each segment: what Scarlett replicates by.
#[derive(Debug)]
pub(crate) struct InFlight {
    ends: Vec<BinaryHeap<Reverse<Micros>>>,
    peak: Vec<usize>,
    time: Vec<u64>,
}

/// The most and the mean of a segment's accesses in flight in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Concurrent {
    pub(crate) peak: f64,
    pub(crate) mean: f64,
}

impl InFlight {
    pub(crate) fn new(segments: usize) -> Self {
        Self { ends: vec![BinaryHeap::new(); segments], peak: vec![0; segments], time: vec![0; segments] }
    }

    pub(crate) fn add(&mut self, segment: u32, now: Micros, done: Micros) {
        let at = segment as usize;
        let ends = &mut self.ends[at];
        while ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            ends.pop();
        }
        ends.push(Reverse(done));
        self.peak[at] = self.peak[at].max(ends.len());
        self.time[at] += done - now;
    }

    /// What was seen since the last time, over a window of that length.
    pub(crate) fn take(&mut self, window: Micros) -> Vec<Concurrent> {
        let seen = self.peak.iter().zip(&self.time);
        let seen = seen.map(|(peak, time)| Concurrent { peak: *peak as f64, mean: *time as f64 / window as f64 }).collect();
        self.peak.fill(0);
        self.time.fill(0);
        seen
    }
}
