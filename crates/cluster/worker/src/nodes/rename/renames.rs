//! How renames to other workers ended, for who asks.

use std::collections::{HashSet, VecDeque};

/// Renames that are remembered for targets that did not hear that they were committed.
const COMMITTED_MAX: usize = 10_000;

/// Renames from this worker to others, by their numbers, for targets that ask how they ended.
pub(in crate::nodes) struct Renames {
    /// What numbers of this process begin with.
    process: u64,
    under_way: HashSet<u128>,
    /// The target may not have heard of it; the oldest first.
    committed: VecDeque<u128>,
}

impl Renames {
    pub(in crate::nodes) fn new(process: u64) -> Self {
        Self { process, under_way: HashSet::new(), committed: VecDeque::new() }
    }

    /// The number of one that begins.
    pub(in crate::nodes) fn begin(&mut self) -> u128 {
        let rename = (u128::from(self.process) << 64) | u128::from(forebay_runtime::random::<u64>());
        self.under_way.insert(rename);
        rename
    }

    /// It is committed, or was given up.
    pub(in crate::nodes) fn end(&mut self, rename: u128, committed: bool) {
        self.under_way.remove(&rename);
        if committed {
            self.committed.push_back(rename);
            if self.committed.len() > COMMITTED_MAX {
                self.committed.pop_front();
            }
            assert!(self.committed.len() <= COMMITTED_MAX, "{} renames are remembered", self.committed.len());
        }
    }

    /// The target has heard how it ended, and does not ask.
    pub(in crate::nodes) fn forget(&mut self, rename: u128) {
        self.committed.retain(|other| *other != rename);
    }

    /// Whether it is committed yet; none when it was given up. What an earlier process of this worker had is gone, so that the
    /// target has the only one.
    pub(in crate::nodes) fn outcome(&self, rename: u128) -> Option<bool> {
        if (rename >> 64) as u64 != self.process || self.committed.contains(&rename) {
            return Some(true);
        }
        self.under_way.contains(&rename).then_some(false)
    }
}
