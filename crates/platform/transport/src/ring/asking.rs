//! The asking side of a ring.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::Left;
use forebay_types::{Error, Result};
use parking_lot::Mutex;

use super::slots::{Look, MESSAGE_BYTES_MAX, Slots};

/// How long a caller spins for its answer. What takes longer comes by the socket.
const SPIN: Duration = Duration::from_micros(20);
/// Looks between two glances at the clock, by which others that share the core have their turn.
const LOOKS: u32 = 16;

/// Calls that go by the socket after one that spun in vain: the server's thread has no core now.
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

    /// Asks, if the server polls and there is room, and spins for the answer as long as that is shorter than to wait for it. An
    /// error means that the server breaks the protocol.
    pub(crate) fn ask(&self, tag: u64, left: Left, meta: &[u8], payload: &[Bytes]) -> Result<Asked> {
        let short = payload.len() <= 1 && meta.len() + payload.first().map_or(0, Bytes::len) <= MESSAGE_BYTES_MAX;
        if !short || !self.slots.is_awake() {
            return Ok(Asked::Not);
        }
        if self.skip.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Ok(Asked::Not);
        }
        let payload = payload.first().map_or(&[][..], |payload| payload);
        let call = {
            let mut next = self.next.lock();
            if !self.slots.put(*next, tag, left, meta, payload) {
                return Ok(Asked::Not);
            }
            *next += 1;
            *next - 1
        };
        let mut began = None;
        loop {
            for _ in 0..LOOKS {
                if let Some(asked) = self.asked(self.slots.look(call)?) {
                    return Ok(asked);
                }
                std::hint::spin_loop();
            }
            if began.get_or_insert_with(forebay_runtime::now).elapsed() > SPIN {
                let left = self.slots.leave(call)?;
                if matches!(left, Look::Withdrawn) {
                    self.skip.store(SKIPPED, Relaxed);
                }
                return self.asked(left).ok_or_else(|| Error::invalid("a ring's slot changes back"));
            }
            std::thread::yield_now();
        }
    }

    fn asked(&self, look: Look) -> Option<Asked> {
        match look {
            Look::Nothing => None,
            Look::Answer(meta, payload) => {
                self.answered.fetch_add(1, Relaxed);
                Some(Asked::Answer(meta, payload))
            }
            Look::Later => Some(Asked::Later),
            Look::Withdrawn => Some(Asked::Not),
        }
    }
}
