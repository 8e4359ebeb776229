//! The way out: pages leave the books under a lock, and their memory, disk space and addresses follow without one.

use forebay_types::{Owner, PAGES_PER_BLOCK, PageRun};

use super::{Change, Core};
use crate::media::Record;
use crate::table::{ClaimKind, PageBits, Place, Segment, SegmentRef, TierKind, by_block};

/// Addresses that nothing in the table refers to any more, still to be given back.
#[derive(Debug)]
#[must_use = "what is taken out of the table has to be given back"]
pub(crate) struct Reclaim {
    pub place: Place,
    /// Pages that hold data: (address, length).
    pub runs: Vec<(u64, u64)>,
    /// The whole extent, when it is given up: (address, length).
    pub extent: Option<(u64, u64)>,
    /// A block of temporary data was freed: its memory is kept for the next one.
    pub spare: bool,
}

impl Core {
    /// Makes pages of a block unreadable and takes them off the books; returns those that were there.
    pub fn take_pages(&self, entry: &mut Segment, tier: TierKind, block: u32, bits: PageBits) -> PageBits {
        let (taken, emptied) = entry.remove(tier, block, bits);
        let pinned = tier == TierKind::Dram && entry.pins.is_pinned(block);
        let account = &self.tier(entry.place(tier)).account;
        account.subtract(entry.owner, taken.count(), entry.keep, pinned);
        if emptied {
            account.drop_block();
            entry.forget_uses(tier, block);
        }
        if tier == TierKind::Disk && !entry.dead {
            taken.runs(block).into_iter().for_each(|run| self.log(entry.disk_no, Record::Dropped { id: entry.id, run }));
        }
        if let Some(hear) = self.changes.get().filter(|_| entry.owner == Owner::Cache) {
            let left = taken.without(entry.present(tier.other(), block));
            left.runs(block).into_iter().for_each(|run| hear(entry.id, run, Change::Left));
        }
        taken
    }

    /// All that a tier has of a segment, as addresses.
    pub fn take_all(&self, entry: &mut Segment, tier: TierKind) -> Vec<(u64, u64)> {
        let Some(extent) = entry.copy(tier).extent else { return Vec::new() };
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for block in 0..entry.block_count() {
            let taken = self.take_pages(entry, tier, block, PageBits::span(0, PAGES_PER_BLOCK));
            for run in taken.runs(block) {
                let (start, len) = address(extent, run);
                match runs.last_mut() {
                    Some((last, last_len)) if *last + *last_len == start => *last_len += len,
                    _ => runs.push((start, len)),
                }
            }
        }
        runs
    }

    /// The extent, when nothing is left in it and nobody uses it; else only `runs`, when there are any.
    pub fn take_extent(&self, entry: &mut Segment, tier: TierKind, runs: Vec<(u64, u64)>) -> Option<Reclaim> {
        let place = entry.place(tier);
        let extent = match entry.copy(tier).extent {
            Some(start) if entry.is_idle(tier) => {
                entry.copy_mut(tier).extent = None;
                if tier == TierKind::Disk && !entry.dead {
                    self.log(entry.disk_no, Record::Freed { id: entry.id });
                }
                Some((start, u64::from(entry.pages())))
            }
            _ => None,
        };
        let whole = extent.is_some_and(|extent| extent.1 == u64::from(PAGES_PER_BLOCK) && runs == [extent]);
        let spare = whole && tier == TierKind::Dram && entry.dead && entry.owner == Owner::Temporary;
        (extent.is_some() || !runs.is_empty()).then_some(Reclaim { place, runs, extent, spare })
    }

    /// Drops pages that do not verify. The caller has a pin on their blocks; pages in DRAM
    /// that someone else has pinned too stay.
    pub fn drop_pages(&self, tier: TierKind, segment: SegmentRef, run: PageRun) {
        let mut shard = self.table.of(segment);
        let entry = shard.get(segment);
        let (Some(extent), place) = (entry.copy(tier).extent, entry.place(tier)) else { return };
        let mut dropped = Vec::new();
        for (block, bits) in by_block(run) {
            if tier == TierKind::Disk || entry.pins.count(block) == 1 {
                dropped.extend(self.take_pages(entry, tier, block, bits).runs(block));
            }
        }
        dropped.iter().for_each(|run| entry.copy_mut(tier).claims.add(*run, ClaimKind::Punch));
        drop(shard);
        for run in dropped {
            let (start, len) = address(extent, run);
            let pages = self.punch(place, start, len);
            self.tier(place).release(pages);
            self.unclaim(tier, segment, run);
        }
    }

    /// The same of pages that the disk does not give, but for temporary data: it can't be fetched again, is there when the disk gives it
    /// again, and stays counted until it is freed.
    pub fn drop_unread(&self, segment: SegmentRef, run: PageRun) {
        let mut shard = self.table.of(segment);
        let is_temporary = shard.get(segment).owner == Owner::Temporary;
        drop(shard);
        if !is_temporary {
            self.drop_pages(TierKind::Disk, segment, run);
        }
    }

    /// Gives memory and addresses back, and has the disk's own threads do so with its space, which may take long.
    pub fn reclaim(&self, reclaims: impl IntoIterator<Item = Reclaim>) {
        for reclaim in reclaims {
            match reclaim.place {
                Place::Dram => self.reclaim_now(reclaim),
                Place::Disk(no) => self.disk(no).pool.task(|core| core.reclaim_now(reclaim)),
            }
        }
    }

    /// Gives memory, disk space and addresses back. No lock is held.
    pub fn reclaim_now(&self, reclaim: Reclaim) {
        let Reclaim { place, runs, extent, spare } = reclaim;
        if let Some((start, len)) = extent.filter(|_| spare && !self.is_closed()) {
            self.dram.release(self.dram_sums.remove(start, len, |group| self.arena.punch_sums(group)));
            self.keep_spare(start);
            return;
        }
        let pages: u64 = runs.into_iter().map(|(start, len)| self.punch(place, start, len)).sum();
        // Addresses go back before the room does: whoever finds room finds them too.
        if let Some((start, len)) = extent {
            self.tier(place).addresses.lock().release(start, len);
        }
        self.tier(place).release(pages);
    }
}

/// Where a run of an extent's pages is.
pub(crate) fn address(extent: u64, run: PageRun) -> (u64, u64) {
    (extent + u64::from(run.start), u64::from(run.len))
}
