//! A segment's entry in the table, and every change of it that must leave presence, uses and pins agreeing.

use forebay_types::{Owner, PAGES_PER_BLOCK, PageRun, SegmentId};

use super::pins::Pins;
use super::{DiskNo, PageBits, Place, TierCopy, TierKind, by_block};
use crate::settings::SegmentSpec;

/// One segment: what each tier has of it, and who uses it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub id: SegmentId,
    pub bytes: u32,
    pub owner: Owner,
    pub keep: bool,
    /// Freed: invisible from now on, gone when its pins end.
    pub dead: bool,
    /// The disk that its pages on disk are on, or will be: another one only while it is not [bound](Self::is_bound).
    pub disk_no: DiskNo,
    pub dram: TierCopy,
    pub disk: TierCopy,
    pub pins: Pins,
    /// A bit for each block in the queue to the disk tier.
    pub writing: u64,
    /// For each block, how far the present pass of reading has come, so that a scan in small steps counts once.
    read_to: Box<[u8]>,
}

impl Segment {
    pub fn new(spec: &SegmentSpec) -> Self {
        Self {
            id: spec.id,
            bytes: spec.bytes,
            owner: spec.owner,
            keep: spec.keep,
            dead: false,
            disk_no: DiskNo::default(),
            dram: TierCopy::default(),
            disk: TierCopy::default(),
            pins: Pins::default(),
            writing: 0,
            read_to: Box::default(),
        }
    }

    pub fn pages(&self) -> u32 {
        self.bytes.div_ceil(forebay_types::PAGE_BYTES as u32)
    }

    pub fn block_count(&self) -> u32 {
        self.pages().div_ceil(PAGES_PER_BLOCK)
    }

    /// The pages that `block` has when whole.
    pub fn all(&self, block: u32) -> PageBits {
        PageBits::span(0, (self.pages() - block * PAGES_PER_BLOCK).min(PAGES_PER_BLOCK))
    }

    /// Where its pages of a tier are.
    pub fn place(&self, tier: TierKind) -> Place {
        match tier {
            TierKind::Dram => Place::Dram,
            TierKind::Disk => Place::Disk(self.disk_no),
        }
    }

    /// Whether it stays with its disk: it has an extent there, an entry in that disk's policy, or waits in its queue.
    pub fn is_bound(&self) -> bool {
        self.disk.extent.is_some() || self.disk.listed != 0 || self.writing != 0
    }

    pub fn copy(&self, tier: TierKind) -> &TierCopy {
        match tier {
            TierKind::Dram => &self.dram,
            TierKind::Disk => &self.disk,
        }
    }

    pub fn copy_mut(&mut self, tier: TierKind) -> &mut TierCopy {
        match tier {
            TierKind::Dram => &mut self.dram,
            TierKind::Disk => &mut self.disk,
        }
    }

    pub fn present(&self, tier: TierKind, block: u32) -> PageBits {
        self.copy(tier).presence.block(block, self.all(block))
    }

    pub fn has(&self, tier: TierKind, run: PageRun) -> bool {
        if run.len == 0 || run.end() > self.pages() {
            return false;
        }
        let blocks = blocks_of(run);
        let mask = u64::MAX >> (64 - blocks.len()) << blocks.start;
        self.copy(tier).presence.has_full(mask) || by_block(run).all(|(block, bits)| self.present(tier, block).holds(bits))
    }

    /// Adds pages to a tier; returns how many were not there, and whether the block was empty.
    pub fn insert(&mut self, tier: TierKind, block: u32, bits: PageBits) -> (u32, bool) {
        let (all, before) = (self.all(block), self.present(tier, block));
        self.copy_mut(tier).presence.set(block, before.with(bits), all);
        (bits.without(before).count(), before.is_empty())
    }

    /// Takes pages from a tier; returns those that were there, and whether the block is empty now.
    pub fn remove(&mut self, tier: TierKind, block: u32, bits: PageBits) -> (PageBits, bool) {
        let (all, before) = (self.all(block), self.present(tier, block));
        let after = before.without(bits);
        self.copy_mut(tier).presence.set(block, after, all);
        (before.and(bits), after.is_empty() && !before.is_empty())
    }

    pub fn count(&self, tier: TierKind, block: u32) -> u32 {
        if self.copy(tier).presence.has_full(1 << block) {
            (self.pages() - block * PAGES_PER_BLOCK).min(PAGES_PER_BLOCK)
        } else {
            self.present(tier, block).count()
        }
    }

    pub fn page_count(&self, tier: TierKind) -> u64 {
        (0..self.block_count()).map(|block| u64::from(self.count(tier, block))).sum()
    }

    /// Counts a read of pages. A read that goes on where the last one of the same block ended, or past it, belongs to the
    /// same pass and is no further use of the block; one that returns is. The read that a block was fetched for counts
    /// for nothing, as in S3-FIFO a miss does.
    pub fn read(&mut self, run: PageRun) {
        if self.read_to.is_empty() {
            self.read_to = vec![0; self.block_count() as usize].into();
        }
        let mut again = 0;
        for block in blocks_of(run) {
            let base = block * PAGES_PER_BLOCK;
            let start = run.start.max(base) - base;
            let end = (run.end() - base).min(PAGES_PER_BLOCK);
            let read_to = &mut self.read_to[block as usize];
            if start < u32::from(*read_to) {
                again |= 1 << block;
            }
            *read_to = end.min(255) as u8;
        }
        self.used(again);
    }

    /// Counts one more use of each block of the mask, for both tiers: what is hot in DRAM should come back after a restart.
    pub fn used(&mut self, blocks: u64) {
        self.dram.uses.add(blocks);
        self.disk.uses.add(blocks);
    }

    /// Forgets the uses of a block that is no longer in a tier.
    pub fn forget_uses(&mut self, tier: TierKind, block: u32) {
        self.copy_mut(tier).uses.clear(block);
        if tier == TierKind::Dram
            && let Some(read_to) = self.read_to.get_mut(block as usize)
        {
            *read_to = 0;
        }
    }

    /// Whether the tier's extent can be given up.
    pub fn is_idle(&self, tier: TierKind) -> bool {
        self.copy(tier).presence.is_empty() && !self.pins.any() && self.copy(tier).claims.is_empty()
    }

    /// Whether nothing refers to the entry any more.
    pub fn is_forgotten(&self) -> bool {
        let unused = |tier| self.is_idle(tier) && self.copy(tier).extent.is_none() && self.copy(tier).listed == 0;
        unused(TierKind::Dram) && unused(TierKind::Disk) && self.writing == 0
    }

    pub fn heap_bytes(&self) -> usize {
        self.dram.presence.heap_bytes() + self.disk.presence.heap_bytes() + self.pins.heap_bytes() + self.read_to.len()
    }
}

/// The blocks that a run has pages of.
pub(crate) fn blocks_of(run: PageRun) -> std::ops::Range<u32> {
    run.start / PAGES_PER_BLOCK..run.end().div_ceil(PAGES_PER_BLOCK)
}
