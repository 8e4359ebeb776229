use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use forebay_types::{OperationId, SegmentId};
use parking_lot::Mutex;

/// (operation, segment) pairs that a window remembers at most.
const PAIRS_MAX: usize = 200_000;
/// Locks, so that readers seldom wait for each other.
const SHARDS: usize = 16;

/// What was read in one counting period.
#[derive(Clone, Debug)]
pub struct Window {
    /// How long it lasted.
    pub lasted: Duration,
    /// Segments that were read, in no order.
    pub segments: Vec<SegmentCount>,
    /// Reads that were left out because the window was full.
    pub reads_left_out: u64,
}

/// What was read of one segment in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentCount {
    /// The segment.
    pub segment: SegmentId,
    /// Operations that read it, each counted once.
    pub operations: u32,
    /// Reads.
    pub reads: u64,
    /// Bytes given to readers.
    pub bytes: u64,
    /// Time that the worker took to answer, summed; reads in place take none.
    pub service: Duration,
}

/// Counts reads by segment for the placement of replicas: an operation counts once a window (Getafix, section 3).
pub(crate) struct Counts {
    shards: [Mutex<Shard>; SHARDS],
    began: Mutex<Instant>,
    closed: Mutex<Option<Window>>,
}

#[derive(Default)]
struct Shard {
    pairs: HashSet<(OperationId, SegmentId)>,
    tallies: HashMap<SegmentId, Tally>,
    left_out: u64,
}

#[derive(Default)]
struct Tally {
    operations: u32,
    reads: u64,
    bytes: u64,
    service: Duration,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { shards, began: Mutex::new(Instant::now()), closed: Mutex::new(None) }
    }

    /// Counts reads of one operation in one segment.
    pub(crate) fn read(&self, operation: OperationId, segment: SegmentId, reads: u64, bytes: u64, service: Duration) {
        let mut shard = self.shards[segment.0 as usize % SHARDS].lock();
        let shard = &mut *shard;
        let first = !shard.pairs.contains(&(operation, segment));
        if first && shard.pairs.len() >= PAIRS_MAX / SHARDS {
            shard.left_out += reads;
            return;
        }
        let tally = shard.tallies.entry(segment).or_default();
        if first {
            shard.pairs.insert((operation, segment));
            tally.operations += 1;
        }
        tally.reads += reads;
        tally.bytes += bytes;
        tally.service += service;
    }

    /// How long the window has been open.
    pub(crate) fn age(&self) -> Duration {
        self.began.lock().elapsed()
    }

    /// Closes the window and opens the next one. A closed window that nobody took is gone.
    pub(crate) fn roll(&self) {
        let lasted = std::mem::replace(&mut *self.began.lock(), Instant::now()).elapsed();
        let mut window = Window { lasted, segments: Vec::new(), reads_left_out: 0 };
        for shard in &self.shards {
            let shard = std::mem::take(&mut *shard.lock());
            window.reads_left_out += shard.left_out;
            window.segments.extend(shard.tallies.into_iter().map(|(segment, tally)| SegmentCount {
                segment,
                operations: tally.operations,
                reads: tally.reads,
                bytes: tally.bytes,
                service: tally.service,
            }));
        }
        *self.closed.lock() = Some(window);
    }

    /// The window that closed last, once.
    pub(crate) fn take_window(&self) -> Option<Window> {
        self.closed.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_counts_once_a_window() {
        let counts = Counts::new();
        for operation in [1, 1, 2] {
            counts.read(OperationId(operation), SegmentId(7), 1, 100, Duration::from_micros(5));
        }
        counts.roll();
        let window = counts.take_window().unwrap();
        let count = window.segments[0];
        assert_eq!((count.operations, count.reads, count.bytes), (2, 3, 300));
        assert_eq!(count.service, Duration::from_micros(15));
        assert!(counts.take_window().is_none());
        counts.read(OperationId(1), SegmentId(7), 1, 100, Duration::ZERO);
        counts.roll();
        assert_eq!(counts.take_window().unwrap().segments[0].operations, 1, "the next window counts anew");
    }

    #[test]
    fn a_full_window_says_so() {
        let counts = Counts::new();
        for operation in 0..PAIRS_MAX as u64 {
            counts.read(OperationId(operation), SegmentId(0), 1, 1, Duration::ZERO);
        }
        counts.roll();
        let window = counts.take_window().unwrap();
        assert_eq!(window.segments[0].reads + window.reads_left_out, PAIRS_MAX as u64);
        assert!(window.reads_left_out > 0);
    }
}
