//! What a client has read, by the way the bytes came.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a client has read since it connected, by the way the bytes came, and written in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Reads in place that needed no call, under a pin that was kept.
    pub reads_cached: u64,
    /// Reads in place for which the worker was asked.
    pub reads_in_place: u64,
    /// Those of them that a worker of this process answered without a message.
    pub reads_at_hand: u64,
    /// Bytes of reads in place, with a call or without.
    pub bytes_in_place: u64,
    /// Reads answered by a worker with bytes.
    pub reads_socket: u64,
    /// Their bytes.
    pub bytes_socket: u64,
    /// Reads of shared storage because no worker answered.
    pub reads_fallback: u64,
    /// Their bytes.
    pub bytes_fallback: u64,
    /// Blocks of temporary nodes that this process has written where they lie.
    pub blocks_written_in_place: u64,
}

/// The counters as they grow.
#[derive(Default)]
pub(crate) struct Counters {
    cached: AtomicU64,
    at_hand: AtomicU64,
    in_place: Way,
    socket: Way,
    fallback: Way,
    written: AtomicU64,
}

#[derive(Default)]
struct Way {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Way {
    fn add(&self, bytes: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.reads.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Counters {
    pub(crate) fn cached(&self, bytes: u64) {
        self.cached.fetch_add(1, Ordering::Relaxed);
        self.in_place.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn in_place(&self, bytes: u64) {
        self.in_place.add(bytes);
    }

    pub(crate) fn at_hand(&self, bytes: u64) {
        self.at_hand.fetch_add(1, Ordering::Relaxed);
        self.in_place.add(bytes);
    }

    pub(crate) fn socket(&self, bytes: u64) {
        self.socket.add(bytes);
    }

    pub(crate) fn fallback(&self, bytes: u64) {
        self.fallback.add(bytes);
    }

    pub(crate) fn written(&self) {
        self.written.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> ClientCounters {
        let (reads_in_place, bytes_in_place) = self.in_place.get();
        let (reads_socket, bytes_socket) = self.socket.get();
        let (reads_fallback, bytes_fallback) = self.fallback.get();
        let reads_cached = self.cached.load(Ordering::Relaxed);
        let reads_at_hand = self.at_hand.load(Ordering::Relaxed);
        ClientCounters {
            reads_cached,
            reads_in_place,
            reads_at_hand,
            bytes_in_place,
            reads_socket,
            bytes_socket,
            reads_fallback,
            bytes_fallback,
            blocks_written_in_place: self.written.load(Ordering::Relaxed),
        }
    }
}
