//! What is yet to happen, by time, and in one order always where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::workload::Micros;

/// What happens at a time, other than the arrival of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A segment has come to a worker.
    Loaded { worker: u32, segment: u32 },
    /// An access that had to wait, or was sent away, comes to a worker.
    Access { query: u32, segment: u32, worker: u32, tries: u32 },
    /// An access comes to the worker that its client has chosen by asking.
    Asked { query: u32, segment: u32, worker: u32 },
    /// A client asks for the routing table.
    Poll { client: u32, periodic: bool },
    /// A new segment comes into being.
    Fresh { segment: u32 },
    /// A window ends.
    Window,
}

/// Events by time; those of one time in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(Micros, u64, Event)>>,
    made: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at: Micros, event: Event) {
        self.made += 1;
        self.heap.push(Reverse((at, self.made, event)));
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Micros {
        self.heap.peek().map_or(Micros::MAX, |Reverse((at, ..))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Micros, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
