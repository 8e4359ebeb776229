//! What was asked of shared storage: of one mount for who asks, and of all in the process for whoever scrapes metrics.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_metrics::{Counter, Histogram, Kinds, table};
use forebay_protocol::StorageCounters;
use forebay_types::{Error, ErrorKind, Result};

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
}

impl Tally {
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
}
