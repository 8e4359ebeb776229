//! The table itself: from a segment's id to its entry, a lock for each part of it, and references that fit in 32 bits.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use forebay_types::{Error, Result, SegmentId};
use parking_lot::{Mutex, MutexGuard};

use super::Segment;
use crate::settings::SegmentSpec;

const SHARD_BITS: u32 = 6;
const SLOT_BITS: u32 = 20;
const BLOCK_BITS: u32 = 6;

/// A block of an entry of the table, in 32 bits: shard, slot, block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockRef(u32);

impl BlockRef {
    pub fn block(self) -> u32 {
        self.0 & ((1 << BLOCK_BITS) - 1)
    }

    /// The block's number, in the order of the table.
    pub fn raw(self) -> u32 {
        self.0
    }

    pub fn segment(self) -> SegmentRef {
        SegmentRef(self.0 >> BLOCK_BITS)
    }
}

/// An entry of the table: shard, slot. Valid while something in the entry says that it is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SegmentRef(u32);

impl SegmentRef {
    fn new(shard: usize, slot: usize) -> Self {
        Self((shard as u32) << SLOT_BITS | slot as u32)
    }

    /// The first slot of the first shard.
    #[cfg(test)]
    pub fn first() -> Self {
        Self(0)
    }

    pub fn block(self, block: u32) -> BlockRef {
        debug_assert!(block < 1 << BLOCK_BITS);
        BlockRef(self.0 << BLOCK_BITS | block)
    }

    fn shard(self) -> usize {
        (self.0 >> SLOT_BITS) as usize
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }
}

/// Mixes what is a hash already: ids.
#[derive(Default)]
struct HashedAlready(u64);

impl Hasher for HashedAlready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, id: u128) {
        // The map takes its buckets from the low and its tags from the high bits; the shard took the highest ones.
        self.0 = (id as u64) ^ ((id >> 64) as u64).rotate_left(32);
    }
}

/// The segments whose ids fall into one shard.
#[derive(Default)]
pub(crate) struct Shard {
    index: usize,
    slots: HashMap<SegmentId, u32, BuildHasherDefault<HashedAlready>>,
    segments: Vec<Option<Segment>>,
    vacant: Vec<u32>,
}

impl Shard {
    pub fn find(&self, id: SegmentId) -> Option<SegmentRef> {
        self.slots.get(&id).map(|slot| SegmentRef::new(self.index, *slot as usize))
    }

    /// The living segment with this id.
    pub fn by_id(&mut self, id: SegmentId) -> Option<&mut Segment> {
        let slot = *self.slots.get(&id)?;
        self.segments[slot as usize].as_mut()
    }

    /// The entry, living or dead.
    pub fn get(&mut self, segment: SegmentRef) -> &mut Segment {
        self.segments[segment.slot()].as_mut().expect("entries stay while they are referred to")
    }

    /// The living segment with this id, made when there is none. `Retry` when the table is full, `Internal` when the
    /// segment is known with another length.
    pub fn find_or_add(&mut self, spec: &SegmentSpec) -> Result<SegmentRef> {
        if let Some(segment) = self.find(spec.id) {
            let known = self.get(segment).bytes;
            if known != spec.bytes {
                return Err(Error::internal(format!("segment {} has {known} bytes, not {}", spec.id, spec.bytes)));
            }
            return Ok(segment);
        }
        let slot = match self.vacant.pop() {
            Some(slot) => slot as usize,
            None if self.segments.len() < 1 << SLOT_BITS => {
                self.segments.push(None);
                self.segments.len() - 1
            }
            None => return Err(Error::retry("the table of segments is full: too many small objects are held")),
        };
        self.segments[slot] = Some(Segment::new(spec));
        self.slots.insert(spec.id, slot as u32);
        Ok(SegmentRef::new(self.index, slot))
    }

