//! Memory of payloads, used again by all connections of the process.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

/// Payloads below this come into memory that the allocator has at hand anyway.
const BUFFER_BYTES_MIN: usize = 32 << 10;
/// Payloads above this are rare, and a few of them would fill all of the room.
const BUFFER_BYTES_MAX: usize = 8 << 20;
/// Bytes kept in all for the payloads to come.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Buffers kept, which bounds the search for one that fits.
const KEPT_MAX: usize = 64;

static SHARED: Mutex<Weak<Buffers>> = Mutex::new(Weak::new());

/// The memory of payloads that are no longer used, for the next payloads of any connection of this process.
///
/// Fresh memory costs a page fault every 4 KiB, which is as much work as receiving into it. The one used last is taken
/// first, since it is the likeliest to be in a cache.
///
/// It lives as long as a connection holds it ([`Self::shared`]). Buffers that come back later are freed.
#[derive(Default)]
pub(crate) struct Buffers {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The one used last is at the end.
    buffers: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// A payload in memory that goes back when the last of its `Bytes` is dropped.
struct Payload {
    buffer: Vec<u8>,
    from: Weak<Buffers>,
}

/// A buffer that goes back when it is dropped.
pub(crate) struct Borrowed(Payload);

impl Deref for Borrowed {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0.buffer
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0.buffer
    }
}

impl Buffers {
    /// The process's; holding it says that payloads are expected.
    pub(crate) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock();
        shared.upgrade().unwrap_or_else(|| {
            let buffers = Arc::default();
            *shared = Arc::downgrade(&buffers);
            buffers
        })
    }

    /// Whether payloads of `len` bytes are received into buffers that are kept.
    pub(crate) fn suit(len: usize) -> bool {
        (BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&len)
    }

    /// An empty buffer for `len` bytes, at most a quarter larger.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let fits = len..=len + len / 4;
        let mut kept = self.kept.lock();
        let found = kept.buffers.iter().rposition(|buffer| fits.contains(&buffer.capacity()));
        match found.and_then(|index| kept.buffers.remove(index)) {
            Some(buffer) => {
                kept.bytes -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(len),
        }
    }

    /// A buffer as from [`Self::take`], which comes back when it is dropped.
    pub(crate) fn borrow(self: &Arc<Self>, len: usize) -> Borrowed {
        Borrowed(Payload { buffer: self.take(len), from: Arc::downgrade(self) })
    }

    /// The bytes of a buffer, which comes back when they are dropped.
    pub(crate) fn lend(self: &Arc<Self>, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Payload { buffer, from: Arc::downgrade(self) })
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut surplus = Vec::new();
        let mut kept = self.kept.lock();
        kept.bytes += buffer.capacity();
        kept.buffers.push_back(buffer);
        while kept.bytes > KEPT_BYTES_MAX || kept.buffers.len() > KEPT_MAX {
            let Some(oldest) = kept.buffers.pop_front() else { break };
            kept.bytes -= oldest.capacity();
            surplus.push(oldest);
        }
        // Freed without the lock.
        drop(kept);
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(from) = self.from.upgrade() {
            from.give_back(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn payload(buffers: &Arc<Buffers>, len: usize, byte: u8) -> Bytes {
        let mut buffer = buffers.take(len);
        assert!(buffer.is_empty(), "nothing of an earlier payload is left");
        buffer.resize(len, byte);
        buffers.lend(buffer)
    }

    #[test]
    fn memory_is_used_again_once_all_of_its_bytes_are_dropped() {
        let buffers = Arc::<Buffers>::default();
        let first = payload(&buffers, MIB, 1);
        let memory = first.as_ptr();
        let rest = first.slice(10..);
        drop(first);
        let second = payload(&buffers, MIB, 2);
        assert_ne!(second.as_ptr(), memory, "a slice holds it");
        assert!(rest.iter().all(|byte| *byte == 1), "untouched");
        drop(rest);
        assert_eq!(payload(&buffers, MIB - 100, 3).as_ptr(), memory);
        assert_ne!(payload(&buffers, MIB / 2, 4).as_ptr(), memory, "too large for this");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let buffers = Arc::<Buffers>::default();
        drop((0..9).map(|_| payload(&buffers, BUFFER_BYTES_MAX, 1)).collect::<Vec<_>>());
        assert_eq!(buffers.kept.lock().bytes, KEPT_BYTES_MAX);
        drop((0..100).map(|_| payload(&buffers, BUFFER_BYTES_MIN, 1)).collect::<Vec<_>>());
        let kept = buffers.kept.lock();
        assert_eq!((kept.buffers.len(), kept.bytes), (KEPT_MAX, KEPT_MAX * BUFFER_BYTES_MIN));
    }

    #[test]
    fn payloads_outlive_the_buffers() {
        let buffers = Arc::<Buffers>::default();
        let bytes = payload(&buffers, MIB, 7);
        drop(buffers);
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}
