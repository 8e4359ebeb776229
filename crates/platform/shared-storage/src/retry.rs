//! Which failures are worth another try, after what pause, and when it is enough; bytes that come buy patience.

use std::time::Duration;

use forebay_protocol::Left;
use forebay_runtime::deadline;
use forebay_runtime::time::Instant;
use forebay_types::Error;

use crate::counters::{Tally, count};

/// Shortest mean pause before a retry.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause before a retry, unless the server asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Received bytes that count as progress: retries start over after them.
const PROGRESS_BYTES: u64 = 256 << 10;

/// An attempt that failed, and whether another may succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) transient: bool,
    /// How long the server asks to wait.
    pub(crate) after: Option<Duration>,
    /// What the server answered, where it did.
    pub(crate) answered: Option<Answered>,
}

/// The status and the code of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// Empty where there is none.
    pub(crate) code: String,
}

impl Failure {
    pub(crate) fn transient(error: Error) -> Self {
        Self { error, transient: true, after: None, answered: None }
    }

    /// Whether the server refused with this status.
    pub(crate) fn is(&self, status: u16) -> bool {
        self.answered.as_ref().is_some_and(|answered| answered.status == status)
    }
}

/// Errors are final unless somebody says otherwise.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, transient: false, after: None, answered: None }
    }
}

/// How often and how long to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    pub(crate) retries_max: u32,
    pub(crate) deadline: Duration,
}

/// The tries of one call.
pub(crate) struct Tries<'a> {
    policy: RetryPolicy,
    tally: &'a Tally,
    state: TryState,
}

/// What must be kept between the tries of one call.
#[derive(Debug)]
pub(crate) struct TryState {
    retries: u32,
    began: Instant,
    progress: u64,
}

impl TryState {
    pub(crate) fn new() -> Self {
        Self { retries: 0, began: forebay_runtime::time::instant(), progress: 0 }
    }

    /// Bytes have come: after enough of them tries and the deadline start over.
    pub(crate) fn progress(&mut self, bytes: u64) {
        self.progress += bytes;
        if self.progress >= PROGRESS_BYTES {
            *self = Self::new();
        }
    }

    /// Waits until the next try, or returns the error when there is none.
    pub(crate) async fn pause(&mut self, policy: RetryPolicy, tally: &Tally, failure: Failure) -> Result<(), Error> {
        tally.ended(Some(&failure.error));
        if !failure.transient {
            // A refusal of what was tried before says nothing of that try.
            return Err(if self.retries == 0 { failure.error } else { failure.error.in_vain() });
        }
        let pause = pause(self.retries, forebay_runtime::random()).max(failure.after.unwrap_or_default());
        let waited = self.began.elapsed();
        if self.retries >= policy.retries_max || waited + pause >= policy.deadline {
            return Err(self.gave_up(failure.error));
        }
        let left = Left::new(deadline::left());
        if !left.lets_begin_after(pause) {
            // Whoever asked is waiting still, and is not told sooner than by his own clock: another one may ask for the same meanwhile.
            forebay_runtime::time::sleep(left.known().unwrap_or_default()).await;
            return Err(self.gave_up(failure.error));
        }
        tracing::debug!(error = %failure.error, retry = self.retries + 1, pause_ms = pause.as_millis() as u64, "trying again");
        forebay_runtime::time::sleep(pause).await;
        // Who has asked may have gone away in the meantime.
        if deadline::is_over() {
            return Err(self.gave_up(failure.error));
        }
        self.retries += 1;
        count(&tally.retries);
        Ok(())
    }

    fn gave_up(&self, error: Error) -> Error {
        let (tries, waited) = (self.retries + 1, self.began.elapsed());
        match tries {
            1 => error,
            _ => error.context(format!("gave up after {tries} tries in {:.1} s", waited.as_secs_f64())).in_vain(),
        }
    }
}

impl<'a> Tries<'a> {
    pub(crate) fn new(policy: RetryPolicy, tally: &'a Tally) -> Self {
        Self { policy, tally, state: TryState::new() }
    }

    /// Whether an attempt was made before this one, which may have done its work unseen.
    pub(crate) fn is_again(&self) -> bool {
        self.state.retries > 0
    }

    /// Waits until the next try, or returns the error when there is none.
    pub(crate) async fn pause(&mut self, failure: Failure) -> Result<(), Error> {
        self.state.pause(self.policy, self.tally, failure).await
    }
}

/// Doubles with every retry, and is anywhere between half and one and a half of that, as `random` (0..1) says, so that
/// those who failed together don't come back together.
fn pause(retries: u32, random: f64) -> Duration {
    let mean = PAUSE_MIN.saturating_mul(1 << retries.min(16)).min(PAUSE_MAX);
    mean.mul_f64(0.5 + random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Failure {
        Failure::transient(Error::retry("503"))
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_is_not_tried_again() {
        let policy = RetryPolicy { retries_max: 1_000, deadline: Duration::from_secs(120) };
        let tally = Tally::default();
        let began = forebay_runtime::time::instant();
        let tries = async |tally: &Tally| {
            let mut state = TryState::new();
            loop {
                if let Err(error) = state.pause(policy, tally, refused()).await {
                    return (error, deadline::is_over());
                }
            }
        };
        let waiting = Duration::from_secs(2);
        // As one that goes on in a task of its own: no clock ends it there.
        let two = async { deadline::Waiting::begin() };
        let waiting_for = deadline::within(waiting, two).await.unwrap();
        let (error, is_over) = waiting_for.waited().scope(tries(&tally)).await;
        assert!(error.is_in_vain() && error.message().starts_with("gave up after ") && is_over, "{error}");
        assert!((waiting..waiting * 11 / 10).contains(&began.elapsed()), "{:?}", began.elapsed());
        let retries = tally.read().retries;
        assert!((3..=6).contains(&retries), "{retries} pauses of 50 ms and twice as long each time");

        let began = forebay_runtime::time::instant();
        let waited = waiting_for.waited();
        drop(waiting_for);
        let (error, _) = waited.scope(tries(&tally)).await;
        assert!(!error.is_in_vain() && began.elapsed() < PAUSE_MIN, "nobody waits: one try, and none after it: {error}");
        assert_eq!(tally.read().retries, retries);

        let (error, is_over) = tries(&tally).await;
        assert!(error.is_in_vain() && !is_over, "{error}");
        assert!(began.elapsed() > Duration::from_secs(100), "where nobody has said how long he waits it is as before");
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_scatter() {
        assert_eq!(pause(0, 0.5), PAUSE_MIN);
        assert_eq!(pause(3, 0.5), PAUSE_MIN * 8);
        assert_eq!(pause(40, 0.5), PAUSE_MAX);
        assert!(pause(3, 0.0) < pause(3, 0.9));
    }
}
