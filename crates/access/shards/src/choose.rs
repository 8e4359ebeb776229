//! What is known of the workers, and which replica is asked by it: `core/navigation` chooses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::ShardQueue;
use forebay_navigation::{Candidate, choose};
use forebay_types::WorkerId;

/// How much of what was known of a worker's time stays with a new measurement.
const KEEP: f64 = 0.8;
/// How long a worker that did not answer is asked last.
const AWAY_FOR: Duration = Duration::from_secs(3);
/// How long one is asked last for a shard that it has no room for, which its operator or a merge may change.
const UNABLE_FOR: Duration = Duration::from_secs(60);

/// What is known of workers, for one dataset.
#[derive(Default)]
pub(crate) struct Workers {
    /// By shard: a worker that is quick with one may have to bring another.
    standings: HashMap<(usize, WorkerId), Standing>,
    /// Workers that did not answer, and until when they are asked last.
    away: HashMap<WorkerId, Instant>,
    /// Who holds each shard, in order, by the view with this epoch and version.
    holders: HashMap<usize, Arc<[WorkerId]>>,
    of_view: (u64, u64),
    /// The number of an object of each shard's log that is there: of the last change that was answered. Where changes are given up, later ones
    /// have smaller numbers.
    logged: HashMap<usize, u64>,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With the queue that the worker told of.
    Answered(ShardQueue),
    /// The worker could not answer, or was not reached.
    Failed,
    /// The worker has no room for the shard, and for others it may have.
    Unable,
    /// Too many wait for the shard there; fewer will after so long.
    Busy(Duration),
    /// The asker went away, or the question was at fault: that says nothing about the worker.
    GivenUp,
}

/// How a worker stands with a shard.
#[derive(Clone, Copy, Default)]
struct Standing {
    /// Calls of this client that are under way.
    asked: u32,
    /// The queue that the last answer told of, in estimated steps; in calls where the worker counts these.
    told: u32,
    /// What answers took, aged; none before the first one.
    took: Option<Took>,
    /// Until when it is asked last, since it has no room for the shard, or too many wait there.
    last_until: Option<Instant>,
}

/// What an answer took.
#[derive(Clone, Copy)]
struct Took {
    seconds: f64,
    /// Steps of the call itself, and of those before it.
    steps: f64,
    all_steps: f64,
}

impl Took {
    fn then(self, new: Self) -> Self {
        let aged = |before: f64, new: f64| before * KEEP + new * (1.0 - KEEP);
        Self {
            seconds: aged(self.seconds, new.seconds),
            steps: aged(self.steps, new.steps),
            all_steps: aged(self.all_steps, new.all_steps),
        }
    }

    /// Seconds that a call takes when none waits before it.
    fn alone(self) -> f64 {
        debug_assert!(
            self.all_steps >= self.steps && self.steps > 0.0,
            "a call is part of what was there, and is never for nothing"
        );
        self.seconds / self.all_steps * self.steps
    }
}

impl Standing {
    /// In calls such as this client's, of which each counts as its usual steps: so a long search of others is as many of them as it takes
    /// the time of, and workers that count calls are compared with those that count steps.
    fn candidate(&self) -> Candidate {
        let Some(took) = self.took else { return Candidate { own: self.asked, told: self.told, service_us: 0.0 } };
        let told = (f64::from(self.told) / took.steps).round() as u32;
        Candidate { own: self.asked, told, service_us: took.alone() * 1e6 }
    }
}

impl Workers {
    /// The workers in the order in which they hold a shard, by the view with this epoch and version; `rank` says it.
    pub(crate) fn holders(&mut self, shard: usize, view: (u64, u64), rank: impl FnOnce() -> Vec<WorkerId>) -> Arc<[WorkerId]> {
        if self.of_view != view {
            self.of_view = view;
            self.holders.clear();
        }
        Arc::clone(self.holders.entry(shard).or_insert_with(|| rank().into()))
    }

    /// The holders of a shard in the order in which they are asked: of the first `replicas` of them, which keep the shard, the one that
    /// is chosen, then the one that is chosen of the rest; then those who would have to bring it. Who did not answer, or has no room for it,
    /// comes last.
    pub(crate) fn order(&self, shard: usize, holders: &[WorkerId], replicas: usize, chance: u64, now: Instant) -> Vec<WorkerId> {
        let replicas = &holders[..replicas.min(holders.len())];
        let mut near: Vec<WorkerId> = replicas.iter().copied().filter(|worker| !self.is_away(shard, *worker, now)).collect();
        let mut candidates: Vec<Candidate> = near.iter().map(|worker| self.of(shard, *worker).candidate()).collect();
        let mut order = Vec::with_capacity(holders.len());
        while let Some(at) = choose(&candidates, chance) {
            candidates.remove(at);
            order.push(near.remove(at));
        }
        for worker in holders.iter().filter(|worker| !self.is_away(shard, **worker, now)).chain(holders) {
            if !order.contains(worker) {
                order.push(*worker);
            }
        }
        debug_assert_eq!(order.len(), holders.len(), "each holder is asked once");
        order
    }

