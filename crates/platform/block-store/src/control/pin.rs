use forebay_types::PageRun;

use super::Reclaim;
use crate::core::Core;
use crate::table::{Segment, SegmentRef, Shard, TierKind, by_block};

impl Core {
    /// Keeps the blocks of `run` where they are, whichever of their pages are there.
    pub fn pin_blocks(&self, entry: &mut Segment, run: PageRun) {
        let count = entry.block_count();
        for (block, _) in by_block(run) {
            if entry.pins.add(block, count) {
                self.dram.account.set_pinned(entry.present(TierKind::Dram, block).count(), true);
            }
        }
    }

    /// Ends a pin of the blocks of `run`.
    pub fn unpin_blocks(&self, segment: SegmentRef, run: PageRun) {
        let mut shard = self.table.of(segment);
        let entry = shard.get(segment);
        for (block, _) in by_block(run) {
            if entry.pins.remove(block) {
                self.dram.account.set_pinned(entry.present(TierKind::Dram, block).count(), false);
            }
        }
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
