//! What a run shows of itself, fact by fact, so that an oracle need not trust the model's own books.

use crate::workload::Micros;

/// What an oracle may want to know of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are numbers of what their names say")]
pub enum Fact {
    /// A query came with that many accesses.
    Asked { query: u64, accesses: usize },
    /// An access was taken by a worker and will be answered at `done`.
    Accepted { query: u64, segment: u32, worker: u32, done: Micros },
    /// A worker without the segment was asked for it, and is given it by `from`, which has it.
    Given { query: u64, segment: u32, worker: u32, from: u32 },
    /// An access was answered by a worker that has no room for what it was given, or fetched from shared storage.
    PassedThrough { query: u64, segment: u32, worker: u32 },
    /// The last access of a query is answered at `done`.
    Answered { query: u64, done: Micros },
    /// A worker began to load a segment.
    Loading { segment: u32, worker: u32 },
    /// A worker has a segment.
    Loaded { segment: u32, worker: u32 },
    /// A replica was deleted because a plan no longer has it.
    Deleted { segment: u32, worker: u32 },
    /// A replica was deleted to make room.
    Collected { segment: u32, worker: u32 },
    /// A client has a new table.
    Polled { client: u32, version: u64 },
    /// A table of `version` names the replica.
    Named { version: u64, segment: u32, worker: u32 },
}

/// Watches a run.
pub trait Observer {
    /// Called for each fact, in the order of time.
    fn see(&mut self, now: Micros, fact: Fact);
}

/// Watches nothing.
#[derive(Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    #[inline]
    fn see(&mut self, _: Micros, _: Fact) {}
}
