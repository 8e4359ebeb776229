//! The asking side of a ring.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::Left;
use forebay_types::{Error, Result};
use parking_lot::Mutex;

use super::pace::Pace;
use super::slots::{Look, MESSAGE_BYTES_MAX, Slots};

/// How long a caller spins for its answer. What takes longer comes by the socket.
const SPIN: Duration = Duration::from_micros(20);
/// How long one looks for it that lets others go on meanwhile: those before it have their turn first.
const IN_TURNS: Duration = Duration::from_micros(100);
/// Looks until others that share the core have their turn.
const LOOKS: u32 = 16;

/// Calls that go by the socket after one that looked in vain: the server's thread has no core now.
const SKIPPED: u32 = 32;

/// The asking side of a ring.
pub(crate) struct Ring {
    slots: Slots,
    /// Number of the next call.
    next: Mutex<u64>,
    answered: AtomicU64,
    skip: AtomicU32,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Asked {
    Answer(Bytes, Bytes),
    /// The answer comes by the socket.
    Later,
    /// It must be asked by the socket.
    Not,
}

impl Ring {
    /// `Invalid` when the memory is no ring of this version.
    pub(crate) fn open(descriptor: OwnedFd) -> Result<Self> {
        Ok(Self { slots: Slots::open(descriptor)?, next: Mutex::new(0), answered: AtomicU64::new(0), skip: AtomicU32::new(0) })
    }

    /// Calls that were answered in it.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }

    /// Asks, if the server polls and there is room, and looks for the answer as long as that is shorter than to wait for it: it spins, or
    /// other calls of the thread go on meanwhile ([`Pace`]). An error means that the server breaks the protocol.
    pub(crate) async fn ask(&self, tag: u64, left: Left, meta: &[u8], payload: &[Bytes]) -> Result<Asked> {
        let Some(call) = self.put(tag, left, meta, payload) else { return Ok(Asked::Not) };
        let under_way = UnderWay { ring: self, call, is_over: false };
        match Pace::of_thread(Pace::begin) {
            None => under_way.spin(),
            Some(number) => {
                let asked = under_way.in_turns().await;
                Pace::of_thread(|pace| pace.end(number));
                asked
            }
        }
    }

    /// Puts a request in; its number, if it is there for the server.
    fn put(&self, tag: u64, left: Left, meta: &[u8], payload: &[Bytes]) -> Option<u64> {
        let short = payload.len() <= 1 && meta.len() + payload.first().map_or(0, Bytes::len) <= MESSAGE_BYTES_MAX;
        if !short || !self.slots.is_awake() {
            return None;
        }
        if self.skip.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return None;
        }
        let payload = payload.first().map_or(&[][..], |payload| payload);
        let mut next = self.next.lock();
        let call = *next;
        self.slots.put(call, tag, left, meta, payload).then(|| {
            *next += 1;
            call
        })
    }
}

/// A request in a slot, which is another call's when this is dropped.
struct UnderWay<'r> {
    ring: &'r Ring,
    call: u64,
    /// The slot is none of this call's any more.
    is_over: bool,
}

impl UnderWay<'_> {
    fn spin(mut self) -> Result<Asked> {
        let mut began = None;
        loop {
            for _ in 0..LOOKS {
                if let Some(asked) = self.look()? {
                    return Ok(asked);
                }
                std::hint::spin_loop();
            }
            if began.get_or_insert_with(forebay_runtime::now).elapsed() > SPIN {
                return self.leave();
            }
            std::thread::yield_now();
        }
    }

    async fn in_turns(mut self) -> Result<Asked> {
        let mut began = None;
        loop {
            for _ in 0..LOOKS {
                tokio::task::yield_now().await;
                if let Some(asked) = self.look()? {
                    return Ok(asked);
                }
                if began.get_or_insert_with(forebay_runtime::now).elapsed() > IN_TURNS {
                    return self.leave();
                }
            }
            // The server's thread may share the core.
            std::thread::yield_now();
        }
    }

    fn look(&mut self) -> Result<Option<Asked>> {
        self.found(self.ring.slots.look(self.call))
    }

    /// Looks no longer: what there is, or where it comes.
    fn leave(&mut self) -> Result<Asked> {
        let left = self.ring.slots.leave(self.call);
        if matches!(left, Ok(Look::Withdrawn)) {
            self.ring.skip.store(SKIPPED, Relaxed);
        }
        self.found(left)?.ok_or_else(|| Error::invalid("a ring's slot changes back"))
    }

    fn found(&mut self, look: Result<Look>) -> Result<Option<Asked>> {
        let asked = match look {
            Ok(Look::Nothing) => return Ok(None),
            Ok(Look::Answer(meta, payload)) => {
                self.ring.answered.fetch_add(1, Relaxed);
                Ok(Some(Asked::Answer(meta, payload)))
            }
            Ok(Look::Later) => Ok(Some(Asked::Later)),
            Ok(Look::Withdrawn) => Ok(Some(Asked::Not)),
            Err(error) => Err(error),
        };
        self.is_over = true;
        asked
    }
}

