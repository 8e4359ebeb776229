//! What callers decide of whole segments: to drop one at once, to keep one against eviction, or no longer.

use forebay_types::{PAGE_BYTES, SegmentId};

use super::Core;
use super::admit::fingerprint;
use crate::media::Record;
use crate::table::{BlockRef, Place, Segment, SegmentRef, TierKind};

impl Core {
    /// Drops a segment from both tiers; returns the bytes that come back once its pins have ended.
    pub fn free(&self, id: SegmentId) -> u64 {
        let mut shard = self.table.by_id(id);
        let Some(segment) = shard.find(id) else { return 0 };
        let entry = shard.get(segment);
        let pages: u64 = self.tiers().map(|tier| entry.page_count(tier)).sum();
        if entry.keep {
            self.keep_entry(entry, false);
        }
        if entry.disk.extent.is_some() {
            self.log(entry.disk_no, Record::Freed { id });
        }
        shard.bury(segment);
        let reclaims = self.settle(&mut shard, segment);
        drop(shard);
        self.unstick();
        self.reclaim(reclaims);
        self.nudge();
        pages * PAGE_BYTES
    }

    /// Sets or lifts the keep flag; false when the segment is not held.
    pub fn set_keep(&self, id: SegmentId, keep: bool) -> bool {
        let mut shard = self.table.by_id(id);
        let Some(segment) = shard.find(id) else { return false };
        let entry = shard.get(segment);
        let mut parked: Vec<(Place, Vec<(BlockRef, u32)>)> = Vec::new();
        if entry.keep != keep {
            self.keep_entry(entry, keep);
            parked.extend(self.tiers().map(|tier| (entry.place(tier), unlisted(entry, tier, segment))));
        }
        drop(shard);
        parked.iter().for_each(|(place, blocks)| self.list(*place, blocks));
        self.unstick();
        self.nudge();
        true
    }

    pub fn keep_entry(&self, entry: &mut Segment, keep: bool) {
        entry.keep = keep;
        if entry.disk.extent.is_some() && !entry.dead {
            self.log(entry.disk_no, Record::Keep { id: entry.id, keep });
        }
        for tier in self.tiers() {
            self.tier(entry.place(tier)).account.set_kept(entry.page_count(tier), keep);
        }
    }

    pub fn tiers(&self) -> impl Iterator<Item = TierKind> + use<> {
        [TierKind::Dram].into_iter().chain((!self.disks.is_empty()).then_some(TierKind::Disk))
    }

    /// Something changed that may make blocks evictable.
    pub fn unstick(&self) {
        self.dram.unstick();
        self.disks.iter().for_each(|disk| disk.tier.unstick());
    }
}

/// Lists the blocks that the policy has no entry of: those that were kept when they came up.
fn unlisted(entry: &mut Segment, tier: TierKind, segment: SegmentRef) -> Vec<(BlockRef, u32)> {
    let blocks = entry.copy(tier).presence.blocks() & !entry.copy(tier).listed;
    entry.copy_mut(tier).listed |= blocks;
    let missing = (0..entry.block_count()).filter(|block| blocks >> block & 1 == 1);
    missing.map(|block| (segment.block(block), fingerprint(entry, block))).collect()
}
