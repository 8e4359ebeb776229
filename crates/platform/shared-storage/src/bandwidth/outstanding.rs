//! What reads have yet to bring, counted for as long as somebody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that are asked for and have not come, of all reads together.
#[derive(Default)]
pub(super) struct Awaited(Arc<AtomicU64>);

impl Awaited {
    /// A read begins that will bring so many.
    pub(super) fn begin(&self, bytes: u64) -> Outstanding {
        self.0.fetch_add(bytes, Relaxed);
        Outstanding { sum: Arc::clone(&self.0), left: AtomicU64::new(bytes) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Bytes that a read will bring; they no longer count when they have come or the read is given up.
pub(crate) struct Outstanding {
    sum: Arc<AtomicU64>,
    left: AtomicU64,
}

impl Outstanding {
    pub(crate) fn arrived(&self, bytes: u64) {
        let bytes = bytes.min(self.left.load(Relaxed));
        self.left.fetch_sub(bytes, Relaxed);
        self.sum.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.sum.fetch_sub(*self.left.get_mut(), Relaxed);
    }
}