    /// The holders in their own order: who changes a shard asks the first of them, so that changes meet in one place. Who did not
    /// answer, or has no room for it, comes last.
    pub(crate) fn in_rank(&self, shard: usize, holders: &[WorkerId], now: Instant) -> Vec<WorkerId> {
        let (away, near): (Vec<WorkerId>, Vec<_>) = holders.iter().partition(|worker| self.is_away(shard, **worker, now));
        let order: Vec<WorkerId> = near.into_iter().chain(away).collect();
        debug_assert_eq!(order.len(), holders.len(), "each holder is asked once");
        order
    }

    pub(crate) fn begin(&mut self, shard: usize, worker: WorkerId) {
        self.standings.entry((shard, worker)).or_default().asked += 1;
    }

    pub(crate) fn end(&mut self, shard: usize, worker: WorkerId, took: Duration, ended: Ended, now: Instant) {
        let standing = self.standings.entry((shard, worker)).or_default();
        assert!(standing.asked > 0, "a call ends once");
        standing.asked -= 1;
        let queue = match ended {
            Ended::GivenUp => return,
            Ended::Unable => {
                standing.last_until = Some(now + UNABLE_FOR);
                return;
            }
            Ended::Busy(after) => {
                standing.last_until = Some(now + after.min(AWAY_FOR));
                return;
            }
            Ended::Failed => {
                self.away.insert(worker, now + AWAY_FOR);
                return;
            }
            Ended::Answered(queue) => queue,
        };
        let steps = f64::from(queue.steps.max(1));
        let new = Took { seconds: took.as_secs_f64(), steps, all_steps: f64::from(standing.told.min(queue.queue)) + steps };
        standing.took = Some(standing.took.map_or(new, |before| before.then(new)));
        debug_assert!(standing.took.is_some_and(|took| took.alone() >= 0.0), "what calls take is a time");
        standing.told = queue.queue;
        self.away.remove(&worker);
    }

    /// An object of a shard's log is there.
    pub(crate) fn saw_logged(&mut self, shard: usize, number: u64) {
        self.logged.insert(shard, number);
    }

    /// The number of one that is known to be there; 0 where none is.
    pub(crate) fn logged(&self, shard: usize) -> u64 {
        self.logged.get(&shard).copied().unwrap_or(0)
    }

    fn is_away(&self, shard: usize, worker: WorkerId, now: Instant) -> bool {
        let last_until = self.of(shard, worker).last_until;
        self.away.get(&worker).copied().into_iter().chain(last_until).any(|until| now < until)
    }

    fn of(&self, shard: usize, worker: WorkerId) -> Standing {
        self.standings.get(&(shard, worker)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkerId = WorkerId(1);
    const B: WorkerId = WorkerId(2);
    const C: WorkerId = WorkerId(3);

    fn answered(workers: &mut Workers, worker: WorkerId, millis: u64, queue: u32) {
        answered_in_steps(workers, worker, millis, ShardQueue { queue, steps: 0 });
    }

    fn answered_in_steps(workers: &mut Workers, worker: WorkerId, millis: u64, queue: ShardQueue) {
        workers.begin(0, worker);
        workers.end(0, worker, Duration::from_millis(millis), Ended::Answered(queue), forebay_runtime::now());
    }

    #[test]
    fn another_replica_is_asked_when_one_has_a_queue() {
        let mut workers = Workers::default();
        let order = |workers: &Workers| workers.order(0, &[A, B, C], 2, 0, forebay_runtime::now());
        assert_eq!(order(&workers), [A, B, C]);
        answered(&mut workers, A, 10, 0);
        assert_eq!(order(&workers), [A, B, C]);
        workers.begin(0, A);
        assert_eq!(order(&workers), [B, A, C], "C is no holder, whatever the queues");
    }

    #[test]
    fn a_slow_replica_gets_less_though_its_queue_is_as_short() {
        let mut workers = Workers::default();
        answered(&mut workers, A, 50, 0);
        answered(&mut workers, B, 10, 0);
        (0..3).for_each(|_| workers.begin(0, B));
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [B, A], "4 x 10 ms is less than 50");
        (0..2).for_each(|_| workers.begin(0, B));
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [A, B]);
    }

