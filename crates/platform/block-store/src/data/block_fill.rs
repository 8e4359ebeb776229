//! Temporary blocks, received where they will lie: copied once, and without checksums while they are in memory.

use std::sync::Arc;

use forebay_types::{Error, Owner, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result};

use crate::core::{BlockPin, Core, Reservation, WritePages};
use crate::media::SumGroups;
use crate::settings::SegmentSpec;
use crate::table::{ClaimKind, SegmentRef};

/// A block of temporary data that is received where it will lie. Dropped before [`Self::finish`], there is no such block.
pub struct BlockFill {
    core: Arc<Core>,
    segment: SegmentRef,
    spec: SegmentSpec,
    /// None once it is finished.
    pages: Option<WritePages>,
    /// Its pages hold what a freed block held; others have no memory yet.
    used: bool,
    /// Bytes that have been written one after the other.
    written: usize,
    reservation: Reservation,
    _pin: BlockPin,
}

impl BlockFill {
    /// Whether a segment of this length is written so: it takes all pages of one block.
    pub(crate) fn suits(spec: &SegmentSpec) -> bool {
        spec.owner == Owner::Temporary && spec.pages() == PAGES_PER_BLOCK
    }

    pub(crate) fn begin(core: &Arc<Core>, spec: SegmentSpec) -> Result<Self> {
        let run = PageRun::new(0, PAGES_PER_BLOCK);
        spec.validate(run)?;
        assert!(Self::suits(&spec), "a whole block of temporary data");
        if core.is_closed() {
            return Err(Error::closed(format!("{}: the store is closed", core.settings.folder.display())));
        }
        // One page of sums more for a border of their pages that the block may cross.
        let sum_pages = SumGroups::pages_of(1023, PAGES_PER_BLOCK.into());
        let (start, reservation, fresh) = core.make_block(sum_pages)?;
        let mut shard = core.table.by_id(spec.id);
        let entered = shard.find_or_add(&spec).and_then(|segment| match shard.get(segment).dram.extent {
            None => Ok(segment),
            Some(_) => Err(Error::internal(format!("segment {} is there already", spec.id))),
        });
        let segment = match entered {
            Ok(segment) => segment,
            Err(error) => {
                drop(shard);
                core.arena.punch(start, PAGES_PER_BLOCK.into());
                core.dram.addresses.lock().release(start, PAGES_PER_BLOCK.into());
                return Err(error);
            }
        };
        let entry = shard.get(segment);
        entry.dram.extent = Some(start);
        core.pin_blocks(entry, run);
        let pages = WritePages::claim(core, &mut shard, segment, run, ClaimKind::Fill);
        drop(shard);
        let (core, pin) = (core.clone(), BlockPin::new(core, segment, run));
        Ok(Self { core, segment, spec, pages: Some(pages), used: !fresh, written: 0, reservation, _pin: pin })
    }

    /// The block's bytes, to be written there; none where its pages have no memory yet, so that [`Self::write`] costs less. What they
    /// hold before is of no meaning.
    pub fn memory(&mut self) -> Option<&mut [u8]> {
        let pages = self.pages.as_mut().expect("there until finished");
        self.used.then(|| &mut pages.bytes()[..self.spec.bytes as usize])
    }

    /// Where its bytes lie in the DRAM tier, for a process that writes them by the tier's descriptor.
    pub fn arena_offset(&self) -> u64 {
        self.pages.as_ref().expect("there until finished").page * PAGE_BYTES
    }

    /// Copies bytes behind those that were copied before. `Retry` when the system has no memory left.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let (from, to) = (self.written, self.written + bytes.len());
        assert!(to <= self.spec.bytes as usize, "no more than the block has");
        match self.memory() {
            Some(memory) => memory[from..to].copy_from_slice(bytes),
            None => self.pages.as_mut().expect("there until finished").copy_part_in(from, bytes).map_err(|error| {
                let message = format!("the system gives the DRAM tier no memory: make the tier smaller ({error})");
                Error::retry(message).with_source(error)
            })?,
        }
        self.written = to;
        Ok(())
    }

    /// Its first `written` bytes are what it is to hold: makes it readable. Nothing of a freed block is left behind them.
    pub fn finish(mut self, written: usize) {
        assert!(written <= self.spec.bytes as usize, "no more than the block has");
        let mut pages = self.pages.take().expect("there until finished");
        if self.used {
            pages.bytes()[written..].fill(0);
        }
        self.reservation.spend(pages.publish_unsummed());
        self.core.offer(self.segment, 0);
    }
}

