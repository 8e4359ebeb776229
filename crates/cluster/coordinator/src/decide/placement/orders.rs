//! Orders on their way to workers: bounded for each, repeated until it says how they ended, and who has new ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use forebay_protocol::Order;
use forebay_types::{SegmentId, WorkerId};

/// Orders that a worker has at a time at most; what is more waits for the next plan.
const WAITING_MAX: usize = 2000;
/// Orders of one heartbeat.
const BATCH: usize = 64;

/// What workers have been told to do and have not said to be done. Each heartbeat repeats it, so nothing is lost with a
/// message, a connection or a process.
#[derive(Debug, Default)]
pub(super) struct Orders {
    by_worker: BTreeMap<WorkerId, VecDeque<(SegmentId, Order)>>,
    /// Who was given some since it was asked last.
    pub(super) new: BTreeSet<WorkerId>,
}

impl Orders {
    /// Gives an order; false when the worker has too many already.
    pub(super) fn give(&mut self, worker: WorkerId, segment: SegmentId, order: Order) -> bool {
        let waiting = self.by_worker.entry(worker).or_default();
        waiting.retain(|(other, _)| *other != segment);
        if waiting.len() >= WAITING_MAX {
            return false;
        }
        waiting.push_back((segment, order));
        assert!(waiting.len() <= WAITING_MAX, "{worker} has {} orders", waiting.len());
        self.new.insert(worker);
        true
    }

    /// What a worker is told with its next heartbeat, in the order in which it was given.
    pub(super) fn first(&self, worker: WorkerId) -> Vec<Order> {
        let waiting = self.by_worker.get(&worker);
        waiting.into_iter().flatten().take(BATCH).map(|(_, order)| order.clone()).collect()
    }

    /// Who was given orders since this was asked last.
    pub(super) fn take_new(&mut self) -> Vec<WorkerId> {
        std::mem::take(&mut self.new).into_iter().collect()
    }

    /// Has a worker ask another one for a segment before all others.
    pub(super) fn prefer(&mut self, worker: WorkerId, segment: SegmentId, source: WorkerId) {
        for (other, order) in self.by_worker.get_mut(&worker).into_iter().flatten() {
            if let Order::Hold { from, .. } = order
                && *other == segment
                && source != worker
            {
                from.retain(|it| *it != source);
                from.insert(0, source);
            }
        }
    }

    /// A worker has carried out an order: whether that is the one it has.
    pub(super) fn ended(&mut self, worker: WorkerId, segment: SegmentId, hold: bool) -> bool {
        let Some(waiting) = self.by_worker.get_mut(&worker) else { return false };
        let before = waiting.len();
        waiting.retain(|(other, order)| *other != segment || matches!(order, Order::Hold { .. }) != hold);
        waiting.len() < before
    }

    /// Takes back what was ordered of a segment.
    pub(super) fn cancel(&mut self, segment: SegmentId) {
        self.by_worker.values_mut().for_each(|waiting| waiting.retain(|(other, _)| *other != segment));
    }

    /// Takes back what a worker was ordered.
    pub(super) fn forget(&mut self, worker: WorkerId) {
        self.by_worker.remove(&worker);
    }
}
