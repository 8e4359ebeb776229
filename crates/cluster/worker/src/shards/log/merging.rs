//! How it stands with the merge of a shard's changes into its files.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a shard waits that was not merged when it was its turn: others come first meanwhile.
const MERGE_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How it stands with the merge of its changes.
#[derive(Default)]
pub(in crate::shards) struct Merging {
    is_under_way: AtomicBool,
    /// When the last one ended that came to nothing.
    failed: Mutex<Option<Instant>>,
}

impl Merging {
    /// One is about to be made; false where one is already.
    pub(in crate::shards) fn begin(&self) -> bool {
        !self.is_under_way.swap(true, Relaxed)
    }

    pub(in crate::shards) fn end(&self, is_merged: bool) {
        *self.failed.lock() = (!is_merged).then(forebay_runtime::now);
        let was_under_way = self.is_under_way.swap(false, Relaxed);
        debug_assert!(was_under_way, "what ends has begun");
    }

    pub(in crate::shards) fn is_under_way(&self) -> bool {
        self.is_under_way.load(Relaxed)
    }

    /// Whether one came to nothing a short while ago.
    pub(in crate::shards) fn is_put_off(&self) -> bool {
        self.failed.lock().is_some_and(|failed| forebay_runtime::now().saturating_duration_since(failed) < MERGE_AGAIN_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_that_comes_to_nothing_is_put_off_and_made_once_at_a_time() {
        let merging = Merging::default();
        assert!(merging.begin() && !merging.begin() && merging.is_under_way());
        merging.end(false);
        assert!(merging.is_put_off() && !merging.is_under_way() && merging.begin());
        merging.end(true);
        assert!(!merging.is_put_off());
    }
}
