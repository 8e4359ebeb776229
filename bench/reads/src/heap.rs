//! The live heap of this process, counted exactly: resident memory is too coarse for a few bytes a block.
#![allow(unsafe_code, reason = "a global allocator can't be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static LIVE: AtomicU64 = AtomicU64::new(0);

/// Bytes that are allocated now.
pub fn live_bytes() -> u64 {
    LIVE.load(Relaxed)
}

/// The system's allocator, counting.
pub struct Counting;

// SAFETY: every call goes to `System` unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller's promises for `alloc` are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: `memory` came from `System` with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as u64, Relaxed);
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: `memory` came from `System` with this layout.
        unsafe { System.realloc(memory, layout, size) }
    }
}
