//! What a pin does to the books: its blocks stay where they are, and what was freed meanwhile goes with the last one.

use std::sync::Arc;

use forebay_types::{Error, PageRun, Result, SegmentId};

use super::{Core, Reclaim};
use crate::table::{PageBits, Place, Segment, SegmentRef, Shard, TierKind, blocks_of};

/// Keeps blocks of a segment where they are, readable or not, as long as it lives.
pub(crate) struct BlockPin {
    core: Arc<Core>,
    segment: SegmentRef,
    pub run: PageRun,
}

impl BlockPin {
    /// Takes over a pin that [`Core::pin_blocks`] has set.
    pub fn new(core: &Arc<Core>, segment: SegmentRef, run: PageRun) -> Self {
        Self { core: core.clone(), segment, run }
    }
}

impl Drop for BlockPin {
    fn drop(&mut self) {
        self.core.unpin_blocks(self.segment, self.run);
    }
}

impl Core {
    /// Whether some of these pages are on disk and not in DRAM.
    pub fn is_on_disk_only(&self, id: SegmentId, block: u32, bits: PageBits) -> bool {
        self.table.by_id(id).by_id(id).is_some_and(|entry| !on_disk_only(entry, block, bits).is_empty())
    }

    /// Pins a block of which some pages are on disk only, with an extent in the DRAM tier to read them into; none when
    /// there is nothing to read. `Retry` when addresses have run out and nothing can be evicted.
    pub fn pin_for_load(self: &Arc<Self>, id: SegmentId, block: u32, bits: PageBits) -> Result<Option<(SegmentRef, BlockPin)>> {
        loop {
            let mut shard = self.table.by_id(id);
            let Some(segment) = shard.find(id) else { return Ok(None) };
            let entry = shard.get(segment);
            let wanted = on_disk_only(entry, block, bits).runs(block);
            let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(None) };
            let run = PageRun { start: first.start, len: last.end() - first.start };
            if self.place(Place::Dram, entry) {
                self.pin_blocks(entry, run);
                return Ok(Some((segment, BlockPin::new(self, segment, run))));
            }
            drop(shard);
            if !self.evict_block(Place::Dram) {
                return Err(Error::retry("the DRAM tier has no addresses left and all of it is pinned or kept"));
            }
        }
    }

    /// Keeps the blocks of `run` where they are, whichever of their pages are there.
    pub fn pin_blocks(&self, entry: &mut Segment, run: PageRun) {
        let count = entry.block_count();
        let mut pages = 0;
        for block in blocks_of(run) {
            if entry.pins.add(block, count) {
                pages += entry.count(TierKind::Dram, block);
            }
        }
        self.dram.account.set_pinned(pages, true);
    }

    /// Ends a pin of the blocks of `run`.
    pub fn unpin_blocks(&self, segment: SegmentRef, run: PageRun) {
        let mut shard = self.table.of(segment);
        let entry = shard.get(segment);
        let mut pages = 0;
        for block in blocks_of(run) {
            if entry.pins.remove(block) {
                pages += entry.count(TierKind::Dram, block);
            }
        }
        self.dram.account.set_pinned(pages, false);
        let reclaims = self.settle(&mut shard, segment);
        drop(shard);
        self.unstick();
        self.reclaim(reclaims);
    }

    /// Ends a claim on pages that did not become readable.
    pub fn unclaim(&self, tier: TierKind, segment: SegmentRef, run: PageRun) {
        let mut shard = self.table.of(segment);
        shard.get(segment).copy_mut(tier).claims.remove(run);
        let reclaims = self.settle(&mut shard, segment);
        drop(shard);
        self.unstick();
        self.reclaim(reclaims);
    }

    /// Replaces a claim on DRAM pages by claims on parts of them.
    pub fn split_claim(&self, segment: SegmentRef, run: PageRun, parts: &[PageRun]) {
        let mut shard = self.table.of(segment);
        let claims = &mut shard.get(segment).dram.claims;
        let kind = claims.over(run).expect("the claim is there until it is split").kind.clone();
        claims.remove(run);
        parts.iter().for_each(|part| claims.add(*part, kind.clone()));
    }

    /// Takes from an entry what nobody uses any more: all of a freed segment once its pins have ended, and extents that
    /// nothing is left of. The caller gives it back once the shard is unlocked.
    pub fn settle(&self, shard: &mut Shard, segment: SegmentRef) -> Vec<Reclaim> {
        let entry = shard.get(segment);
        let mut reclaims = Vec::new();
        if !entry.pins.any() {
            for tier in self.tiers() {
                let runs = if entry.dead && entry.copy(tier).claims.is_empty() { self.take_all(entry, tier) } else { Vec::new() };
                reclaims.extend(self.take_extent(entry, tier, runs));
            }
        }
        shard.drop_if_forgotten(segment);
        reclaims
    }
}

/// Those of the pages that the disk tier has and the DRAM tier has not.
fn on_disk_only(entry: &Segment, block: u32, bits: PageBits) -> PageBits {
    if block >= entry.block_count() {
        return PageBits::default();
    }
    entry.present(TierKind::Disk, block).and(bits).without(entry.present(TierKind::Dram, block))
}
