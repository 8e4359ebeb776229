//! Workers that failed a moment ago.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_placement::rank;
use forebay_types::{RouteKey, WorkerId};
use parking_lot::Mutex;

/// For so long a worker that failed is tried after all others; then it gets its place back and is probed by the next read.
const SHUNNED: Duration = Duration::from_secs(2);

/// Workers that failed a moment ago.
#[derive(Default)]
pub(crate) struct Failures {
    any: AtomicBool,
    at: Mutex<HashMap<WorkerId, Instant>>,
}

impl Failures {
    pub(crate) fn failed(&self, worker: WorkerId) {
        let mut at = self.at.lock();
        at.insert(worker, forebay_runtime::now());
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn answered(&self, worker: WorkerId) {
        if self.any.load(Ordering::Acquire) {
            let mut at = self.at.lock();
            at.remove(&worker);
            self.any.store(!at.is_empty(), Ordering::Release);
        }
    }

    /// Whether a worker failed a moment ago.
    pub(crate) fn is_shunned(&self, worker: WorkerId) -> bool {
        self.any.load(Ordering::Acquire) && self.at.lock().get(&worker).is_some_and(|at| at.elapsed() < SHUNNED)
    }

    /// The workers to ask for a route, best first: in the order of rendezvous hashing, those that failed a moment ago last.
    pub(crate) fn order(&self, route: RouteKey, workers: &[WorkerId]) -> Vec<WorkerId> {
        let mut order = rank(route, workers);
        if self.any.load(Ordering::Acquire) {
            let mut at = self.at.lock();
            at.retain(|_, at| at.elapsed() < SHUNNED);
            self.any.store(!at.is_empty(), Ordering::Release);
            // Stable: both halves keep their order.
            order.sort_by_key(|worker| at.contains_key(worker));
        }
        assert_eq!(order.len(), workers.len(), "each worker has its place in the order");
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_failed_is_tried_last_until_it_answers() {
        let failures = Failures::default();
        let workers = [WorkerId(1), WorkerId(2), WorkerId(3)];
        let route = RouteKey(7);
        let before = failures.order(route, &workers);
        failures.failed(before[0]);
        assert_eq!(failures.order(route, &workers), [before[1], before[2], before[0]]);
        failures.answered(before[0]);
        assert_eq!(failures.order(route, &workers), before);
    }
}
