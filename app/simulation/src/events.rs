//! What is yet to happen, by time, and in one order always where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::workload::Micros;

/// Events by time; those of one time in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<(Micros, u64, E)>>,
    made: u64,
}

impl<E: Ord> Events<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), made: 0 }
    }

    pub(crate) fn push(&mut self, at: Micros, event: E) {
        self.made += 1;
        self.heap.push(Reverse((at, self.made, event)));
    }

    pub(crate) fn next_at(&self) -> Micros {
        self.heap.peek().map_or(Micros::MAX, |Reverse((at, ..))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Micros, E)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
