//! Where the DRAM tier's memory is read and written: a view of pages is held by who pinned them, or has claimed them alone.

#![allow(unsafe_code, reason = "turns pins and claims into views of the arena")]

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use forebay_types::{Owner, PAGE_BYTES, PageRun, PageSet, SegmentId};

use super::Core;
use crate::media::page_sum;
use crate::table::{ClaimKind, SegmentRef, Shard, TierKind, by_block};

/// Pages of the DRAM tier that stay where they are as long as this lives.
pub(crate) struct ReadPages {
    core: Arc<Core>,
    segment: SegmentRef,
    run: PageRun,
    page: u64,
    /// Of temporary data, whose pages get their checksums on the way to the disk tier.
    unsummed: Option<SegmentId>,
}

impl ReadPages {
    /// Pins pages; none when some of them are not there.
    pub fn pin(core: &Arc<Core>, shard: &mut Shard, segment: SegmentRef, run: PageRun) -> Option<Self> {
        let entry = shard.get(segment);
        if !entry.has(TierKind::Dram, run) {
            return None;
        }
        let extent = entry.dram.extent.expect("pages that are there have an extent");
        let unsummed = (entry.owner == Owner::Temporary).then_some(entry.id);
        core.pin_blocks(entry, run);
        Some(Self { core: core.clone(), segment, run, page: extent + u64::from(run.start), unsummed })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pages were readable when pinned, and readable pages are never written to; the pin keeps them from
        // being punched until `self` is dropped, which the slice's lifetime can't outlive.
        unsafe { self.core.arena.read(self.page, u64::from(self.run.len)) }
    }

    pub fn run(&self) -> PageRun {
        self.run
    }

    /// The checksums, in order: those stored, or made now of pages that have none.
    pub fn sums(&self) -> Vec<u32> {
        if let Some(id) = self.unsummed {
            let pages = self.run.pages().zip(self.bytes().chunks_exact(PAGE_BYTES as usize));
            return pages.map(|(page, bytes)| page_sum(id, page, bytes)).collect();
        }
        (self.page..self.page + u64::from(self.run.len)).map(|page| self.core.arena.sum(page).load(Relaxed)).collect()
    }
}

impl Drop for ReadPages {
    fn drop(&mut self) {
        self.core.unpin_blocks(self.segment, self.run);
    }
}

/// Pages of a segment in the DRAM tier under a pin: they are neither evicted nor moved until the last clone is dropped.
/// Dereferences to whole pages, zeros after the segment's end among them.
#[derive(Clone)]
pub struct Pinned(Arc<ReadPages>);

impl Pinned {
    pub(crate) fn new(pages: ReadPages) -> Self {
        Self(Arc::new(pages))
    }

    /// Where the first page is in the tier's descriptor, in bytes.
    pub fn arena_offset(&self) -> u64 {
        self.0.page * PAGE_BYTES
    }

    /// The pages.
    pub fn run(&self) -> PageRun {
        self.0.run
    }

    /// The pages' checksums, in order, as they were stored when the pages came: for who sends the pages on.
    pub fn sums(&self) -> Vec<u32> {
        self.0.sums()
    }

    /// The pages as shared bytes that keep the pin alive.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Pages of the DRAM tier that are not readable yet and that only the holder of this may write to. Whoever makes one
/// holds pins on the pages' blocks for as long. Dropped without [`Self::publish`], the pages stay unreadable.
pub(crate) struct WritePages {
    core: Arc<Core>,
    segment: SegmentRef,
    run: PageRun,
    /// The first of them in the tier.
    pub page: u64,
    done: bool,
}

impl WritePages {
    /// Claims pages: none of them is readable or claimed, and their blocks are pinned.
    pub fn claim(core: &Arc<Core>, shard: &mut Shard, segment: SegmentRef, run: PageRun, kind: ClaimKind) -> Self {
        let entry = shard.get(segment);
        assert!(
            by_block(run).all(|(block, bits)| {
                entry.pins.is_pinned(block) && entry.present(TierKind::Dram, block).and(bits).is_empty()
            })
        );
        let extent = entry.dram.extent.expect("an extent is there as long as a block is pinned");
        entry.dram.claims.add(run, kind);
        Self { core: core.clone(), segment, run, page: extent + u64::from(run.start), done: false }
    }

    /// Copies bytes to the pages, as many as they hold.
    pub fn copy_in(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        assert_eq!(bytes.len() as u64, u64::from(self.run.len) * PAGE_BYTES);
        self.core.arena.copy_in(self.page * PAGE_BYTES, bytes)
    }

    /// Copies bytes to a place in the pages; what is around them stays as it is.
    pub fn copy_part_in(&mut self, at: usize, bytes: &[u8]) -> std::io::Result<()> {
        assert!((at + bytes.len()) as u64 <= u64::from(self.run.len) * PAGE_BYTES);
        self.core.arena.copy_in(self.page * PAGE_BYTES + at as u64, bytes)
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the pages are not readable, so nobody else makes a view of them, and the claim keeps others from
        // writing or punching them until `self` is dropped; `&mut self` keeps this the only view made here.
        unsafe { self.core.arena.write(self.page, u64::from(self.run.len)) }
    }

    /// Stores the pages' checksums and makes the pages readable. Returns the pages of room this took, of what the holder
    /// has reserved: these pages, and the pages of checksums that came into use.
    pub fn publish(mut self, sums: &[u32]) -> u64 {
        let len = u64::from(self.run.len);
        assert_eq!(sums.len() as u64, len);
        // Counted first: a page of checksums that is in use is not punched.
        let fresh = self.core.dram_sums.add(self.page, len);
        for (page, sum) in (self.page..).zip(sums) {
            self.core.arena.sum(page).store(*sum, Relaxed);
        }
        self.core.publish(TierKind::Dram, self.segment, self.run);
        self.done = true;
        len + fresh
    }

    /// Makes the pages of temporary data readable, without checksums; otherwise as [`Self::publish`].
    pub fn publish_unsummed(mut self) -> u64 {
        let len = u64::from(self.run.len);
        let fresh = self.core.dram_sums.add(self.page, len);
        self.core.publish(TierKind::Dram, self.segment, self.run);
        self.done = true;
        len + fresh
    }

    /// Cuts the claim into these parts of it, in order; the pages in none of them are given up.
    pub fn split(mut self, parts: &[PageRun]) -> Vec<Self> {
        let gaps: PageSet = std::iter::once(self.run).collect();
        let gaps = parts.iter().fold(gaps, |mut gaps, part| {
            gaps.remove(*part);
            gaps
        });
        for gap in gaps.runs() {
            self.core.arena.punch(self.page + u64::from(gap.start - self.run.start), u64::from(gap.len));
        }
        self.core.split_claim(self.segment, self.run, parts);
        self.done = true;
        let part_of = |part: &PageRun| Self {
            core: self.core.clone(),
            segment: self.segment,
            run: *part,
            page: self.page + u64::from(part.start - self.run.start),
            done: false,
        };
        parts.iter().map(part_of).collect()
    }

    pub fn run(&self) -> PageRun {
        self.run
    }
}

impl Drop for WritePages {
    fn drop(&mut self) {
        if !self.done {
            // What was written is given back before anyone else can claim the pages.
            self.core.arena.punch(self.page, u64::from(self.run.len));
            self.core.unclaim(TierKind::Dram, self.segment, self.run);
        }
    }
}
