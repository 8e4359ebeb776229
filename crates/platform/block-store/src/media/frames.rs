//! A small cache of checksums from disk, in memory that the DRAM tier accounts for.

#![allow(unsafe_code, reason = "views of frames under their locks")]

use std::sync::Arc;

use parking_lot::Mutex;

use super::Arena;

/// Pages of the DRAM tier that cache pages of the disk tier's checksums; each under a lock, at a fixed place by number.
pub(crate) struct Frames {
    arena: Arc<Arena>,
    /// Number of the first one in the arena.
    first: u64,
    holds: Box<[Mutex<Option<u64>>]>,
}

impl Frames {
    /// `count` frames of the arena from the `first` one on, which nobody else uses.
    pub fn new(arena: Arc<Arena>, first: u64, count: u64) -> Self {
        Self { arena, first, holds: (0..count).map(|_| Mutex::new(None)).collect() }
    }

    /// Works on the frame of page `number`: what it holds now (it may be another page), and its bytes.
    pub fn with<R>(&self, number: u64, work: impl FnOnce(&mut Option<u64>, &mut [u8]) -> R) -> R {
        let frame = number % self.holds.len() as u64;
        let mut holds = self.holds[frame as usize].lock();
        // SAFETY: views of a frame are made here only, and the frame's lock is held as long as this one lives.
        let bytes = unsafe { self.arena.frame(self.first + frame) };
        work(&mut holds, bytes)
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.holds)
    }
}
