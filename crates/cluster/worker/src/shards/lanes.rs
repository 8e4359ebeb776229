//! A shard's queue: gets do not wait behind searches, and neither waits without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use forebay_runtime::time::Instant;
use forebay_trace::{Kind, Span, current};
use forebay_types::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls that are answered at a time: of gets, which take microseconds to milliseconds.
const GETS_AT_ONCE: usize = 2;
/// Of gets that are answered where they came in, beside those.
const HERE_AT_ONCE: usize = 2;
/// Of searches and counts, which take up to seconds.
const SEARCHES_AT_ONCE: usize = 1;
/// Calls of a shard that may wait; who comes then is better off at another replica, or later.
const WAITING_MAX: u32 = 256;

/// Turns at a shard.
pub(super) struct Lanes {
    gets: Arc<Semaphore>,
    here: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    queue: Arc<AtomicU32>,
}

/// A call to a shard, under way or waiting. It goes with the work, which may outlive who waits for it.
pub(super) struct Turn {
    queue: Arc<AtomicU32>,
    /// Given back with the turn.
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.permit.take());
        let before = self.queue.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a turn ends once");
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
        Self { gets: lane(gets), here: lane(HERE_AT_ONCE), searches: lane(searches), queue: Arc::default() }
    }

    /// Calls under way or waiting.
    pub(super) fn queue(&self) -> u32 {
        self.queue.load(Relaxed)
    }

    /// A turn for gets that end at once, if there is one. Not behind those that wait for a thread: where calls never cease, these
    /// would have all that come wait for threads from then on.
    pub(super) fn enter_now(&self) -> Option<Turn> {
        let permit = Arc::clone(&self.here).try_acquire_owned().ok()?;
        self.queue.fetch_add(1, Relaxed);
        Some(Turn { queue: Arc::clone(&self.queue), permit: Some(permit) })
    }

    /// Waits for a turn. `Retry` when too many wait, or when it does not come until `deadline`.
    pub(super) async fn enter(&self, are_gets: bool, deadline: Instant) -> Result<Turn> {
        let waiting = self.queue.fetch_add(1, Relaxed);
        let mut turn = Turn { queue: Arc::clone(&self.queue), permit: None };
        if waiting >= WAITING_MAX {
            return Err(Error::retry(format!("{waiting} calls wait for this shard: ask another replica, or later")));
        }
        let lane = if are_gets { &self.gets } else { &self.searches };
        if let Ok(permit) = Arc::clone(lane).try_acquire_owned() {
            turn.permit = Some(permit);
            return Ok(turn);
        }
        let mut span = Span::below(current(), "wait for turn", Kind::Internal);
        span.set("forebay.queue", || u64::from(waiting));
        match forebay_runtime::time::timeout_at(deadline, Arc::clone(lane).acquire_owned()).await {
            Ok(Ok(permit)) => {
                turn.permit = Some(permit);
                Ok(turn)
            }
            Ok(Err(_)) => Err(Error::closed("the worker is stopping")),
            Err(_) => Err(Error::retry("the shard had no turn for this call in time: ask another replica, or later")),
        }
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
        let search = lanes.enter(false, soon()).await.unwrap();
        let get = lanes.enter(true, soon()).await.unwrap();
        assert_eq!(lanes.queue(), 2);
        assert_eq!(lanes.enter(false, soon()).await.err().unwrap().kind(), ErrorKind::Retry);
        assert_eq!(lanes.queue(), 2, "who gave up does not count");
        let others = [lanes.enter_now().unwrap(), lanes.enter_now().unwrap()];
        assert!(lanes.enter_now().is_none() && lanes.queue() == 4, "two gets at a time");
        drop(others);
        drop((search, get));
        lanes.enter(false, soon()).await.unwrap();
        assert_eq!(lanes.queue(), 0);
    }

    #[tokio::test]
    async fn gets_that_wait_for_a_thread_have_no_others_wait_that_end_at_once() {
        let lanes = Lanes::default();
        let later = forebay_runtime::time::instant() + Duration::from_secs(60);
        let _held = [lanes.enter(true, later).await.unwrap(), lanes.enter(true, later).await.unwrap()];
        let mut waiting = Box::pin(lanes.enter(true, later));
        assert!(futures::FutureExt::now_or_never(&mut waiting).is_none());
        let here = lanes.enter_now().unwrap();
        assert_eq!(lanes.queue(), 4);
        drop(here);
        assert!(lanes.enter_now().is_some());
        assert!(futures::FutureExt::now_or_never(&mut waiting).is_none(), "a thread is not free by that");
    }

    #[tokio::test]
    async fn a_queue_does_not_grow_without_end() {
        let lanes = Lanes::default();
        let _held = lanes.enter(false, soon()).await.unwrap();
        let later = forebay_runtime::time::instant() + Duration::from_secs(60);
        let mut waiting: Vec<_> = (1..WAITING_MAX).map(|_| Box::pin(lanes.enter(false, later))).collect();
        for call in &mut waiting {
            assert!(futures::FutureExt::now_or_never(call).is_none());
        }
        let refused = lanes.enter(true, later).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Retry);
        drop(waiting);
        assert_eq!(lanes.queue(), 1);
    }
}
