//! Which workers live, as the next coordinator is to know it: what is to be written of that, and what is.

use std::time::Duration;

use forebay_runtime::time::{Instant, instant, timeout};
use forebay_types::WorkerId;
use tokio::sync::watch;

/// How long views are held back after a change of members that is not written: a database that is away is not to keep workers out.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// Workers with their addresses.
pub(crate) type Workers = Vec<(WorkerId, String)>;

/// What is to be written.
pub(crate) struct Wanted {
    number: u64,
    workers: Workers,
    since: Instant,
}

/// Who lives, and whether the next coordinator would know it: one that does not takes a worker for lost that answers from what it has.
pub(crate) struct Remembered {
    wanted: watch::Sender<Wanted>,
    /// The number of what was written last.
    written: watch::Sender<u64>,
}

impl Remembered {
    /// These are written already.
    pub(crate) fn new(mut workers: Workers) -> Self {
        workers.sort();
        let wanted = Wanted { number: 0, workers, since: instant() };
        Self { wanted: watch::Sender::new(wanted), written: watch::Sender::new(0) }
    }

    /// These are to be written, and no others any more.
    pub(crate) fn want(&self, mut workers: Workers) {
        workers.sort();
        self.wanted.send_if_modified(|wanted| {
            debug_assert!(workers.is_sorted_by(|one, next| one.0 < next.0), "each worker once: {workers:?}");
            let is_new = wanted.workers != workers;
            if is_new {
                *wanted = Wanted { number: wanted.number + 1, workers, since: instant() };
            }
            is_new
        });
    }

    /// Hears of each change of what is to be written.
    pub(crate) fn follow(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(crate) fn is_unwritten(&self) -> bool {
        self.wanted.borrow().number > *self.written.borrow()
    }

    /// What is to be written and is not, with its number.
    pub(crate) fn unwritten(&self) -> Option<(u64, Workers)> {
        let wanted = self.wanted.borrow();
        let is_unwritten = wanted.number > *self.written.borrow();
        is_unwritten.then(|| (wanted.number, wanted.workers.clone()))
    }

    pub(crate) fn set_written(&self, number: u64) {
        debug_assert!(number <= self.wanted.borrow().number, "{number} was never to be written");
        let before = self.written.send_replace(number);
        debug_assert!(before < number, "{number} is written after {before}");
    }

    /// Waits until all is written that is to be by now, as long as that is not for too long.
    pub(crate) async fn wait(&self) {
        if !self.is_unwritten() {
            return;
        }
        let (number, since) = {
            let wanted = self.wanted.borrow();
            (wanted.number, wanted.since)
        };
        let mut written = self.written.subscribe();
        let seen = async { written.wait_for(|written| *written >= number).await.is_ok() };
        let _ = timeout(WRITTEN_WITHIN.saturating_sub(since.elapsed()), seen).await;
    }
}

#[cfg(test)]
mod tests;
