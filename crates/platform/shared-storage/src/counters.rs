use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Requests to and bytes from one shared storage, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// GET requests, or opened files.
    pub gets: u64,
    /// HEAD requests.
    pub heads: u64,
    /// List requests.
    pub lists: u64,
    /// PUT, POST and part requests.
    pub puts: u64,
    /// DELETE requests.
    pub deletes: u64,
    /// Requests that were tried again.
    pub retries: u64,
    /// Bytes of object data received.
    pub bytes_in: u64,
    /// Bytes of object data sent.
    pub bytes_out: u64,
    /// Bytes read from sockets, headers and all; 0 for file systems.
    pub socket_bytes_in: u64,
}

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
    pub(crate) fn read(&self) -> Counters {
        Counters {
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
