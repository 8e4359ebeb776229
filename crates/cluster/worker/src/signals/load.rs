//! Reads under way, and how fast their answers leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_transport::{Leaving, Sent};
use parking_lot::Mutex;

use super::popularity::UnderWay;

/// For no longer an answer counts as being sent: a reader that takes it more slowly says nothing about the worker.
const SLOW: Duration = Duration::from_secs(5);

/// Reads under way, for the queue length that answers carry and for work that lets readers go first: from their question to the last
/// byte of their answer.
#[derive(Clone, Default)]
pub(crate) struct Load(Arc<Measures>);

#[derive(Default)]
struct Measures {
    queue: AtomicU32,
    busy: Busy,
    leaving: Leaving,
}

impl Load {
    /// A read begins.
    pub(crate) fn begin(&self) -> Queued {
        self.0.queue.fetch_add(1, Relaxed);
        Queued { load: self.clone(), at_hand: forebay_runtime::now(), bytes: 0, under_way: None }
    }

    /// Reads under way.
    pub(crate) fn queue(&self) -> u32 {
        self.0.queue.load(Relaxed)
    }

    /// Time in which answers were at hand and not sent to their last byte, and the bytes that left this host, since the last time that this
    /// was asked.
    pub(crate) fn take_busy(&self) -> (Duration, u64) {
        self.0.busy.take(self.0.leaving.held())
    }

    /// The connections by which answers leave.
    pub(crate) fn leaving(&self) -> Leaving {
        self.0.leaving.clone()
    }
}

/// A read that is under way.
pub(crate) struct Queued {
    load: Load,
    /// Since when its bytes were here.
    at_hand: Instant,
    /// Bytes that its answer sends.
    bytes: u64,
    /// Ends with it.
    under_way: Option<UnderWay>,
}

impl Queued {
    /// Its bytes were here all the time, or are now.
    pub(crate) fn found(&mut self, all_the_time: bool) {
        if !all_the_time {
            self.at_hand = forebay_runtime::now();
        }
    }

    /// It is of a segment.
    pub(crate) fn reads(&mut self, under_way: Option<UnderWay>) {
        self.under_way = under_way;
    }

    /// So many of them are sent.
    pub(crate) fn sends(&mut self, bytes: u64) {
        self.bytes = bytes;
    }
}

forebay_types::shown!(Queued: bytes);

impl Sent for Queued {
    fn sent(self: Box<Self>) {
        if self.bytes > 0 {
            self.load.0.busy.answered(self.at_hand, self.bytes);
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let before = self.load.0.queue.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a read ends once");
    }
}

/// Measures how fast a worker sends: the bytes of answers, and the time in which at least one of them was at hand and not sent to
/// its last byte. While a read waits for shared storage it says nothing about the worker.
#[derive(Default)]
struct Busy(Mutex<Measured>);

#[derive(Default)]
struct Measured {
    until: Option<Instant>,
    busy: Duration,
    bytes: u64,
    /// Of these, what the system still had when this was last asked.
    held: u64,
}

impl Busy {
    /// An answer that was at hand since then is sent now.
    fn answered(&self, at_hand: Instant, bytes: u64) {
        let now = forebay_runtime::now();
        let mut measured = self.0.lock();
        let from = measured.until.map_or(at_hand, |until| until.max(at_hand));
        let from = now.checked_sub(SLOW).map_or(from, |slow| from.max(slow));
        measured.busy += now.saturating_duration_since(from);
        measured.until = Some(now);
        measured.bytes += bytes;
    }

    /// Time and bytes since the last time that this was asked, where the system still has so many bytes of answers that are sent: they leave
    /// later. What it had the last time has left since, or is among them.
    fn take(&self, held: u64) -> (Duration, u64) {
        let mut measured = self.0.lock();
        let sent = measured.held + std::mem::take(&mut measured.bytes);
        // Beside the bytes of answers the system has some that say what they are, and of what is no read.
        measured.held = held.min(sent);
        debug_assert!(measured.held <= sent, "no more stays than was sent");
        (std::mem::take(&mut measured.busy), sent - measured.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_under_way_until_its_answer_is_sent() {
        let load = Load::default();
        let mut queued = load.begin();
        queued.found(true);
        queued.sends(5);
        assert_eq!(load.queue(), 1);
        std::thread::sleep(Duration::from_millis(20));
        Box::new(queued).sent();
        let (time, bytes) = load.take_busy();
        assert!(time >= Duration::from_millis(20), "{time:?}");
        assert_eq!((load.queue(), bytes), (0, 5));
        // An answer that nobody gets says nothing of the speed.
        let mut queued = load.begin();
        queued.sends(6);
        drop(queued);
        assert_eq!((load.queue(), load.take_busy()), (0, (Duration::ZERO, 0)));
    }

    #[test]
    fn a_read_that_waited_for_shared_storage_is_sent_from_when_it_had_its_bytes() {
        let load = Load::default();
        let mut queued = load.begin();
        std::thread::sleep(Duration::from_millis(50));
        queued.found(false);
        queued.sends(7);
        Box::new(queued).sent();
        let (time, bytes) = load.take_busy();
        assert!(bytes == 7 && time < Duration::from_millis(50), "{time:?}");
    }

    #[test]
    fn overlapping_reads_count_once() {
        let busy = Busy::default();
        let began = forebay_runtime::now();
        std::thread::sleep(Duration::from_millis(20));
        busy.answered(began, 5);
        busy.answered(began, 6);
        let (time, bytes) = busy.take(0);
        assert_eq!(bytes, 11);
        assert!(time >= Duration::from_millis(20) && time <= began.elapsed(), "{time:?}");
        assert_eq!(busy.take(0), (Duration::ZERO, 0));
    }

    #[test]
    fn what_the_system_has_of_an_answer_was_told_to_have_left() {
        let busy = Busy::default();
        let sent = |bytes, held| {
            busy.answered(forebay_runtime::now(), bytes);
            busy.take(held).1
        };
        assert_eq!(sent(100, 40), 60);
        assert_eq!(sent(50, 40), 50, "as much came as left");
        assert_eq!(busy.take(10).1, 30, "and leaves while nothing comes");
        assert_eq!(busy.take(10).1, 0, "a reader that takes nothing");
        assert_eq!(sent(5, 900), 0, "what is no answer is among it");
        assert_eq!(busy.take(0).1, 15);
    }
}
