//! The TCP connections to one worker, and which of them a call takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use forebay_transport::Connection;

use super::slot::Slot;

/// TCP connections to one worker at most.
const CONNECTIONS: usize = 3;
/// So many calls are on a connection before small ones take the next one: those that go together need one call of the system, and many are
/// more than one thread can read.
const TOGETHER: usize = 32;
/// A value that has more bytes is a large one.
const SMALL_BYTES: usize = 16 << 10;

/// What a call moves, as far as that is known before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Little.
    Small,
    /// A value, of which nobody knows how long it is: as long as those that were asked for lately.
    Value,
    /// Much, or nobody knows.
    Large,
}

/// The connections to one worker.
pub(super) struct Tcp {
    connections: [TcpSlot; CONNECTIONS],
    /// The value that came last was large.
    are_large: Arc<AtomicBool>,
}

struct TcpSlot {
    slot: Slot<Connection>,
    busy: Arc<Busy>,
}

/// The calls that are under way on a connection.
#[derive(Default)]
struct Busy {
    large: AtomicUsize,
    all: AtomicUsize,
}

/// A call under way.
pub(super) struct Call {
    busy: Arc<Busy>,
    /// It counts among the large ones.
    is_large: bool,
    are_large: Arc<AtomicBool>,
}

impl Tcp {
    pub(super) fn new() -> Self {
        let slot = |_| TcpSlot { slot: Slot::new(), busy: Arc::default() };
        Self { connections: std::array::from_fn(slot), are_large: Arc::default() }
    }

    /// The connection for a call, which counts there until it is dropped.
    pub(super) fn take(&self, weight: Weight) -> (&Slot<Connection>, Call) {
        let loads = self.connections.each_ref().map(|tcp| (tcp.busy.large.load(Relaxed), tcp.busy.all.load(Relaxed)));
        let is_large = match weight {
            Weight::Small => false,
            Weight::Value => self.are_large.load(Relaxed),
            Weight::Large => true,
        };
        let TcpSlot { slot, busy } = &self.connections[least(&loads, is_large)];
        busy.all.fetch_add(1, Relaxed);
        busy.large.fetch_add(usize::from(is_large), Relaxed);
        (slot, Call { busy: Arc::clone(busy), is_large, are_large: Arc::clone(&self.are_large) })
    }
}

impl Call {
    /// A value has come, by whose length the next ones go.
    pub(super) fn came(&self, bytes: usize) {
        let is_large = bytes > SMALL_BYTES;
        if self.are_large.load(Relaxed) != is_large {
            self.are_large.store(is_large, Relaxed);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let calls = self.busy.all.fetch_sub(1, Relaxed);
        self.busy.large.fetch_sub(usize::from(self.is_large), Relaxed);
        debug_assert!(calls > 0, "a call ends that was not begun");
    }
}

/// Which connection a call takes, by the large calls and all calls of each: a large one the least busy, a small one that where other small ones
/// are and the fewest large.
fn least(loads: &[(usize, usize)], is_large: bool) -> usize {
    debug_assert!(!loads.is_empty(), "a call takes one");
    let busy = |at: &usize| {
        let (large, all) = loads[*at];
        if is_large { (all, 0) } else { (large, all / TOGETHER) }
    };
    (0..loads.len()).min_by_key(busy).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many calls of each connection are under way.
    fn under_way(tcp: &Tcp) -> [usize; CONNECTIONS] {
        tcp.connections.each_ref().map(|tcp| tcp.busy.all.load(Relaxed))
    }

    fn take(tcp: &Tcp, weight: Weight, calls: usize) -> Vec<Call> {
        (0..calls).map(|_| tcp.take(weight).1).collect()
    }

    #[test]
    fn small_calls_go_together_and_large_ones_apart() {
        let tcp = Tcp::new();
        let small = take(&tcp, Weight::Small, 16);
        assert_eq!(under_way(&tcp), [16, 0, 0]);
        let large = take(&tcp, Weight::Large, 4);
        assert_eq!(under_way(&tcp), [16, 2, 2], "not behind the small ones");
        drop(large);
        let many = take(&tcp, Weight::Small, 3 * TOGETHER - 16);
        assert_eq!(under_way(&tcp), [TOGETHER; CONNECTIONS], "so many that one thread could not read them");
        drop((small, many));
        let large = take(&tcp, Weight::Large, 1);
        let small = take(&tcp, Weight::Small, 16);
        assert_eq!(under_way(&tcp), [1, 16, 0], "not behind a large one");
        drop((large, small));
        assert_eq!(under_way(&tcp), [0; CONNECTIONS]);
    }

    #[test]
    fn values_that_turn_out_to_be_large_go_apart_until_they_are_small_again() {
        let tcp = Tcp::new();
        take(&tcp, Weight::Value, 1)[0].came(1 << 20);
        let large = take(&tcp, Weight::Value, 6);
        assert_eq!(under_way(&tcp), [2; CONNECTIONS]);
        large[0].came(64);
        drop(large);
        let small = take(&tcp, Weight::Value, 6);
        assert_eq!(under_way(&tcp), [6, 0, 0]);
        drop(small);
    }

    #[test]
    fn calls_that_are_small_go_together_whatever_values_there_are() {
        let tcp = Tcp::new();
        take(&tcp, Weight::Value, 1)[0].came(1 << 20);
        let large = take(&tcp, Weight::Value, 1);
        let small = take(&tcp, Weight::Small, 8);
        assert_eq!(under_way(&tcp), [1, 8, 0]);
        drop((large, small));
    }
}
