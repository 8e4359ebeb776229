//! A disk that can't be read any more: what it held is forgotten, so that it is fetched again and lies on the others; but for temporary
//! data that is nowhere else.

use std::fmt;
use std::sync::Arc;

use forebay_types::{Owner, PageRun};

use super::{BlockPin, Core, Disk};
use crate::media::Direction;
use crate::table::{DiskNo, Place, Segment, TierKind};

impl Core {
    /// A request to a disk failed, gravely or not. Where reading is paused by that and another disk takes blocks, what this
    /// one holds is forgotten; a disk that is alone is tried again with what it has.
    pub fn disk_failed(&self, disk: &Disk, direction: Direction, is_grave: bool, what: impl fmt::Display) {
        let is_paused = disk.health.failed(direction, is_grave, what);
        let other = self.disks.iter().find(|other| other.no != disk.no && other.takes());
        if let Some(other) = other.filter(|_| is_paused && direction == Direction::Read) {
            let no = disk.no;
            // Threads of the one that fails may hang.
            other.pool.task(move |core| core.forget_disk(no));
        }
    }

    fn forget_disk(self: &Arc<Self>, no: DiskNo) {
        let mut segments = Vec::new();
        for shard in self.table.shards() {
            let there = shard.living().filter(|(_, entry)| entry.disk_no == no && entry.disk.extent.is_some());
            segments.extend(there.map(|(segment, _)| segment));
        }
        let mut pages = 0;
        for segment in segments {
            // It may be another one by now, or on another disk.
            let mut shard = self.table.of(segment);
            let Some(entry) = shard.find_held(segment) else { continue };
            if entry.disk_no != no || entry.disk.extent.is_none() {
                continue;
            }
            // It can't be fetched again: it is there when the disk gives it again, and whoever has counted it frees it.
            if entry.owner == Owner::Temporary && !is_in_memory(entry) {
                continue;
            }
            let whole = PageRun::new(0, entry.pages());
            pages += entry.page_count(TierKind::Disk);
            self.pin_blocks(entry, whole);
            drop(shard);
            let pin = BlockPin::new(self, segment, whole);
            self.drop_pages(TierKind::Disk, segment, whole);
            drop(pin);
        }
        let disk = self.disk(no);
        // Nothing binds to it any more what no reader has pinned.
        self.tier(Place::Disk(no)).policy.lock().retain(|block| self.is_listed(TierKind::Disk, block));
        for block in disk.pool.take_writes() {
            let mut shard = self.table.of(block.segment());
            shard.get(block.segment()).writing &= !(1 << block.block());
            shard.drop_if_forgotten(block.segment());
        }
        tracing::error!(pages, folder = %disk.folder.display(), "a disk can't be read: what it held of the disk tier is forgotten");
        self.offer_all();
    }
}

/// Whether the DRAM tier has all that the disk has of a segment.
fn is_in_memory(entry: &Segment) -> bool {
    let on_disk = |block| entry.present(TierKind::Disk, block).without(entry.present(TierKind::Dram, block));
    (0..entry.block_count()).all(|block| on_disk(block).is_empty())
}
