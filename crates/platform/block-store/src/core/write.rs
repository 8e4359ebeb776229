//! Pages from the DRAM tier to disk, in the background: what can't be written now stays in memory and is found again later.

use std::sync::Arc;

use forebay_types::{Owner, PageRun};

use super::{Core, Disk, ReadPages, Reservation};
use crate::media::{Direction, Record, SumGroups};
use crate::table::{BlockRef, ClaimKind, DiskNo, PageBits, Place, Segment, SegmentRef, TierKind, by_block};

impl Core {
    /// Queues a block for the disk tier if it has pages that are in DRAM only. The block is pinned by the caller.
    pub fn offer(&self, segment: SegmentRef, block: u32) {
        if !self.disks.is_empty() {
            let mut shard = self.table.of(segment);
            self.offer_entry(shard.get(segment), segment, block);
        }
    }

    /// Queues every block that has pages in DRAM only; returns how many pages there are of that kind.
    pub fn offer_all(&self) -> u64 {
        let mut pages = 0;
        for mut shard in self.table.shards() {
            let blocks: Vec<_> = shard.living().flat_map(|(segment, entry)| unwritten_blocks(segment, entry)).collect();
            for (segment, block, count) in blocks {
                pages += u64::from(count);
                self.offer_entry(shard.get(segment), segment, block);
            }
        }
        pages
    }

    /// Looks for blocks that were left out, when this disk takes some.
    pub fn sweep(&self, no: DiskNo) {
        let disk = self.disk(no);
        // Beside others one that can't be read takes nothing either: all would be looked through in vain each time.
        let takes = if self.disks.len() == 1 { disk.health.is_on(Direction::Write) } else { disk.takes() };
        if takes {
            self.offer_all();
        } else {
            disk.pool.skip();
        }
    }

    fn offer_entry(&self, entry: &mut Segment, segment: SegmentRef, block: u32) {
        if entry.dead || entry.writing >> block & 1 == 1 || unwritten(entry, block).is_empty() {
            return;
        }
        match self.disk_for(entry) {
            Some(disk) if !disk.health.is_on(Direction::Write) => disk.pool.skip(),
            Some(disk) if disk.pool.write(segment.block(block)) => {
                entry.disk_no = disk.no;
                entry.writing |= 1 << block;
            }
            Some(_) => {}
            // Its own takes nothing now.
            None if entry.is_bound() => self.disk(entry.disk_no).pool.skip(),
            // Disks that take nothing now look for it when they do. Where the rest is kept there is nothing to look for.
            None => self.disks.iter().filter(|disk| !disk.takes()).for_each(|disk| disk.pool.skip()),
        }
    }

    /// What was left out is looked for by the first disk that has time and takes something.
    fn skip_for_now(&self) {
        self.disks.iter().for_each(|disk| disk.pool.skip());
    }

    /// Writes what a block has in DRAM only. Never fails: what can't be written stays in DRAM only.
    pub fn write_block(self: &Arc<Self>, block: BlockRef) {
        let (segment, index) = (block.segment(), block.block());
        let Some((no, runs)) = self.begin_write(segment, index) else { return };
        let pages: u64 = runs.iter().map(|run| u64::from(run.run().len)).sum();
        // One page of sums more for each border of their pages that the block's may cross.
        let Ok(mut reservation) = self.make_room(Place::Disk(no), pages + SumGroups::pages_of(1023, pages) + 1) else { return };
        for run in runs {
            if !self.write_run(self.disk(no), segment, &run, &mut reservation) {
                return;
            }
        }
    }

    /// Pins what is to be written, and says where.
    fn begin_write(self: &Arc<Self>, segment: SegmentRef, block: u32) -> Option<(DiskNo, Vec<ReadPages>)> {
        let mut shard = self.table.of(segment);
        let entry = shard.get(segment);
        entry.writing &= !(1 << block);
        let unwritten = if entry.dead { PageBits::default() } else { unwritten(entry, block) };
        if unwritten.is_empty() {
            shard.drop_if_forgotten(segment);
            return None;
        }
        let (no, runs) = (entry.disk_no, unwritten.runs(block));
        Some((no, runs.into_iter().filter_map(|run| ReadPages::pin(self, &mut shard, segment, run)).collect()))
    }

    /// Writes one run; false when the rest of the block should not be tried.
    fn write_run(self: &Arc<Self>, disk: &Disk, segment: SegmentRef, pages: &ReadPages, reservation: &mut Reservation) -> bool {
        let run = pages.run();
        let Some(extent) = self.claim_on_disk(disk, segment, run) else { return false };
        let (start, len) = (extent + u64::from(run.start), u64::from(run.len));
        let fresh = disk.sum_groups.add(start, len);
        let written = disk.file.write(start, pages.bytes()).and_then(|()| disk.sums.store(start, &pages.sums()));
        match written {
            Ok(()) => {
                disk.health.succeeded(Direction::Write);
                reservation.spend(len + fresh);
                self.publish(TierKind::Disk, segment, run);
                true
            }
            Err(error) => {
                self.disk_failed(disk, Direction::Write, is_grave(&error), describe(&error));
                self.skip_for_now();
                // Takes the pages of sums off again, and gives back what was written.
                self.punch(Place::Disk(disk.no), start, len);
                self.unclaim(TierKind::Disk, segment, run);
                false
            }
        }
    }

    /// Sees to an extent on a disk and claims pages of it; none when the segment was freed or bound to another disk meanwhile, someone
    /// else is at these pages, or there are no addresses. The block is pinned, so extent and address stay.
    pub fn claim_on_disk(&self, disk: &Disk, segment: SegmentRef, run: PageRun) -> Option<u64> {
        let place = Place::Disk(disk.no);
        loop {
            let mut shard = self.table.of(segment);
            let entry = shard.get(segment);
            let has_some = || by_block(run).any(|(block, bits)| !entry.present(TierKind::Disk, block).and(bits).is_empty());
            if entry.dead || entry.disk.claims.over(run).is_some() || has_some() {
                return None;
            }
            if entry.is_bound() && entry.disk_no != disk.no {
                self.skip_for_now();
                return None;
            }
            let had_extent = entry.disk.extent.is_some();
            if self.place(place, entry) {
                let start = entry.disk.extent?;
                if !had_extent {
                    let (id, bytes, owner, keep) = (entry.id, entry.bytes, entry.owner, entry.keep);
                    self.log(disk.no, Record::Extent { id, start, bytes, owner, keep });
                }
                entry.disk.claims.add(run, ClaimKind::Fill);
                return Some(start);
            }
            drop(shard);
            if !self.evict_block(place) {
                return None;
            }
        }
    }
}

/// The blocks of which pages are in DRAM only: (segment, block, pages).
fn unwritten_blocks(segment: SegmentRef, entry: &Segment) -> impl Iterator<Item = (SegmentRef, u32, u32)> + use<> {
    let counts: Vec<_> = (0..entry.block_count()).map(|block| (segment, block, unwritten(entry, block).count())).collect();
    counts.into_iter().filter(|(_, _, count)| *count > 0)
}

/// The pages of a block that are in DRAM, not on disk, and are to be there: a decoded column goes to disk compressed, as another segment.
fn unwritten(entry: &Segment, block: u32) -> PageBits {
    if entry.owner == Owner::Form {
        return PageBits::default();
    }
    entry.present(TierKind::Dram, block).without(entry.present(TierKind::Disk, block))
}

/// Whether the next write will fail as this one did.
fn is_grave(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem)
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull => format!("{error}: make room on the file system, or make the disk tier smaller"),
        _ => error.to_string(),
    }
}
