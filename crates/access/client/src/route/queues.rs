//! How long the workers' queues are.

use std::collections::HashMap;
use std::time::Instant;

use forebay_placement::QueueView;
use forebay_protocol::Hint;
use forebay_types::WorkerId;
use parking_lot::Mutex;

/// Workers that are remembered at most; those without calls under way are forgotten beyond.
const WORKERS_MAX: usize = 20_000;

/// How long the workers' queues are, as far as this client can tell: its own calls under way, and what answers say of
/// others'. A worker that is slow, or hangs, is seen by the calls that pile up.
pub(crate) struct Queues {
    began: Instant,
    views: Mutex<HashMap<WorkerId, (u32, QueueView)>>,
}

/// A call under way.
pub(crate) struct Waiting<'a> {
    queues: &'a Queues,
    worker: WorkerId,
}

impl Default for Queues {
    fn default() -> Self {
        Self { began: forebay_runtime::now(), views: Mutex::default() }
    }
}

impl Queues {
    /// Begins a call.
    pub(crate) fn enter(&self, worker: WorkerId) -> Waiting<'_> {
        let mut views = self.views.lock();
        if views.len() >= WORKERS_MAX {
            views.retain(|_, (own, _)| *own > 0);
        }
        let (own, view) = views.entry(worker).or_default();
        *own += 1;
        view.sent();
        Waiting { queues: self, worker }
    }

    /// A worker has answered a call that is still counted here.
    pub(crate) fn heard(&self, worker: WorkerId, hint: Hint) {
        let now = self.now_us();
        if let Some((_, view)) = self.views.lock().get_mut(&worker) {
            view.answered(now, hint.queue);
            // It is counted until it ends.
            view.sent();
        }
    }

    /// A worker was asked how it stands, and has told.
    pub(crate) fn told(&self, worker: WorkerId, hint: Hint) {
        let now = self.now_us();
        let mut views = self.views.lock();
        if views.len() < WORKERS_MAX {
            views.entry(worker).or_default().1.told(now, hint.queue);
        }
    }

    /// Whether a worker was heard of within so many microseconds.
    pub(crate) fn is_fresh(&self, worker: WorkerId, within_us: u64) -> bool {
        let now = self.now_us();
        self.views.lock().get(&worker).is_some_and(|(_, view)| view.is_fresh(now, within_us))
    }

    /// What is to be expected of some workers' queues.
    pub(crate) fn of(&self, workers: impl Iterator<Item = WorkerId>) -> Vec<Option<u32>> {
        let now = self.now_us();
        let views = self.views.lock();
        workers.map(|worker| views.get(&worker).and_then(|(_, view)| view.expected(now))).collect()
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut views = self.queues.views.lock();
        let queue = views.get_mut(&self.worker);
        // Unwinding, there is nothing to be said a second time.
        debug_assert!(queue.is_some() || std::thread::panicking(), "a queue with a call under way was forgotten");
        if let Some((own, view)) = queue {
            debug_assert!(*own > 0 || std::thread::panicking(), "a call ends that was not begun");
            *own -= 1;
            view.gave_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_calls_and_those_of_others() {
        let queues = Queues::default();
        let of = |worker| queues.of(std::iter::once(WorkerId(worker)))[0];
        let (first, second) = (queues.enter(WorkerId(1)), queues.enter(WorkerId(1)));
        assert_eq!((of(1), of(2)), (Some(200), None), "in hundredths");
        // Of the five others that it has, one is the second call of this client.
        queues.heard(WorkerId(1), Hint { queue: 5, routes: 0 });
        drop(first);
        let four = of(1).unwrap() - 100;
        assert!((390..=400).contains(&four), "{four}");
        drop(second);
        let four = of(1).unwrap();
        assert!((390..=400).contains(&four), "{four}");
    }
}
