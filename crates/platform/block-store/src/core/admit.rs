//! The way in: room is promised before bytes come, an extent is found, and pages that are complete become readable.

use std::sync::Arc;

use forebay_types::{Error, Owner, PageRun, Result};

use super::{Change, Core};
use crate::media::Record;
use crate::settings::SegmentSpec;
use crate::table::{BlockRef, Place, Segment, SegmentRef, TierKind, by_block};

/// Room for pages that are to come.
pub(crate) struct Reservation {
    core: Arc<Core>,
    place: Place,
    pages: u64,
}

impl Reservation {
    /// `pages` of what was promised are there now, and stay counted.
    pub fn spend(&mut self, pages: u64) {
        assert!(pages <= self.pages, "{pages} pages of {} promised", self.pages);
        self.pages -= pages;
    }

    /// Adds pages that are counted already.
    pub fn take_over(&mut self, pages: u64) {
        self.pages += pages;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.core.tier(self.place).release(self.pages);
    }
}

impl Core {
    /// Makes room for `pages` more, evicting as much as it takes. `Retry` when everything else is pinned or kept.
    pub fn make_room(self: &Arc<Self>, place: Place, pages: u64) -> Result<Reservation> {
        let books = self.tier(place);
        if pages <= books.capacity {
            loop {
                if books.try_reserve(pages) {
                    return Ok(Reservation { core: self.clone(), place, pages });
                }
                let has_freed = place == Place::Dram && self.give_up_spare();
                if !has_freed && !self.evict_block(place) {
                    break;
                }
            }
        }
        let (name, capacity) = (place.tier().name(), books.capacity_bytes());
        Err(Error::retry(format!(
            "no room for {pages} pages in the {name} tier of {capacity} bytes: the rest is pinned or kept; free something or make it larger"
        )))
    }

    /// Finds or adds a segment, pins the blocks of `run` and sees to an extent in the DRAM tier; `Retry` when addresses
    /// have run out and nothing can be evicted.
    pub fn enter(&self, spec: &SegmentSpec, run: PageRun) -> Result<SegmentRef> {
        loop {
            let mut shard = self.table.by_id(spec.id);
            let segment = shard.find_or_add(spec)?;
            let entry = shard.get(segment);
            if spec.keep && !entry.keep {
                self.keep_entry(entry, true);
            }
            if self.place(Place::Dram, entry) {
                self.pin_blocks(entry, run);
                return Ok(segment);
            }
            shard.drop_if_forgotten(segment);
            drop(shard);
            if !self.evict_block(Place::Dram) {
                return Err(Error::retry("the DRAM tier has no addresses left and all of it is pinned or kept"));
            }
        }
    }

    /// Sees to an extent; false when there are no addresses for one. On a disk only of a segment that is not bound to another one.
    pub fn place(&self, place: Place, entry: &mut Segment) -> bool {
        let tier = place.tier();
        debug_assert!(tier == TierKind::Dram || !entry.is_bound() || entry.place(tier) == place);
        if entry.copy(tier).extent.is_none() {
            let extent = self.tier(place).addresses.lock().allocate(u64::from(entry.pages()));
            entry.copy_mut(tier).extent = extent;
            if let Place::Disk(no) = place {
                entry.disk_no = no;
            }
        }
        entry.copy(tier).extent.is_some()
    }

    /// Makes claimed pages readable and ends the claim.
    pub fn publish(&self, tier: TierKind, segment: SegmentRef, run: PageRun) {
        let mut admitted = Vec::new();
        let mut shard = self.table.of(segment);
        let entry = shard.get(segment);
        let place = entry.place(tier);
        entry.copy_mut(tier).claims.remove(run);
        for (block, bits) in by_block(run) {
            let (added, was_empty) = entry.insert(tier, block, bits);
            let pinned = tier == TierKind::Dram && entry.pins.is_pinned(block);
            let account = &self.tier(place).account;
            account.add(entry.owner, added, entry.keep, pinned);
            if tier == TierKind::Disk && !entry.dead {
                bits.runs(block).into_iter().for_each(|run| self.log(entry.disk_no, Record::Present { id: entry.id, run }));
            }
            if was_empty {
                account.add_block();
            }
            if let Some(hear) = self.changes.get().filter(|_| entry.owner == Owner::Cache && !entry.dead) {
                let came = bits.without(entry.present(tier.other(), block));
                came.runs(block).into_iter().for_each(|run| hear(entry.id, run, Change::Came));
            }
            if entry.copy(tier).listed >> block & 1 == 0 {
                entry.copy_mut(tier).listed |= 1 << block;
                admitted.push((segment.block(block), fingerprint(entry, block)));
            }
        }
        drop(shard);
        self.list(place, &admitted);
    }

    /// Tells the policy of blocks that have come in.
    pub fn list(&self, place: Place, admitted: &[(BlockRef, u32)]) {
        let books = self.tier(place);
        if !admitted.is_empty() {
            let mut policy = books.policy.lock();
            admitted.iter().for_each(|(block, fingerprint)| policy.admit(*block, *fingerprint));
            // Entries of blocks that were freed go when they come up; where nothing is ever evicted they go here.
            if policy.len() as u64 > 2 * books.account.blocks() + 1024 {
                policy.retain(|block| self.is_listed(place.tier(), block));
            }
        }
        books.unstick();
    }

    /// Whether anything is left of a block that a policy has an entry of; its mark goes with it.
    pub fn is_listed(&self, tier: TierKind, block: BlockRef) -> bool {
        let mut shard = self.table.of(block.segment());
        let entry = shard.get(block.segment());
        if !entry.present(tier, block.block()).is_empty() {
            return true;
        }
        entry.copy_mut(tier).listed &= !(1 << block.block());
        shard.drop_if_forgotten(block.segment());
        false
    }
}

/// What a policy remembers a block by after it went: columns have a mark.
pub(crate) fn fingerprint(entry: &Segment, block: u32) -> u32 {
    forebay_eviction::marked(forebay_eviction::fingerprint(entry.id, block), entry.owner == Owner::Form)
}
