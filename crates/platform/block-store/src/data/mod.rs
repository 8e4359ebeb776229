//! Moves bytes: into the DRAM tier, out of it, and between it and the disk tier. Here, bytes from a network on their way in: cut into
//! pages, checksummed, and readable page by page before the last one comes, or not before somebody has judged all of them.

mod block_fill;
mod flush;
mod off_memory;
mod read;
mod scrub;

use std::sync::Arc;

use forebay_types::{Error, Owner, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result};

use crate::core::{Core, Pinned, ReadPages, Reservation, WritePages};
use crate::media::{SumGroups, page_sum};
use crate::settings::SegmentSpec;
use crate::table::{ClaimKind, Place, Segment, SegmentRef, TierKind, by_block};

pub use block_fill::BlockFill;
pub(crate) use flush::flush;
pub(crate) use off_memory::{read as read_off_memory, read_whole as read_whole_off_memory, write as write_off_memory};
pub(crate) use read::load;
pub(crate) use scrub::scrub;
pub use scrub::{ScrubCursor, ScrubStep};

/// Pages of a segment on their way into the DRAM tier. Room for them is reserved, and their blocks are pinned, as long as
/// this lives. Pages become readable as soon as they are complete; dropped early, those stay. Where they are [held
/// back](Self::hold_back), none is readable before it ends, and dropped early, none stays.
///
/// Several fills may fill one segment, the same pages too: whoever comes first with a page wins, since a segment's
/// bytes never change.
pub struct Fill {
    core: Arc<Core>,
    segment: SegmentRef,
    spec: SegmentSpec,
    run: PageRun,
    /// Bytes of the run written so far.
    written: u64,
    /// The first page not written yet.
    next_page: u32,
    /// Its bytes so far.
    partial: Vec<u8>,
    reservation: Reservation,
    /// Pages that another fill had in hand.
    awaited: Vec<PageRun>,
    held_back: Option<HeldBack>,
    /// Blocks below this have been offered to the disk tier.
    offered_to: u32,
}

/// The pages of a fill that nobody may read yet.
struct HeldBack {
    pages: WritePages,
    /// Checksums of those that have come.
    sums: Vec<u32>,
}

/// What a fill finds of the pages it is about to write.
enum Found {
    Claimed(WritePages),
    /// These are there already.
    Present(u32),
    /// These are being written by another fill.
    Elsewhere(u32),
    /// Some are being given back; they are free in a moment.
    Wait,
}

impl Fill {
    pub(crate) fn begin(core: &Arc<Core>, spec: SegmentSpec, run: PageRun) -> Result<Self> {
        spec.validate(run)?;
        if core.is_closed() {
            return Err(Error::closed(format!("{}: the store is closed", core.settings.folder.display())));
        }
        let segment = core.enter(&spec, run)?;
        let (missing, sum_pages) = {
            let mut shard = core.table.of(segment);
            let entry = shard.get(segment);
            let present: u32 = by_block(run).map(|(block, bits)| entry.present(TierKind::Dram, block).and(bits).count()).sum();
            let start = entry.dram.extent.expect("entered") + u64::from(run.start);
            (run.len - present, SumGroups::pages_of(start, u64::from(run.len)))
        };
        let room = if missing == 0 { 0 } else { u64::from(missing) + sum_pages };
        let reservation = core.make_room(Place::Dram, room).inspect_err(|_| core.unpin_blocks(segment, run))?;
        let offered_to = run.start / PAGES_PER_BLOCK;
        let core = core.clone();
        Ok(Self {
            core,
            segment,
            spec,
            run,
            written: 0,
            next_page: run.start,
            partial: Vec::new(),
            reservation,
            awaited: Vec::new(),
            held_back: None,
            offered_to,
        })
    }

