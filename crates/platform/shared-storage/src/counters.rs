//! What was asked of shared storage, and what went wrong last: of one mount for who asks, and of all in the process for whoever scrapes metrics.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_metrics::{Counter, Histogram, Kinds, table};
use forebay_protocol::StorageCounters;
use forebay_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

/// For so long it is told what went wrong, if nobody has asked again meanwhile.
const TROUBLE_TOLD_FOR: Duration = Duration::from_secs(300);
/// A request that is given up after so long without an answer says that something is wrong.
const LONG: Duration = Duration::from_secs(20);

/// The counters while they count.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) gets: AtomicU64,
    pub(crate) heads: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) puts: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) socket_bytes_in: AtomicU64,
    /// Why the last request, or try of one, has failed, and when; none where it was answered.
    trouble: Mutex<Option<(Instant, String)>>,
}

/// A request that is waited for.
struct Asked<'a> {
    tally: &'a Tally,
    began: Instant,
    is_answered: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let waited = self.began.elapsed();
        if !self.is_answered && waited >= LONG {
            let now = forebay_runtime::now();
            // What its tries met says more.
            let said = || (now, format!("a request had no answer for {} s when it was given up", waited.as_secs()));
            self.tally.trouble.lock().get_or_insert_with(said).0 = now;
        }
    }
}

impl Tally {
    /// Waits for a request, and keeps what is wrong where it fails, or is given up after long.
    pub(crate) async fn watched<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let mut asked = Asked { tally: self, began: forebay_runtime::now(), is_answered: false };
        let answered = call.await;
        asked.is_answered = true;
        self.ended(answered.as_ref().err());
        answered
    }

    /// A request, or a try of one, has ended so.
    pub(crate) fn ended(&self, failure: Option<&Error>) {
        let trouble = failure.filter(|error| is_failure(error));
        *self.trouble.lock() = trouble.map(|error| (forebay_runtime::now(), error.message().to_string()));
    }

    /// What is wrong, in words.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.as_ref().filter(|(at, _)| at.elapsed() < TROUBLE_TOLD_FOR).map(|(_, said)| said.clone())
    }

    pub(crate) fn read(&self) -> StorageCounters {
        StorageCounters {
            gets: self.gets.load(Relaxed),
            heads: self.heads.load(Relaxed),
            lists: self.lists.load(Relaxed),
            puts: self.puts.load(Relaxed),
            deletes: self.deletes.load(Relaxed),
            retries: self.retries.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            socket_bytes_in: self.socket_bytes_in.load(Relaxed),
        }
    }
}

/// Counts one more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Counts that many more.
pub(crate) fn count_by(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Relaxed);
}

/// What requests are called; `other` are those of S3's own that are passed on.
const METHODS: [&str; 6] = ["get", "head", "list", "put", "delete", "other"];

struct Meters {
    seconds: Kinds<Histogram>,
    failures: Kinds<Counter>,
}

static METERS: LazyLock<Meters> = LazyLock::new(|| Meters {
    seconds: Kinds::new(&table::STORAGE_REQUEST_SECONDS, &METHODS),
    failures: Kinds::new(&table::STORAGE_FAILURES, &METHODS),
});

/// Measures a call until it has its answer. One that is given up meanwhile is not counted.
pub(crate) async fn measured<T>(method: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
    let began = forebay_runtime::now();
    let answered = call.await;
    if let (Some(seconds), Some(failures)) = (METERS.seconds.of(method), METERS.failures.of(method)) {
        seconds.record(began.elapsed());
        if answered.as_ref().is_err_and(is_failure) {
            failures.add(1);
        }
    }
    answered
}

/// Whether something is wrong with the storage or the way to it: that an object is not there, or is another one, is an answer.
fn is_failure(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Closed)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn what_is_not_there_has_not_failed() {
        let seen = || (table::STORAGE_REQUEST_SECONDS.with(["other"]).count(), table::STORAGE_FAILURES.with(["other"]).get());
        let before = seen();
        let answers = [Ok(()), Err(Error::not_found("gone")), Err(Error::conflict("another")), Err(Error::retry("no answer"))];
        for answer in answers {
            let _ = measured("other", async { answer }).now_or_never().expect("it waits for nothing");
        }
        assert_eq!(seen(), (before.0 + 4, before.1 + 1));
    }

    #[test]
    fn what_is_wrong_is_told_until_there_is_an_answer() {
        let tally = Tally::default();
        let ask = |answer: Result<()>| tally.watched(async { answer }).now_or_never().expect("it waits for nothing");
        for answer in [Ok(()), Err(Error::not_found("gone")), Err(Error::conflict("another"))] {
            let _ = ask(Err(Error::denied("no longer your bucket")));
            assert_eq!(tally.trouble().as_deref(), Some("no longer your bucket"));
            let _ = ask(answer);
            assert_eq!(tally.trouble(), None, "it answers");
        }
    }

    #[test]
    fn a_request_that_is_given_up_after_long_says_so() {
        let tally = Tally::default();
        let give_up = |after: Duration| {
            let began = forebay_runtime::now().checked_sub(after).expect("the machine has run for longer");
            drop(Asked { tally: &tally, began, is_answered: false });
        };
        give_up(LONG / 2);
        assert_eq!(tally.trouble(), None, "whoever asked went away");
        give_up(LONG);
        assert!(tally.trouble().is_some_and(|said| said.contains("no answer for 20 s")));
        tally.ended(Some(&Error::retry("the try before it says why")));
        give_up(LONG);
        assert_eq!(tally.trouble().as_deref(), Some("the try before it says why"));
    }
}