    /// Enters a segment that is not known yet; none when the table is full.
    pub fn adopt(&mut self, entry: Segment) -> Option<SegmentRef> {
        let spec = SegmentSpec { id: entry.id, bytes: entry.bytes, owner: entry.owner, keep: entry.keep };
        let segment = self.find_or_add(&spec).ok()?;
        *self.get(segment) = entry;
        Some(segment)
    }

    /// Makes a segment invisible; it stays in its slot until nothing refers to it.
    pub fn bury(&mut self, segment: SegmentRef) {
        let entry = self.get(segment);
        entry.dead = true;
        entry.keep = false;
        let id = entry.id;
        self.slots.remove(&id);
    }

    /// Drops the entry when nothing refers to it any more.
    pub fn drop_if_forgotten(&mut self, segment: SegmentRef) {
        let entry = self.get(segment);
        if !entry.is_forgotten() {
            return;
        }
        let (id, dead) = (entry.id, entry.dead);
        if !dead {
            self.slots.remove(&id);
        }
        self.segments[segment.slot()] = None;
        self.vacant.push(segment.slot() as u32);
    }

    /// The living segments.
    pub fn living(&self) -> impl Iterator<Item = (SegmentRef, &Segment)> {
        self.segments.iter().enumerate().filter_map(|(slot, entry)| {
            let entry = entry.as_ref().filter(|entry| !entry.dead)?;
            Some((SegmentRef::new(self.index, slot), entry))
        })
    }

    /// The living segment in this slot, if there is one.
    pub fn find_held(&mut self, segment: SegmentRef) -> Option<&mut Segment> {
        self.segments.get_mut(segment.slot())?.as_mut().filter(|entry| !entry.dead)
    }

    /// The first block of which anything is held at or after `(slot, block)`.
    fn next_block(&self, slot: usize, block: u32) -> Option<BlockRef> {
        let from = self.segments.get(slot..)?;
        from.iter().enumerate().find_map(|(offset, entry)| {
            let entry = entry.as_ref().filter(|entry| !entry.dead)?;
            let held = entry.dram.presence.blocks() | entry.disk.presence.blocks();
            let left = if offset == 0 { held & (u64::MAX << block) } else { held };
            (left != 0).then(|| SegmentRef::new(self.index, slot + offset).block(left.trailing_zeros()))
        })
    }

    /// Number of living segments.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes on the heap; segments' own are extrapolated from the first thousand.
    pub fn heap_bytes(&self) -> usize {
        let map = self.slots.capacity() * (size_of::<(SegmentId, u32)>() + 1) * 8 / 7;
        let slab = self.segments.capacity() * size_of::<Option<Segment>>() + self.vacant.capacity() * size_of::<u32>();
        let sampled = self.segments.len().min(1000);
        let own: usize = self.segments[..sampled].iter().flatten().map(Segment::heap_bytes).sum();
        map + slab + own * self.segments.len() / sampled.max(1)
    }
}

/// All segments in either tier, in shards with a lock each. No lock is held while bytes are copied, read or written.
pub(crate) struct Table {
    shards: Box<[Mutex<Shard>]>,
}

impl Table {
    pub fn new() -> Self {
        Self { shards: (0..1 << SHARD_BITS).map(|index| Mutex::new(Shard { index, ..Shard::default() })).collect() }
    }

    pub fn by_id(&self, id: SegmentId) -> MutexGuard<'_, Shard> {
        self.shards[(id.0 >> (128 - SHARD_BITS)) as usize].lock()
    }

    pub fn of(&self, segment: SegmentRef) -> MutexGuard<'_, Shard> {
        self.shards[segment.shard()].lock()
    }

    /// The first block of which anything is held at or after a number that [`BlockRef::raw`] gave.
    pub fn next_block(&self, from: u32) -> Option<BlockRef> {
        let from = BlockRef(from);
        let first = from.segment().shard();
        (first..1 << SHARD_BITS).find_map(|index| {
            let (slot, block) = if index == first { (from.segment().slot(), from.block()) } else { (0, 0) };
            self.shards[index].lock().next_block(slot, block)
        })
    }

    /// The shards, one locked at a time.
    pub fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Mutex::lock)
    }
}
