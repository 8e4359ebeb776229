//! How long somebody waits for what runs here. It goes with a future, and not into the tasks that the future spawns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// What is waited for longer than this has no end that a clock could tell.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

tokio::task_local! {
    static WAITED: Waited;
}

/// Who waits for something, and until when.
#[derive(Clone, Debug, Default)]
pub struct Waited {
    /// None where nobody has said.
    until: Option<Instant>,
    /// How many wait; none where that is not counted.
    by: Option<Arc<AtomicUsize>>,
}

impl Waited {
    /// By those who are counted here, for as long as it takes.
    pub fn by(waiters: Arc<AtomicUsize>) -> Self {
        Self { until: None, by: Some(waiters) }
    }

    /// Does something for them.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        WAITED.scope(self, work)
    }

    /// Whether none of them waits any more.
    pub fn is_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    fn left(&self) -> Option<Duration> {
        match &self.by {
            Some(by) if by.load(Relaxed) == 0 => Some(Duration::ZERO),
            _ => self.until.map(|until| until.saturating_duration_since(Instant::now())),
        }
    }
}

/// Whoever began something that goes on in a task of its own: he waits for it until this is dropped.
#[derive(Debug)]
pub struct Waiting(Waited);

impl Waiting {
    /// Until when whatever runs here is waited for.
    pub fn begin() -> Self {
        Self(Waited { by: Some(Arc::new(AtomicUsize::new(1))), ..waited() })
    }

    /// For what goes on.
    pub fn waited(&self) -> Waited {
        self.0.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(by) = &self.0.by {
            by.store(0, Relaxed);
        }
    }
}

/// How long somebody still waits for what runs here: none where nobody has said, zero where nobody waits any more.
pub fn left() -> Option<Duration> {
    WAITED.try_with(Waited::left).ok().flatten()
}

/// Whether nobody waits any more.
pub fn is_over() -> bool {
    left() == Some(Duration::ZERO)
}

/// Waits so long for something, as [`crate::time::timeout`] does, and lets whoever is asked by it know.
pub fn within<F: Future>(longest: Duration, work: F) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let now = Instant::now();
    by(now.checked_add(longest).unwrap_or(now + FAR), work)
}

/// The same until then. Who waits around it for less long ends it himself: it is not told to be late, as if whoever is asked were.
pub fn by<F: Future>(until: Instant, work: F) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let around = waited();
    let known = around.until.map_or(until, |earlier| earlier.min(until));
    timeout_at(until, WAITED.scope(Waited { until: Some(known), ..around }, work))
}

/// Does what is worth its time whether somebody waits or not.
pub fn regardless<F: Future>(work: F) -> impl Future<Output = F::Output> {
    WAITED.scope(Waited::default(), work)
}

/// Who waits for what runs here, and until when: for what goes on beside it.
pub fn waited() -> Waited {
    WAITED.try_with(Waited::clone).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn;
    use crate::time::sleep;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_runs_within_a_time_knows_how_much_of_it_is_left() {
        assert_eq!(left(), None);
        let asked = async {
            sleep(SECOND).await;
            let nested = within(Duration::MAX, async { left() }).await.unwrap();
            let shorter = within(SECOND / 2, async { left() }).await.unwrap();
            let beside = spawn(async { left() }).await.unwrap();
            (left(), nested, shorter, beside, regardless(async { left() }).await)
        };
        let known = within(3 * SECOND, asked).await.unwrap();
        assert_eq!(known, (Some(2 * SECOND), Some(2 * SECOND), Some(SECOND / 2), None, None));
        assert!(within(SECOND, sleep(2 * SECOND)).await.is_err(), "it ends");
        assert_eq!(left(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_around_for_less_long_ends_it_himself() {
        let mut is_late = false;
        let asked = async {
            is_late = within(2 * SECOND, sleep(3 * SECOND)).await.is_err();
        };
        assert!(within(SECOND, asked).await.is_err());
        assert!(!is_late, "whoever was asked has a second left");
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_without_who_began_it_knows_that() {
        let begin = async {
            let waiting = Waiting::begin();
            let task = spawn(waiting.waited().scope(async {
                let before = left();
                sleep(SECOND).await;
                (before, is_over())
            }));
            tokio::task::yield_now().await;
            (waiting, task)
        };
        let (waiting, task) = within(3 * SECOND, begin).await.unwrap();
        drop(waiting);
        assert_eq!(task.await.unwrap(), (Some(3 * SECOND), true));
        let waiters = Arc::new(AtomicUsize::new(0));
        let seen = Waited::by(Arc::clone(&waiters)).scope(async {
            let nobody = is_over();
            waiters.store(2, Relaxed);
            (nobody, left())
        });
        assert_eq!(seen.await, (true, None), "somebody waits again");
    }
}
