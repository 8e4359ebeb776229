//! What a policy of eviction is asked and told, so that another one can take its place.

use crate::table::BlockRef;

/// What is found about a block that a policy considers for eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is not in the tier any more, or can't be evicted until it is admitted again; the policy drops its entry.
    Gone,
    /// It may not be evicted now: pinned, or kept and not on disk yet. The policy keeps its entry.
    Held,
    /// It was used since it was last asked about; one use is spent. The policy keeps its entry.
    Used,
    /// It is taken out of the tier; the policy drops its entry. With a hash to remember the block by.
    Taken(u32),
}

/// Chooses which block of a tier goes next. One instance a tier, one policy a file.
///
/// Uses are counted in the table, so that a read touches no state that all readers share; a policy learns of them by
/// the verdicts.
pub(crate) trait Eviction: Send {
    /// A block has its first pages in the tier. `fingerprint` is the hash that [`Verdict::Taken`] would carry.
    fn admit(&mut self, block: BlockRef, fingerprint: u32);

    /// Asks `judge` about one block after another until one is taken; false when none can be.
    fn evict(&mut self, judge: &mut dyn FnMut(BlockRef) -> Verdict) -> bool;

    /// Drops the entries that `live` denies.
    fn retain(&mut self, live: &mut dyn FnMut(BlockRef) -> bool);

    /// Entries, those of blocks that are gone among them.
    fn len(&self) -> usize;

    /// Blocks that were admitted again while they were remembered, since the start.
    fn returned(&self) -> u64;

    /// Blocks that are remembered after they went.
    fn remembered(&self) -> usize;

    /// Bytes on the heap, about.
    fn heap_bytes(&self) -> usize;
}
