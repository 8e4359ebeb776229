//! When updates are gathered, when they are merged, and when whoever changes a shard has to wait.

/// How far updates run ahead of their compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateLimits {
    /// The latest updates are read through by each search; from this many bytes of them on a suffix array is made.
    pub gather_bytes: usize,
    /// A merge rewrites the shard, so it waits for an eighth of it, and for at least this many bytes.
    pub merge_bytes: usize,
    /// With this many bytes of updates a change waits for the merge. They take about five times as much memory.
    pub pending_bytes: usize,
}

impl Default for UpdateLimits {
    fn default() -> Self {
        Self { gather_bytes: 1 << 20, merge_bytes: 4 << 20, pending_bytes: 64 << 20 }
    }
}

impl UpdateLimits {
    /// The updates from which on it is worth to compress them into a shard of so many bytes of input.
    pub(super) fn merge_from(&self, input_bytes: u64) -> usize {
        // Half is left for what comes in during the merge.
        let most = (self.pending_bytes / 2).max(1);
        ((input_bytes / 8) as usize).clamp(self.merge_bytes.min(most), most)
    }
}
