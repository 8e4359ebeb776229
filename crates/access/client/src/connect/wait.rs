//! Waiting for what is away and comes back.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use forebay_types::{ErrorKind, Result, format_duration};

/// Between two looks at whether a process is back.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What is away for less than this is nothing to tell people about.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// How long a process that is away is waited for, and who is told of it.
#[derive(Clone)]
pub struct Wait {
    most: Duration,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
}

/// What comes after a failure.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    TryAgain,
    TellAndTryAgain,
    GiveUp,
}

/// What comes after something has failed: only what can come back is waited for, and who waits is told once.
fn next(kind: ErrorKind, waited: Duration, most: Duration, is_told: bool) -> Next {
    match kind {
        ErrorKind::Retry | ErrorKind::Closed if waited < most => match waited >= TELL_AFTER && !is_told {
            true => Next::TellAndTryAgain,
            false => Next::TryAgain,
        },
        _ => Next::GiveUp,
    }
}

impl Wait {
    /// Waits so long at most; `tell` is given a line once it takes more than a second.
    pub fn new(most: Duration, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { most, tell: Arc::new(tell) }
    }

    /// How long, at most.
    pub fn most(&self) -> Duration {
        self.most
    }

    /// Does something that needs `what`, until it goes well: tries again as long as it fails with `Retry` or `Closed`. What it fails
    /// with at last says for how long it was tried.
    pub async fn until<T, F: Future<Output = Result<T>>>(&self, what: &str, mut work: impl FnMut() -> F) -> Result<T> {
        let (began, mut is_told) = (forebay_runtime::now(), false);
        loop {
            let error = match work().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let waited = began.elapsed();
            match next(error.kind(), waited, self.most, is_told) {
                Next::GiveUp if waited >= TELL_AFTER => {
                    let waited = format_duration(Duration::from_secs(waited.as_secs()));
                    return Err(error.context(format!("waited {waited} for {what} (--wait)")));
                }
                Next::GiveUp => return Err(error),
                Next::TellAndTryAgain => {
                    (self.tell)(&format!("waiting for {what}, {} at most", format_duration(self.most)));
                    is_told = true;
                }
                Next::TryAgain => {}
            }
            tracing::debug!(%error, what, "it is waited for");
            forebay_runtime::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Default for Wait {
    /// What is away fails at once.
    fn default() -> Self {
        Self::new(Duration::ZERO, |_| ())
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wait").field(&self.most).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_come_back_is_waited_for_and_told_once() {
        let (most, now, soon, later) = (Duration::from_secs(60), Duration::ZERO, TELL_AFTER, Duration::from_secs(61));
        assert_eq!(next(ErrorKind::Retry, now, most, false), Next::TryAgain);
        assert_eq!(next(ErrorKind::Closed, soon, most, false), Next::TellAndTryAgain);
        assert_eq!(next(ErrorKind::Retry, soon, most, true), Next::TryAgain);
        assert_eq!(next(ErrorKind::Retry, later, most, true), Next::GiveUp);
        assert_eq!(next(ErrorKind::Denied, now, most, false), Next::GiveUp, "waiting gives nobody rights");
        assert_eq!(next(ErrorKind::Retry, now, Duration::ZERO, false), Next::GiveUp);
    }
}
