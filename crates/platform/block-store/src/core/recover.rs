//! The index of a disk: written while the books change, replayed after a restart, when space that it does not name is given back.

use std::collections::{BTreeMap, HashMap};

use forebay_types::{Owner, PageRun, SegmentId};

use super::admit::fingerprint;
use super::{Core, Disk};
use crate::media::{Direction, IndexRead, Record, read_index};
use crate::settings::SegmentSpec;
use crate::table::{BlockRef, Place, Segment, TierKind, by_block};

impl Core {
    /// Brings a disk's books back from its index, which knows nothing of other disks. No data is read: pages are verified when they are.
    pub fn recover(&self, disk: &Disk) {
        let began = forebay_runtime::now();
        let path = Disk::index_in(&disk.folder);
        let IndexRead { records, bad } = read_index(&path).unwrap_or_else(|error| {
            // Only a cache: what can't be read is not there.
            tracing::warn!(path = %path.display(), %error, "the disk tier's index can't be read: the tier starts empty");
            IndexRead::default()
        });
        if bad > 0 {
            tracing::warn!(path = %path.display(), records = bad, "damaged records of the disk tier's index are left out");
        }
        let mut replay = Replay::default();
        records.into_iter().for_each(|record| replay.apply(record));
        let mut listed = Vec::new();
        for segment in replay.into_segments() {
            self.adopt(disk, segment, &mut listed);
        }
        let place = Place::Disk(disk.no);
        self.list(place, &listed);
        while disk.tier.is_overfull() && self.evict_block(place) {}
        punch_gaps(disk);
        self.write_index(disk);
        // Of all disks so far.
        let (segments, blocks) = (self.table.shards().map(|shard| shard.len()).sum::<usize>(), disk.tier.account.blocks());
        let millis = began.elapsed().as_millis() as u64;
        tracing::info!(segments, blocks, millis, folder = %disk.folder.display(), "disk tier recovered");
    }

    /// Enters a segment as a disk's index has it.
    fn adopt(&self, disk: &Disk, mut entry: Segment, listed: &mut Vec<(BlockRef, u32)>) {
        let (Some(start), len) = (entry.disk.extent, u64::from(entry.pages())) else { return };
        // Temporary data is gone with the process that knew its numbers.
        if entry.owner == Owner::Temporary {
            return;
        }
        // A disk that was away meanwhile may have what was fetched again and lies on another one.
        if self.table.by_id(entry.id).find(entry.id).is_some() {
            return;
        }
        entry.disk_no = disk.no;
        if entry.disk.presence.is_empty() || !disk.tier.addresses.lock().take(start, len) {
            return;
        }
        for block in 0..entry.block_count() {
            let present = entry.present(TierKind::Disk, block);
            if present.is_empty() {
                continue;
            }
            disk.tier.account.add(entry.owner, present.count(), entry.keep, false);
            disk.tier.account.add_block();
            for run in present.runs(block) {
                let fresh = disk.sum_groups.add(start + u64::from(run.start), u64::from(run.len));
                disk.tier.force_reserve(u64::from(run.len) + fresh);
            }
            entry.disk.listed |= 1 << block;
        }
        let (id, blocks) = (entry.id, entry.disk.listed);
        let marks: Vec<u32> = (0..entry.block_count()).map(|block| fingerprint(&entry, block)).collect();
        if let Some(segment) = self.table.by_id(id).adopt(entry) {
            let present = marks.into_iter().enumerate().filter(|(block, _)| blocks >> block & 1 == 1);
            listed.extend(present.map(|(block, mark)| (segment.block(block as u32), mark)));
        }
    }

    /// Writes the pending records of a disk's index, or all of it when it is stale.
    pub fn write_index(&self, disk: &Disk) {
        if !disk.index.has_work() || !disk.health.is_on(Direction::Write) {
            return;
        }
        let live = disk.tier.account.blocks() * 2;
        if let Err(error) = disk.index.write_out(live, || self.snapshot(disk)) {
            self.disk_failed(disk, Direction::Write, true, format_args!("the index was not written: {error}"));
        }
    }

    /// What a disk has as records, for an index written anew.
    fn snapshot(&self, disk: &Disk) -> Vec<Record> {
        let mut records = Vec::new();
        for shard in self.table.shards() {
            for (_, entry) in shard.living() {
                let Some(start) = entry.disk.extent.filter(|_| entry.disk_no == disk.no) else { continue };
                let (id, bytes, owner, keep) = (entry.id, entry.bytes, entry.owner, entry.keep);
                records.push(Record::Extent { id, start, bytes, owner, keep });
                let mut last: Option<PageRun> = None;
                for run in (0..entry.block_count()).flat_map(|block| entry.present(TierKind::Disk, block).runs(block)) {
                    last = Some(match last {
                        Some(before) if before.end() == run.start => PageRun { start: before.start, len: before.len + run.len },
                        before => {
                            records.extend(before.map(|run| Record::Present { id, run }));
                            run
                        }
                    });
                }
                records.extend(last.map(|run| Record::Present { id, run }));
            }
        }
        records
    }
}

