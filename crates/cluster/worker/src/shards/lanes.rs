//! A shard's queue, in estimated steps: gets do not wait behind searches, and neither waits without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_navigation::{QUEUE_LIMITS, StepQueue};
use forebay_runtime::time::Instant;
use forebay_trace::{Kind, Span, current};
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls that are answered at a time: of gets, which take microseconds to milliseconds.
const GETS_AT_ONCE: usize = 2;
/// Of gets that are answered where they came in, beside those.
const HERE_AT_ONCE: usize = 2;
/// Of searches and counts, which take up to seconds.
const SEARCHES_AT_ONCE: usize = 1;
/// Calls that are weighed at a time while they wait: however many come, they take no more threads.
const WEIGHED_AT_ONCE: usize = 1;

/// Turns at a shard.
pub(super) struct Lanes {
    gets: Arc<Semaphore>,
    here: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    weighing: Arc<Semaphore>,
    queue: Arc<Mutex<StepQueue>>,
}

/// What an answer tells of a shard's queue, in estimated steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// Of the other calls that are under way or waiting.
    pub(crate) queue: u32,
    /// Of the call that was answered.
    pub(crate) steps: u32,
}

/// A call to a shard, under way or waiting. It goes with the work, which may outlive who waits for it.
pub(super) struct Turn {
    queue: Arc<Mutex<StepQueue>>,
    /// What it counts as there; changed with the queue's lock alone.
    steps: AtomicU64,
    /// Given back with the turn.
    permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// The steps that it counts as.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }

    /// It is known to take so many steps.
    pub(super) fn weigh(&self, steps: u64) {
        let mut queue = self.queue.lock();
        self.steps.store(queue.weigh(self.steps(), steps), Relaxed);
    }

    /// It is known to take so many steps at least.
    pub(super) fn weigh_up(&self, steps: u64) {
        if steps > self.steps() {
            self.weigh(steps);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.queue.lock().leave(self.steps());
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new(GETS_AT_ONCE, SEARCHES_AT_ONCE)
    }
}

impl Lanes {
    /// So many calls of either kind at a time.
    pub(super) fn of(at_once: usize) -> Self {
        Self::new(at_once, at_once)
    }

    fn new(gets: usize, searches: usize) -> Self {
        let lane = |at_once| Arc::new(Semaphore::new(at_once));
        let weighing = lane(WEIGHED_AT_ONCE);
        Self { gets: lane(gets), here: lane(HERE_AT_ONCE), searches: lane(searches), weighing, queue: Arc::default() }
    }

    /// Calls under way or waiting.
    pub(super) fn calls(&self) -> u32 {
        self.queue.lock().calls()
    }

    /// The steps that they are estimated to take.
    pub(super) fn steps(&self) -> u32 {
        u32::try_from(self.queue.lock().steps()).unwrap_or(u32::MAX)
    }

    /// What is told with the answer of a call of so many steps, which has ended.
    pub(super) fn told(&self, steps: u64) -> Queued {
        Queued { queue: self.steps(), steps: u32::try_from(steps).unwrap_or(u32::MAX) }
    }

    /// A turn for gets of so many steps that end at once, if there is one. Not behind those that wait for a thread: where calls never cease,
    /// these would have all that come wait for threads from then on.
    pub(super) fn enter_now(&self, steps: u64) -> Option<Turn> {
        let permit = Arc::clone(&self.here).try_acquire_owned().ok()?;
        let steps = self.queue.lock().begin(steps);
        Some(self.turn(steps, Some(permit)))
    }

    /// A place in the queue. `Retry` when too much waits.
    pub(super) fn line_up(&self, steps: u64) -> Result<Turn> {
        let mut queue = self.queue.lock();
        let Some(steps) = queue.enter(steps, &QUEUE_LIMITS) else {
            let (calls, steps) = (queue.calls(), queue.steps());
            return Err(Error::retry(format!(
                "{calls} calls of about {steps} steps wait for this shard: ask another replica, or later"
            )));
        };
        drop(queue);
        Ok(self.turn(steps, None))
    }

    fn turn(&self, steps: u64, permit: Option<OwnedSemaphorePermit>) -> Turn {
        Turn { queue: Arc::clone(&self.queue), steps: AtomicU64::new(steps), permit }
    }

    /// Whether who has a place has its turn at once.
    pub(super) fn begins(&self, turn: &mut Turn, are_gets: bool) -> bool {
        debug_assert!(turn.permit.is_none(), "it begins once");
        turn.permit = Arc::clone(self.lane(are_gets)).try_acquire_owned().ok();
        turn.permit.is_some()
    }

    /// Leave to weigh a call that waits, as long as it is held; none while another one is weighed.
    pub(super) fn weighs(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.weighing).try_acquire_owned().ok()
    }

