//! What reads have yet to bring, counted for as long as somebody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::limiter::Limiter;

/// Bytes that a read will bring; they no longer count when they have come or the read is given up.
pub(crate) struct Outstanding {
    limiter: Arc<Limiter>,
    left: AtomicU64,
}

impl Outstanding {
    pub(super) fn new(limiter: Arc<Limiter>, bytes: u64) -> Self {
        limiter.outstanding_bytes.fetch_add(bytes, Relaxed);
        Self { limiter, left: AtomicU64::new(bytes) }
    }

    pub(crate) fn arrived(&self, bytes: u64) {
        let bytes = bytes.min(self.left.load(Relaxed));
        self.left.fetch_sub(bytes, Relaxed);
        self.limiter.outstanding_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.limiter.outstanding_bytes.fetch_sub(*self.left.get_mut(), Relaxed);
    }
}