    #[test]
    fn a_told_queue_counts() {
        let mut workers = Workers::default();
        answered(&mut workers, A, 10, 9);
        answered(&mut workers, B, 10, 0);
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [B, A]);
    }

    #[test]
    fn one_long_search_of_others_is_a_longer_queue_than_some_gets() {
        let mut workers = Workers::default();
        answered_in_steps(&mut workers, A, 10, ShardQueue { queue: 500_000, steps: 1000 });
        answered_in_steps(&mut workers, B, 10, ShardQueue { queue: 5 * 1000, steps: 1000 });
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [B, A], "one call there, five here");
        // What takes a tenth of a usual call makes no difference.
        let mut workers = Workers::default();
        answered_in_steps(&mut workers, A, 10, ShardQueue { queue: 0, steps: 1000 });
        answered_in_steps(&mut workers, B, 9, ShardQueue { queue: 100, steps: 1000 });
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [B, A]);
    }

    #[test]
    fn a_worker_that_counts_calls_is_compared_with_one_that_counts_steps() {
        let mut workers = Workers::default();
        answered_in_steps(&mut workers, A, 10, ShardQueue { queue: 2000, steps: 1000 });
        answered(&mut workers, B, 10, 9);
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [A, B], "two calls there, nine here");
        answered(&mut workers, B, 10, 0);
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [B, A]);
    }

    #[test]
    fn who_did_not_answer_is_asked_last_for_a_while() {
        let (mut workers, now) = (Workers::default(), forebay_runtime::now());
        workers.begin(0, A);
        workers.end(0, A, Duration::from_millis(1), Ended::GivenUp, now);
        assert_eq!(workers.order(0, &[A, B, C], 3, 0, now), [A, B, C], "its asker went away");
        workers.begin(0, A);
        workers.end(0, A, Duration::from_millis(1), Ended::Failed, now);
        assert_eq!(workers.order(0, &[A, B, C], 3, 0, now), [B, C, A]);
        assert_eq!(workers.order(0, &[A, B, C], 3, 0, now + AWAY_FOR), [A, B, C]);
        assert_eq!(workers.in_rank(0, &[A, B, C], now), [B, C, A]);
        assert_eq!(workers.in_rank(0, &[C, A, B], now + AWAY_FOR), [C, A, B], "whatever the queues");
    }

    #[test]
    fn who_has_no_room_for_a_shard_is_asked_last_for_that_one_alone() {
        let (mut workers, now) = (Workers::default(), forebay_runtime::now());
        workers.begin(0, A);
        workers.end(0, A, Duration::from_millis(1), Ended::Unable, now);
        assert_eq!(workers.order(0, &[A, B, C], 2, 0, now), [B, C, A], "also behind who would have to bring it");
        assert_eq!(workers.in_rank(0, &[A, B, C], now), [B, C, A]);
        assert_eq!(workers.in_rank(1, &[A, B, C], now), [A, B, C], "another shard may be smaller");
        assert_eq!(workers.in_rank(0, &[A, B, C], now + UNABLE_FOR), [A, B, C], "it is asked again at times");
    }

    #[test]
    fn a_worker_that_is_quick_with_another_shard_is_not_taken_for_quick_with_this_one() {
        let mut workers = Workers::default();
        let answered = |workers: &mut Workers, shard, worker, millis| {
            workers.begin(shard, worker);
            workers.end(
                shard,
                worker,
                Duration::from_millis(millis),
                Ended::Answered(ShardQueue::default()),
                forebay_runtime::now(),
            );
        };
        answered(&mut workers, 1, B, 1);
        answered(&mut workers, 0, A, 10);
        answered(&mut workers, 0, B, 200);
        assert_eq!(workers.order(0, &[A, B], 2, 0, forebay_runtime::now()), [A, B], "B has to bring it first");
        answered(&mut workers, 1, A, 10);
        assert_eq!(workers.order(1, &[A, B], 2, 0, forebay_runtime::now()), [B, A]);
    }

    #[test]
    fn who_has_too_many_waiting_for_a_shard_is_asked_last_for_that_one_until_there_are_fewer() {
        let (mut workers, now, after) = (Workers::default(), forebay_runtime::now(), Duration::from_millis(300));
        workers.begin(0, A);
        workers.end(0, A, Duration::from_millis(1), Ended::Busy(after), now);
        assert_eq!(workers.order(0, &[A, B], 2, 0, now), [B, A]);
        assert_eq!(workers.in_rank(1, &[A, B], now), [A, B], "for another shard nobody waits");
        assert_eq!(workers.in_rank(0, &[A, B], now + after), [A, B]);
    }

    #[test]
    fn what_a_log_has_is_remembered_by_the_last_answer() {
        let mut workers = Workers::default();
        [3, 9, 7].into_iter().for_each(|number| workers.saw_logged(1, number));
        assert_eq!([0, 1].map(|shard| workers.logged(shard)), [0, 7], "object 9 may be given up");
    }

    #[test]
    fn holders_are_ranked_once_a_view() {
        let mut workers = Workers::default();
        assert_eq!(*workers.holders(3, (1, 1), || vec![A, B]), [A, B]);
        assert_eq!(*workers.holders(3, (1, 1), || unreachable!()), [A, B]);
        assert_eq!(*workers.holders(3, (1, 2), || vec![B]), [B]);
    }
}