    /// Bytes that this fill takes: those of its pages, up to the segment's end.
    pub fn bytes(&self) -> u64 {
        self.run.bytes().end.min(u64::from(self.spec.bytes)) - self.run.bytes().start
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Keeps readers from all pages of it until [`Self::release`] or its end, since what is in them is not judged yet. To be called before the
    /// first byte. `Retry`, and nothing is held back, when some of them are there or in another one's hands.
    pub fn hold_back(&mut self) -> Result<()> {
        assert!(self.written == 0 && self.held_back.is_none(), "pages are held back from the first one on");
        assert!(self.spec.owner != Owner::Temporary, "nobody judges temporary data");
        let pages = loop {
            let mut shard = self.core.table.of(self.segment);
            let entry = shard.get(self.segment);
            match entry.dram.claims.over(self.run).map(|claim| &claim.kind) {
                // They are free in a moment.
                Some(ClaimKind::Punch) => {}
                None if leading(entry, self.run, false) == self.run.len => {
                    break WritePages::claim(&self.core, &mut shard, self.segment, self.run, ClaimKind::HeldBack);
                }
                _ => return Err(Error::retry(format!("some pages of segment {} are there, or on their way", self.spec.id))),
            }
            drop(shard);
            std::thread::yield_now();
        };
        self.held_back = Some(HeldBack { pages, sums: Vec::with_capacity(self.run.len as usize) });
        Ok(())
    }

    /// Whether nobody may read its pages yet.
    pub fn is_held_back(&self) -> bool {
        self.held_back.is_some()
    }

    /// Makes the pages that were held back, and have come, readable; from now on others are so as soon as they are complete.
    pub fn release(&mut self) {
        let Some(HeldBack { pages, sums }) = self.held_back.take().filter(|held_back| !held_back.sums.is_empty()) else { return };
        let come = PageRun::new(self.run.start, self.next_page);
        assert_eq!(sums.len() as u64, u64::from(come.len), "each page that has come has its checksum");
        for part in pages.split(&[come]) {
            self.reservation.spend(part.publish(&sums));
        }
    }

    /// Adds bytes, at `offset` bytes from the first page's start. `Invalid` unless they follow those written before and
    /// end within the run and the segment; `Retry` when the system has no memory left, after which the fill is to be given up.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if offset != self.written || bytes.len() as u64 > self.bytes() - self.written {
            let (id, end, all) = (self.spec.id, offset + bytes.len() as u64, self.bytes());
            return Err(Error::invalid(format!(
                "bytes {offset}..{end} of a fill of segment {id}, which has {all} and is at {}",
                self.written
            )));
        }
        self.written += bytes.len() as u64;
        let page_bytes = PAGE_BYTES as usize;
        let mut bytes = bytes;
        if !self.partial.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(page_bytes - self.partial.len()));
            self.partial.extend_from_slice(head);
            bytes = rest;
        }
        if self.partial.len() == page_bytes || !self.partial.is_empty() && self.written == self.bytes() {
            self.write_partial()?;
        }
        let (whole, tail) = bytes.split_at(bytes.len() / page_bytes * page_bytes);
        self.write_pages(whole)?;
        self.partial.extend_from_slice(tail);
        if !self.partial.is_empty() && self.written == self.bytes() {
            self.write_partial()?;
        }
        if self.held_back.is_none() {
            self.offer(self.next_page / PAGES_PER_BLOCK);
        }
        Ok(())
    }

    /// Ends the fill. `Invalid` when bytes are missing; `Retry` when some of the pages are held up by a slow disk, or held
    /// back by another fill, and so did not become readable.
    pub fn finish(mut self) -> Result<()> {
        self.complete()
    }

    /// Ends the fill as [`Self::finish`] does, and pins its pages in the same step.
    pub fn finish_pinned(mut self) -> Result<Pinned> {
        self.complete()?;
        let mut shard = self.core.table.of(self.segment);
        let pages = ReadPages::pin(&self.core, &mut shard, self.segment, self.run);
        drop(shard);
        pages.map(Pinned::new).ok_or_else(|| Error::retry(format!("pages of segment {} were dropped while filled", self.spec.id)))
    }

    fn complete(&mut self) -> Result<()> {
        if self.written != self.bytes() || self.next_page != self.run.end() {
            let (id, all) = (self.spec.id, self.bytes());
            return Err(Error::invalid(format!("a fill of segment {id} ended after {} of {all} bytes", self.written)));
        }
        self.release();
        for run in std::mem::take(&mut self.awaited) {
            self.await_other(run)?;
        }
        Ok(())
    }

    /// Writes the page that has been gathered; what it lacks lies after the segment's end and is zeros.
    fn write_partial(&mut self) -> Result<()> {
        let mut page = std::mem::take(&mut self.partial);
        page.resize(PAGE_BYTES as usize, 0);
        self.write_pages(&page)?;
        page.clear();
        self.partial = page;
        Ok(())
    }

    /// Writes the next pages, whole ones.
    fn write_pages(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(held_back) = &mut self.held_back {
            let at = (self.next_page - self.run.start) as usize * PAGE_BYTES as usize;
            held_back.pages.copy_part_in(at, bytes).map_err(no_memory)?;
            for bytes in bytes.chunks_exact(PAGE_BYTES as usize) {
                held_back.sums.push(page_sum(self.spec.id, self.next_page, bytes));
                self.next_page += 1;
            }
            return Ok(());
        }
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let left = PageRun { start: self.next_page, len: (bytes.len() as u64 / PAGE_BYTES) as u32 };
            let done = match self.find(left) {
                Found::Claimed(pages) => self.copy(pages, bytes)?,
                Found::Present(pages) => pages,
                Found::Elsewhere(pages) => {
                    self.awaited.push(PageRun { start: self.next_page, len: pages });
                    pages
                }
                Found::Wait => {
                    std::thread::yield_now();
                    0
                }
            };
            self.next_page += done;
            bytes = &bytes[done as usize * PAGE_BYTES as usize..];
        }
        Ok(())
    }

    fn copy(&mut self, mut pages: WritePages, bytes: &[u8]) -> Result<u32> {
        let run = pages.run();
        let bytes = &bytes[..run.len as usize * PAGE_BYTES as usize];
        pages.copy_in(bytes).map_err(no_memory)?;
        let taken = if self.spec.owner == Owner::Temporary {
            pages.publish_unsummed()
        } else {
            let each = bytes.chunks_exact(PAGE_BYTES as usize);
            let sums: Vec<u32> = run.pages().zip(each).map(|(page, bytes)| page_sum(self.spec.id, page, bytes)).collect();
            pages.publish(&sums)
        };
        self.reservation.spend(taken);
        Ok(run.len)
    }

    fn find(&self, run: PageRun) -> Found {
        let mut shard = self.core.table.of(self.segment);
        let entry = shard.get(self.segment);
        let present = leading(entry, run, true);
        if present > 0 {
            return Found::Present(present);
        }
        let missing = PageRun { start: run.start, len: leading(entry, run, false) };
        let (start, end, kind) = match entry.dram.claims.over(missing) {
            None => return Found::Claimed(WritePages::claim(&self.core, &mut shard, self.segment, missing, ClaimKind::Fill)),
            Some(claim) => (claim.run.start, claim.run.end(), claim.kind.clone()),
        };
        if start > missing.start {
            let free = PageRun { start: missing.start, len: start - missing.start };
            return Found::Claimed(WritePages::claim(&self.core, &mut shard, self.segment, free, ClaimKind::Fill));
        }
        match kind {
            ClaimKind::Punch => Found::Wait,
            ClaimKind::Fill | ClaimKind::HeldBack | ClaimKind::Load(_) => {
                Found::Elsewhere(end.min(missing.end()) - missing.start)
            }
        }
    }

    /// Waits until another fill, which never waits itself while it holds a claim, has published its pages.
    fn await_other(&self, run: PageRun) -> Result<()> {
        loop {
            let mut shard = self.core.table.of(self.segment);
            let entry = shard.get(self.segment);
            if entry.has(TierKind::Dram, run) {
                return Ok(());
            }
            if !matches!(entry.dram.claims.over(run).map(|claim| &claim.kind), Some(ClaimKind::Fill)) {
                return Err(Error::retry(format!(
                    "pages of segment {} are held up by the disk tier, or held back",
                    self.spec.id
                )));
            }
            drop(shard);
            std::thread::yield_now();
        }
    }

    /// Offers the blocks before `to`, which this fill has done with, to the disk tier.
    fn offer(&mut self, to: u32) {
        for block in self.offered_to..to {
            self.core.offer(self.segment, block);
        }
        self.offered_to = self.offered_to.max(to);
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        // While their blocks are pinned.
        self.held_back = None;
        self.offer(self.run.end().div_ceil(PAGES_PER_BLOCK));
        self.core.unpin_blocks(self.segment, self.run);
    }
}

fn no_memory(error: std::io::Error) -> Error {
    Error::retry(format!("the system gives the DRAM tier no memory: make the tier smaller ({error})")).with_source(error)
}

/// How many pages from the start of `run` are there, or are not.
fn leading(entry: &Segment, run: PageRun, present: bool) -> u32 {
    let mut count = 0;
    for (block, bits) in by_block(run) {
        let there = entry.present(TierKind::Dram, block).and(bits);
        let wanted = if present { there } else { bits.without(there) };
        if wanted == bits {
            count += bits.count();
            continue;
        }
        // The first run of what is wanted counts if it begins where the block's part of `run` does.
        return count + wanted.runs(block).first().filter(|first| first.start == run.start + count).map_or(0, |first| first.len);
    }
    count
}
