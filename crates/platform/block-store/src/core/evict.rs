//! Takes out the block that the policy names, unless a reader, a fill or a keep flag holds it.

use forebay_eviction::Verdict;
use forebay_types::{PAGES_PER_BLOCK, PageRun};

use super::admit::fingerprint;
use super::{Core, Reclaim, reclaim};
use crate::table::{BlockRef, ClaimKind, PageBits, Place, Segment, SegmentRef, TierKind};

/// A block that is out of the table and still takes memory or disk.
struct Evicted {
    segment: SegmentRef,
    /// The block's pages, when others may want to write to them again before they are given back.
    claim: Option<PageRun>,
    reclaim: Reclaim,
}

impl Core {
    /// Evicts one block; false when there is none that may go.
    pub fn evict_block(&self, place: Place) -> bool {
        let (books, tier) = (self.tier(place), place.tier());
        if books.is_stuck() {
            return false;
        }
        let changes = books.changes();
        let mut evicted = None;
        let found = books.policy.lock().evict(&mut |block| self.judge(tier, block, &mut evicted));
        if !found {
            books.stick(changes);
        }
        if let Some(Evicted { segment, claim, reclaim }) = evicted {
            self.reclaim_now(reclaim);
            if let Some(run) = claim {
                self.unclaim(tier, segment, run);
            }
        }
        found
    }

    fn judge(&self, tier: TierKind, block: BlockRef, evicted: &mut Option<Evicted>) -> Verdict {
        let (segment, index) = (block.segment(), block.block());
        let mut shard = self.table.of(segment);
        let entry = shard.get(segment);
        // Kept for good, as opposed to until the disk has it: back in the list when the flag is lifted.
        let parked = entry.keep && (tier == TierKind::Disk || self.disks.is_empty());
        if parked || entry.present(tier, index).is_empty() {
            entry.copy_mut(tier).listed &= !(1 << index);
            shard.drop_if_forgotten(segment);
            return Verdict::Gone;
        }
        if entry.dead || entry.pins.is_pinned(index) || is_kept(entry, index) {
            return Verdict::Held;
        }
        if entry.copy_mut(tier).uses.take(index) {
            return Verdict::Used;
        }
        entry.copy_mut(tier).listed &= !(1 << index);
        let remembered = fingerprint(entry, index);
        *evicted = Some(self.take_block(entry, tier, segment, index));
        shard.drop_if_forgotten(segment);
        Verdict::Taken(remembered)
    }

    fn take_block(&self, entry: &mut Segment, tier: TierKind, segment: SegmentRef, block: u32) -> Evicted {
        let extent = entry.copy(tier).extent.expect("pages that are there have an extent");
        let whole = PageBits::span(0, PAGES_PER_BLOCK);
        let taken = self.take_pages(entry, tier, block, whole);
        let runs = taken.runs(block).into_iter().map(|run| reclaim::address(extent, run)).collect();
        let reclaim = self.take_extent(entry, tier, runs).expect("the block had pages");
        let claim = reclaim.extent.is_none().then(|| {
            let run = entry.all(block).runs(block)[0];
            entry.copy_mut(tier).claims.add(run, ClaimKind::Punch);
            run
        });
        Evicted { segment, claim, reclaim }
    }
}

/// A kept block leaves the DRAM tier only when the disk tier has all of it.
fn is_kept(entry: &Segment, block: u32) -> bool {
    entry.keep && !entry.present(TierKind::Disk, block).holds(entry.present(TierKind::Dram, block))
}

#[cfg(test)]
mod tests {
    use forebay_types::{Owner, PageRun, SegmentId};

    use crate::{BlockStore, SegmentSpec, StoreSettings};

    const MIB: u64 = 1 << 20;

    fn fill(store: &BlockStore, number: u128, owner: Owner) {
        // As those of hashes, these differ in the bits that are remembered.
        let spec = SegmentSpec { id: SegmentId(number << 40), bytes: MIB as u32, owner, keep: false };
        let mut fill = store.begin_fill(spec, PageRun::new(0, 256)).unwrap();
        fill.write(0, &vec![7u8; MIB as usize]).unwrap();
        fill.finish().unwrap();
    }

    #[tokio::test]
    async fn columns_that_come_back_are_counted_apart_from_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 * MIB)).unwrap();
        let returned = || (store.dram_regret().returned, store.dram_form_regret().returned);
        for number in 1..=8 {
            fill(&store, number, if number % 2 == 0 { Owner::Form } else { Owner::Cache });
        }
        assert_eq!(returned(), (0, 0));
        let remembered = [store.dram_regret(), store.dram_form_regret()].map(|regret| regret.remembered_bytes);
        assert!(remembered.iter().all(|bytes| *bytes >= MIB && *bytes <= 4 * MIB), "{remembered:?}");
        fill(&store, 2, Owner::Form);
        assert_eq!(returned(), (0, 1), "a column");
        fill(&store, 1, Owner::Cache);
        assert_eq!(returned(), (1, 1), "a block");
        store.close().await;
    }
}