impl Drop for BlockFill {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            drop(pages);
            self.core.free(self.spec.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::SegmentId;

    use super::*;
    use crate::{BlockStore, StoreSettings};

    fn spec(number: u128) -> SegmentSpec {
        SegmentSpec { id: SegmentId(number), bytes: 1 << 20, owner: Owner::Temporary, keep: true }
    }

    #[test]
    fn a_block_given_up_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 8 << 20)).unwrap();
        let mut fill = store.begin_block(spec(1)).unwrap();
        fill.write(&[7; 1 << 20]).unwrap();
        assert!(store.pin(SegmentId(1), PageRun::new(0, 256)).is_none(), "not readable before it is finished");
        drop(fill);
        assert!(store.segments().is_empty());
        assert_eq!((store.usage().segments, store.usage().dram.used_bytes), (0, 0));
        assert_eq!(store.resident_bytes().unwrap(), 0);
    }

    #[test]
    fn a_shorter_block_in_the_memory_of_a_freed_one_shows_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 << 20)).unwrap();
        let mut first = store.begin_block(spec(1)).unwrap();
        let at = first.arena_offset();
        first.write(&[7; 1 << 20]).unwrap();
        first.finish(1 << 20);
        store.free(SegmentId(1));
        // Received where it lies, then copied there; also of a length that is not the segment's.
        for (number, written, bytes) in [(2, 900_000, 1 << 20), (3, (1 << 20) - 100, (1 << 20) - 100), (4, 1 << 20, 1 << 20)] {
            let spec = SegmentSpec { bytes, ..spec(number) };
            let mut fill = store.begin_block(spec).unwrap();
            assert_eq!(fill.arena_offset(), at, "block {number} is in the memory of the one before");
            match number {
                2 => fill.memory().expect("the memory of a freed block")[..written].fill(8),
                _ => fill.write(&vec![8; written]).unwrap(),
            }
            fill.finish(written);
            let pinned = store.pin(SegmentId(number), PageRun::new(0, 256)).unwrap();
            assert!(pinned[..written].iter().all(|byte| *byte == 8), "block {number}");
            assert!(pinned[written..].iter().all(|byte| *byte == 0), "block {number}");
            drop(pinned);
            // The next finds old bytes everywhere again.
            store.free(SegmentId(number));
            let mut fill = store.begin_block(self::spec(number + 100)).unwrap();
            fill.write(&[7; 1 << 20]).unwrap();
            fill.finish(1 << 20);
            store.free(SegmentId(number + 100));
        }
    }

    #[test]
    fn a_block_that_comes_in_pieces_is_the_same_in_new_and_in_used_memory() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 << 20)).unwrap();
        let expected: Vec<u8> = (0..(1 << 20) - 5).map(|at: u32| (at / 7) as u8).collect();
        for (number, is_used) in [(1, false), (2, true)] {
            let mut fill = store.begin_block(spec(number)).unwrap();
            assert_eq!(fill.memory().is_some(), is_used);
            // Neither whole pages nor all alike.
            let mut left = &expected[..];
            for bytes in [1, 4095, 4097, 100_000, 300_001].into_iter().cycle() {
                let (piece, rest) = left.split_at(bytes.min(left.len()));
                fill.write(piece).unwrap();
                left = rest;
                if left.is_empty() {
                    break;
                }
            }
            fill.finish(expected.len());
            let pinned = store.pin(SegmentId(number), PageRun::new(0, 256)).unwrap();
            assert!(pinned[..expected.len()] == expected[..] && pinned[expected.len()..] == [0; 5]);
            drop(pinned);
            store.free(SegmentId(number));
        }
    }

    #[tokio::test]
    async fn temporary_blocks_verify_when_they_come_back_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 << 20).with_disk(64 << 20)).unwrap();
        let run = PageRun::new(0, 256);
        for number in 1..=16 {
            let begun = loop {
                match store.begin_block(spec(number)) {
                    Ok(fill) => break fill,
                    // The disk tier has not taken the ones before yet.
                    Err(_) => forebay_runtime::time::sleep(std::time::Duration::from_millis(5)).await,
                }
            };
            let mut fill = begun;
            fill.write(&[number as u8; 1 << 20]).unwrap();
            fill.finish(1 << 20);
        }
        store.flush().await;
        for number in 1..=16 {
            store.load(SegmentId(number), run).await.unwrap();
            let pinned = store.pin(SegmentId(number), run).unwrap();
            assert!(pinned.iter().all(|byte| *byte == number as u8), "block {number}");
        }
    }

    #[test]
    fn memory_of_freed_blocks_is_used_again_and_given_up_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 << 20)).unwrap();
        let written = |number| {
            let mut fill = store.begin_block(spec(number)).unwrap();
            fill.write(&[number as u8; 1 << 20]).unwrap();
            fill.finish(1 << 20);
            store.pin(SegmentId(number), PageRun::new(0, 256)).unwrap()
        };
        let first = written(1);
        let at = first.arena_offset();
        store.free(SegmentId(1));
        let second = written(2);
        assert_ne!(second.arena_offset(), at, "the first one is being read");
        assert!(first.iter().all(|byte| *byte == 1));
        drop(first);
        let counted = store.usage().dram.used_bytes;
        // A page of checksums is counted, though nothing is written to it.
        assert_eq!(counted, store.resident_bytes().unwrap() + PAGE_BYTES);
        assert_eq!(written(3).arena_offset(), at);
        store.free(SegmentId(3));
        store.free(SegmentId(2));
        drop(second);
        // Room for something else: all that is kept goes before it is refused.
        let cached = SegmentSpec { id: SegmentId(9), bytes: 3 << 20, owner: Owner::Cache, keep: false };
        let mut fill = store.begin_fill(cached, PageRun::new(0, 768)).unwrap();
        fill.write(0, &vec![9; 3 << 20]).unwrap();
        fill.finish().unwrap();
        assert_eq!(store.usage().dram.used_bytes, store.resident_bytes().unwrap());
        store.free(SegmentId(9));
        store.trim_spares(std::time::Duration::ZERO);
        assert_eq!((store.usage().dram.used_bytes, store.resident_bytes().unwrap()), (0, 0));
    }
}
