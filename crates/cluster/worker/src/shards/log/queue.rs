//! Calls that wait to change a shard.

use std::time::{Duration, Instant};

use forebay_protocol::CHANGES_MAX;
use forebay_shard_store::WantedChange;
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Bytes of calls, as they were sent, that go into one object.
const OBJECT_BYTES_MAX: usize = 4 << 20;
/// Calls of a shard that may wait, and their bytes.
const WAITING_MAX: usize = 1024;
const WAITING_BYTES_MAX: usize = 16 << 20;
/// When one that finds no room may be asked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Calls that wait to be made.
#[derive(Default)]
pub(in crate::shards) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    calls: Vec<Call>,
    bytes: usize,
    /// Somebody makes calls.
    is_served: bool,
}

/// The changes of one call.
pub(in crate::shards) struct Call {
    pub(in crate::shards) id: u128,
    /// An object that the log had before it was asked for first, where it was asked for before.
    pub(in crate::shards) after: Option<u64>,
    pub(in crate::shards) changes: Vec<WantedChange>,
    /// As they were sent.
    pub(in crate::shards) bytes: usize,
    pub(in crate::shards) came: Instant,
    pub(in crate::shards) done: oneshot::Sender<Result<u64>>,
}

impl Queue {
    /// Has a call wait; true when nobody makes calls yet. `Retry` when too many wait.
    pub(in crate::shards) fn push(&self, call: Call) -> Result<bool> {
        let mut waiting = self.0.lock();
        if waiting.calls.len() >= WAITING_MAX || waiting.bytes + call.bytes > WAITING_BYTES_MAX {
            let many = format!("{} calls wait to change this shard: ask again later", waiting.calls.len());
            return Err(Error::retry(many).after(AGAIN_AFTER));
        }
        waiting.bytes += call.bytes;
        waiting.calls.push(call);
        Ok(!std::mem::replace(&mut waiting.is_served, true))
    }

    /// The calls of the next object; none at the end, and the next call is to be served anew.
    pub(in crate::shards) fn take(&self) -> Option<Vec<Call>> {
        let mut waiting = self.0.lock();
        let (mut bytes, mut changes) = (0, 0);
        let fits = |call: &Call| {
            bytes += call.bytes;
            changes += call.changes.len();
            bytes <= OBJECT_BYTES_MAX && changes <= CHANGES_MAX
        };
        // One call alone always fits: its own bounds are no larger.
        let count = waiting.calls.iter().map(fits).take_while(|fits| *fits).count();
        assert!(count > 0 || waiting.calls.is_empty(), "a call fits into an object by itself");
        let calls: Vec<Call> = waiting.calls.drain(..count).collect();
        let bytes: usize = calls.iter().map(|call| call.bytes).sum();
        assert!(waiting.bytes >= bytes, "{bytes} bytes of {} are of calls that waited", waiting.bytes);
        waiting.bytes -= bytes;
        assert!(waiting.bytes == 0 || !waiting.calls.is_empty(), "{} bytes are of no call", waiting.bytes);
        waiting.is_served = !calls.is_empty();
        (!calls.is_empty()).then_some(calls)
    }
}

impl Call {
    /// Tells who waits.
    pub(in crate::shards) fn end(self, result: Result<u64>) {
        // Nobody may wait any more.
        let _ = self.done.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of one call, of whose bytes so many are counted.
    fn counted(bytes: usize) -> Queue {
        let queue = Queue::default();
        let (done, _) = oneshot::channel();
        let call = Call { id: 7, after: None, changes: Vec::new(), bytes: 100, came: forebay_runtime::now(), done };
        assert!(queue.push(call).unwrap());
        queue.0.lock().bytes = bytes;
        queue
    }

    #[test]
    fn what_is_sound_passes() {
        assert_eq!(counted(100).take().map(|calls| calls.len()), Some(1));
    }

    #[test]
    #[should_panic(expected = "are of calls that waited")]
    fn a_call_whose_bytes_are_not_counted_is_caught() {
        counted(99).take();
    }

    #[test]
    #[should_panic(expected = "1 bytes are of no call")]
    fn bytes_that_no_call_has_are_caught() {
        counted(101).take();
    }
}
