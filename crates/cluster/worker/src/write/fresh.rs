//! New versions that the coordinator is told of.

use forebay_types::ObjectVersion;
use parking_lot::Mutex;

/// Object versions that wait to be told at most; more are as good as old ones.
pub(super) const FRESH_MAX: usize = 10_000;
/// Of these in one heartbeat.
const BATCH: usize = 1000;

/// Object versions that were written through this worker or discovered by it, of which the coordinator has not heard.
#[derive(Default)]
pub(crate) struct Fresh(Mutex<Vec<ObjectVersion>>);

impl Fresh {
    pub(super) fn add(&self, version: &ObjectVersion) {
        let mut waiting = self.0.lock();
        if version.size > 0 && waiting.len() < FRESH_MAX {
            waiting.push(version.clone());
        }
    }

    /// What the next heartbeat tells.
    pub(crate) fn first(&self) -> Vec<ObjectVersion> {
        let waiting = self.0.lock();
        waiting[..waiting.len().min(BATCH)].to_vec()
    }

    /// The coordinator has heard of the first `count`.
    pub(crate) fn heard(&self, count: usize) {
        let mut waiting = self.0.lock();
        assert!(count <= waiting.len(), "only what was told is heard of");
        waiting.drain(..count);
    }
}