impl Drop for UnderWay<'_> {
    /// Nobody waits for it any more: who has asked cancels it by the socket, as any other.
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.ring.slots.leave(self.call);
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "models"))]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::super::slots::Found;
    use super::*;

    /// More than a ring has slots.
    const CALLS: u64 = 40;

    /// A server's side that polls, and its client's, whose calls let each other go on.
    fn pair() -> (Slots, Ring) {
        let (server, descriptor) = Slots::create(true).unwrap();
        server.set_awake(true);
        Pace::of_thread(|pace| *pace = Pace::together(u32::MAX));
        (server, Ring::open(descriptor).unwrap())
    }

    type Asking<'r> = Pin<Box<dyn Future<Output = Result<Asked>> + 'r>>;

    fn asking(ring: &Ring, call: u64) -> Asking<'_> {
        Box::pin(ring.ask(call + 1, Left::default(), b"asked", &[]))
    }

    fn poll(asking: &mut Asking<'_>) -> Poll<Result<Asked>> {
        asking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn calls_of_one_thread_are_in_the_ring_together() {
        let (server, ring) = pair();
        let mut calls: Vec<_> = (0..8).map(|call| asking(&ring, call)).collect();
        assert!(calls.iter_mut().all(|call| poll(call).is_pending()), "none keeps the thread");
        for call in 0..8 {
            let Found::Request(request) = server.take(call).unwrap() else { panic!("call {call} is not there") };
            assert!(server.answer(call, &request.tag.to_le_bytes(), &[]));
        }
        for (mut call, tag) in calls.into_iter().zip(1_u64..) {
            match poll(&mut call) {
                Poll::Ready(Ok(Asked::Answer(meta, _))) => assert_eq!(&meta[..], tag.to_le_bytes()),
                other => panic!("{other:?} is no answer"),
            }
        }
        assert_eq!(ring.answered(), 8);
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_leaves_its_slot_to_others() {
        let (server, ring) = pair();
        for call in 0..CALLS {
            let mut dropped = asking(&ring, call);
            assert!(poll(&mut dropped).is_pending());
            match call % 3 {
                // Before the server has seen it.
                0 => {
                    drop(dropped);
                    assert!(matches!(server.take(call).unwrap(), Found::Withdrawn));
                }
                // While the server is at it.
                1 => {
                    assert!(matches!(server.take(call).unwrap(), Found::Request(_)));
                    drop(dropped);
                    assert!(!server.answer(call, b"answer", &[]), "nobody looks there any more");
                }
                // Once it is answered.
                _ => {
                    assert!(matches!(server.take(call).unwrap(), Found::Request(_)));
                    assert!(server.answer(call, b"answer", &[]));
                    drop(dropped);
                }
            }
        }
        assert!(poll(&mut asking(&ring, CALLS)).is_pending(), "the ring is not full");
        assert!(server.has(CALLS));
    }

    #[tokio::test]
    async fn a_call_that_the_server_does_not_take_goes_by_the_socket_soon() {
        let (_server, ring) = pair();
        assert!(matches!(ring.ask(1, Left::default(), b"asked", &[]).await, Ok(Asked::Not)));
        assert!(matches!(poll(&mut asking(&ring, 1)), Poll::Ready(Ok(Asked::Not))), "and so do those after it");
    }
}