/// Gives back what a disk's file holds where no extent is: written, and not yet in the index when the process ended.
fn punch_gaps(disk: &Disk) {
    let free: Vec<_> = disk.tier.addresses.lock().free().collect();
    let Some(((tail, _), gaps)) = free.split_last() else { return };
    let mut result = disk.file.truncate(*tail);
    for (start, len) in gaps {
        if disk.file.has_data(*start, *len) {
            result = result.and(disk.file.punch(*start, *len));
        }
    }
    if let Err(error) = result {
        tracing::warn!(%error, "space of the disk tier was not given back");
    }
}

/// The state that a sequence of records leads to.
#[derive(Default)]
struct Replay {
    segments: HashMap<SegmentId, (u64, Segment)>,
    /// Extents by address; those of later records win over what they overlap.
    extents: BTreeMap<u64, (u64, SegmentId)>,
    /// Order of arrival.
    next: u64,
}

impl Replay {
    fn apply(&mut self, record: Record) {
        match record {
            Record::Extent { id, start, bytes, owner, keep } => {
                let spec = SegmentSpec { id, bytes, owner, keep };
                if let Some((_, known)) = self.segments.get_mut(&id)
                    && (known.disk.extent, known.bytes) == (Some(start), bytes)
                {
                    known.keep = keep;
                    return;
                }
                self.remove(id);
                self.remove_overlapping(start, u64::from(spec.pages()));
                let mut entry = Segment::new(&spec);
                entry.disk.extent = Some(start);
                self.extents.insert(start, (u64::from(spec.pages()), id));
                self.segments.insert(id, (self.next, entry));
                self.next += 1;
            }
            Record::Present { id, run } => self.change(id, run, true),
            Record::Dropped { id, run } => self.change(id, run, false),
            Record::Freed { id } => self.remove(id),
            Record::Keep { id, keep } => {
                if let Some((_, entry)) = self.segments.get_mut(&id) {
                    entry.keep = keep;
                }
            }
        }
    }

    fn change(&mut self, id: SegmentId, run: PageRun, present: bool) {
        let Some((_, entry)) = self.segments.get_mut(&id).filter(|(_, entry)| run.end() <= entry.pages()) else { return };
        for (block, bits) in by_block(run) {
            if present {
                entry.insert(TierKind::Disk, block, bits);
            } else {
                entry.remove(TierKind::Disk, block, bits);
            }
        }
    }

    fn remove(&mut self, id: SegmentId) {
        if let Some((_, entry)) = self.segments.remove(&id)
            && let Some(start) = entry.disk.extent
        {
            self.extents.remove(&start);
        }
    }

    fn remove_overlapping(&mut self, start: u64, len: u64) {
        while let Some((&other, &(other_len, id))) = self.extents.range(..start.saturating_add(len)).next_back() {
            if other.saturating_add(other_len) <= start {
                break;
            }
            self.remove(id);
        }
    }

    fn into_segments(self) -> impl Iterator<Item = Segment> {
        let mut segments: Vec<_> = self.segments.into_values().collect();
        segments.sort_unstable_by_key(|(order, _)| *order);
        segments.into_iter().map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::Owner;

    fn extent(id: u128, start: u64, pages: u32) -> Record {
        Record::Extent { id: SegmentId(id), start, bytes: pages * 4096, owner: Owner::Cache, keep: false }
    }

    fn present(id: u128, start: u32, len: u32) -> Record {
        Record::Present { id: SegmentId(id), run: PageRun { start, len } }
    }

    fn replayed(records: &[Record]) -> Vec<(u128, u64, u64)> {
        let mut replay = Replay::default();
        records.iter().for_each(|record| replay.apply(*record));
        let of = |entry: Segment| (entry.id.0, entry.disk.extent.unwrap(), entry.page_count(TierKind::Disk));
        replay.into_segments().map(of).collect()
    }

    #[test]
    fn later_extents_win_over_what_they_overlap() {
        let records =
            [extent(1, 0, 10), present(1, 0, 10), extent(2, 10, 10), present(2, 0, 3), extent(3, 9, 2), present(3, 0, 2)];
        assert_eq!(replayed(&records), [(3, 9, 2)]);
        assert_eq!(replayed(&records[..4]), [(1, 0, 10), (2, 10, 3)]);
    }

    #[test]
    fn replaying_a_suffix_twice_changes_nothing() {
        let dropped = Record::Dropped { id: SegmentId(1), run: PageRun { start: 0, len: 4 } };
        let records = [
            extent(1, 0, 300),
            present(1, 0, 300),
            dropped,
            Record::Freed { id: SegmentId(2) },
            extent(2, 300, 1),
            present(2, 0, 1),
        ];
        let once = replayed(&records);
        assert_eq!(once, [(1, 0, 296), (2, 300, 1)]);
        for from in 0..records.len() {
            let twice: Vec<_> = records.iter().chain(&records[from..]).copied().collect();
            let mut found = replayed(&twice);
            found.sort_unstable();
            assert_eq!(found, once, "from {from}");
        }
    }
}
