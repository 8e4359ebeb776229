//! Which failures are worth another try, after what pause, and when it is enough; bytes that come buy patience.

use std::time::Duration;

use forebay_runtime::time::Instant;
use forebay_types::{Error, ErrorKind};

use crate::counters::{Tally, count};

/// Shortest mean pause before a retry.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause before a retry, unless the server asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Received bytes that count as progress: retries start over after them.
const PROGRESS_BYTES: u64 = 256 << 10;

/// What an error says after several tries, and what it says of those of `object_store`.
const GAVE_UP: &str = "gave up after ";
const GAVE_UP_ELSEWHERE: &str = " retries, max_retries: ";

/// Whether an error, of another process maybe, says that shared storage was asked again and again until it was enough.
pub fn gave_up(error: &Error) -> bool {
    error.kind() == ErrorKind::Retry && [GAVE_UP, GAVE_UP_ELSEWHERE].iter().any(|said| error.message().contains(said))
}

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
            return Err(failure.error);
        }
        let pause = pause(self.retries, forebay_runtime::random()).max(failure.after.unwrap_or_default());
        let waited = self.began.elapsed();
        if self.retries >= policy.retries_max || waited + pause >= policy.deadline {
            let tries = self.retries + 1;
            return Err(match tries {
                1 => failure.error,
                _ => failure.error.context(format!("{GAVE_UP}{tries} tries in {:.1} s", waited.as_secs_f64())),
            });
        }
        self.retries += 1;
        count(&tally.retries);
        tracing::debug!(error = %failure.error, retry = self.retries, pause_ms = pause.as_millis() as u64, "trying again");
        forebay_runtime::time::sleep(pause).await;
        Ok(())
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

    #[test]
    fn pauses_double_up_to_a_limit_and_scatter() {
        assert_eq!(pause(0, 0.5), PAUSE_MIN);
        assert_eq!(pause(3, 0.5), PAUSE_MIN * 8);
        assert_eq!(pause(40, 0.5), PAUSE_MAX);
        assert!(pause(3, 0.0) < pause(3, 0.9));
    }
}