    /// Waits for the turn of who has a place. `Retry` when it does not come until `deadline`.
    pub(super) async fn wait(&self, mut turn: Turn, are_gets: bool, deadline: Instant) -> Result<Turn> {
        if self.begins(&mut turn, are_gets) {
            return Ok(turn);
        }
        let mut span = Span::below(current(), "wait for turn", Kind::Internal);
        span.set("forebay.queue", || u64::from(self.calls().saturating_sub(1)));
        match forebay_runtime::time::timeout_at(deadline, Arc::clone(self.lane(are_gets)).acquire_owned()).await {
            Ok(Ok(permit)) => {
                turn.permit = Some(permit);
                Ok(turn)
            }
            Ok(Err(_)) => Err(Error::closed("the worker is stopping")),
            Err(_) => Err(Error::retry("the shard had no turn for this call in time: ask another replica, or later")),
        }
    }

    /// A place in the queue, and then a turn.
    pub(super) async fn enter(&self, steps: u64, are_gets: bool, deadline: Instant) -> Result<Turn> {
        let turn = self.line_up(steps)?;
        self.wait(turn, are_gets, deadline).await
    }

    fn lane(&self, are_gets: bool) -> &Arc<Semaphore> {
        if are_gets { &self.gets } else { &self.searches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::ErrorKind;
    use std::time::Duration;

    fn soon() -> Instant {
        forebay_runtime::time::instant() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn gets_go_past_searches_and_who_waits_too_long_is_told() {
        let lanes = Lanes::default();
        let search = lanes.enter(50, false, soon()).await.unwrap();
        let get = lanes.enter(3, true, soon()).await.unwrap();
        assert_eq!((lanes.calls(), lanes.steps()), (2, 53));
        assert_eq!(lanes.enter(9, false, soon()).await.err().unwrap().kind(), ErrorKind::Retry);
        assert_eq!((lanes.calls(), lanes.steps()), (2, 53), "who gave up does not count");
        let others = [lanes.enter_now(3).unwrap(), lanes.enter_now(3).unwrap()];
        assert!(lanes.enter_now(3).is_none() && lanes.calls() == 4, "two gets at a time");
        drop(others);
        drop((search, get));
        lanes.enter(50, false, soon()).await.unwrap();
        assert_eq!((lanes.calls(), lanes.steps()), (0, 0));
    }

    #[tokio::test]
    async fn gets_that_wait_for_a_thread_have_no_others_wait_that_end_at_once() {
        let lanes = Lanes::default();
        let later = forebay_runtime::time::instant() + Duration::from_secs(60);
        let _held = [lanes.enter(1, true, later).await.unwrap(), lanes.enter(1, true, later).await.unwrap()];
        let mut waiting = Box::pin(lanes.enter(1, true, later));
        assert!(futures::FutureExt::now_or_never(&mut waiting).is_none());
        let here = lanes.enter_now(1).unwrap();
        assert_eq!(lanes.calls(), 4);
        drop(here);
        assert!(lanes.enter_now(1).is_some());
        assert!(futures::FutureExt::now_or_never(&mut waiting).is_none(), "a thread is not free by that");
    }

    #[tokio::test]
    async fn a_queue_does_not_grow_without_end() {
        let lanes = Lanes::default();
        let _held = lanes.enter(1, false, soon()).await.unwrap();
        let later = forebay_runtime::time::instant() + Duration::from_secs(60);
        let mut waiting: Vec<_> = (1..QUEUE_LIMITS.calls).map(|_| Box::pin(lanes.enter(1, false, later))).collect();
        for call in &mut waiting {
            assert!(futures::FutureExt::now_or_never(call).is_none());
        }
        let refused = lanes.enter(1, true, later).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Retry);
        drop(waiting);
        assert_eq!(lanes.calls(), 1);
    }

    #[tokio::test]
    async fn a_search_that_turns_out_to_have_many_hits_closes_the_queue_and_others_hear_of_it() {
        let lanes = Lanes::default();
        let search = lanes.enter(100, false, soon()).await.unwrap();
        let next = lanes.line_up(100).unwrap();
        let weighing = lanes.weighs().unwrap();
        assert!(lanes.weighs().is_none(), "one at a time");
        drop(weighing);
        assert!(lanes.weighs().is_some());
        search.weigh_up(7);
        assert_eq!((search.steps(), lanes.told(5).queue), (100, 200), "what is known already is no less");
        search.weigh_up(QUEUE_LIMITS.steps);
        next.weigh(30);
        let told = lanes.told(5);
        assert_eq!((u64::from(told.queue), told.steps), (QUEUE_LIMITS.steps + 30, 5));
        assert_eq!(lanes.line_up(1).err().unwrap().kind(), ErrorKind::Retry, "though two calls are there");
        drop(search);
        let last = lanes.line_up(1).unwrap();
        drop((next, last));
        assert_eq!((lanes.calls(), lanes.steps()), (0, 0));
    }
}
