//! What eviction remembers of blocks that are gone, so that one which comes back soon is known to be wanted.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;

use crate::table::HashedAlready;

/// Blocks that went without having been used again, the latest ones, by fingerprint: at most 20 bytes each. Two blocks
/// with one fingerprint (1 in 4 billion) cost a wrong guess of the policy, no more.
#[derive(Default)]
pub(crate) struct Ghost {
    order: VecDeque<u32>,
    set: HashSet<u32, BuildHasherDefault<HashedAlready>>,
}

impl Ghost {
    /// Remembers a block, and forgets the oldest beyond `limit`.
    pub fn push(&mut self, fingerprint: u32, limit: usize) {
        if self.set.insert(fingerprint) {
            self.order.push_back(fingerprint);
        }
        while self.order.len() > limit {
            if let Some(oldest) = self.order.pop_front() {
                self.set.remove(&oldest);
            }
        }
    }

    /// Whether the block is remembered; it is forgotten by that.
    pub fn take(&mut self, fingerprint: u32) -> bool {
        // Its place in the order stays: taken once more before that comes up, it is forgotten early.
        self.set.remove(&fingerprint)
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        self.order.capacity() * size_of::<u32>() + self.set.capacity() * (size_of::<u32>() + 1) * 8 / 7
    }
}
