//! Temporary blocks, and decoded columns that were compressed, go to the disk tier and come back with no page of the DRAM tier, which has
//! better use for its room.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_types::{Error, ErrorKind, Owner, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result, SegmentId};
use tokio::sync::oneshot;

use crate::core::{BlockPin, Core, Disk};
use crate::media::{Direction, SumGroups, page_sum};
use crate::settings::SegmentSpec;
use crate::table::{Place, SegmentRef, TierKind};

/// Memory that begins with a page, as O_DIRECT wants it.
struct Aligned {
    memory: BytesMut,
}

impl Aligned {
    fn new(bytes: usize) -> Self {
        let page = PAGE_BYTES as usize;
        let mut memory = BytesMut::zeroed(bytes + page);
        let ahead = memory.as_ptr().align_offset(page);
        drop(memory.split_to(ahead));
        memory.truncate(bytes);
        Self { memory }
    }
}

/// A block that was written, and goes again unless whoever asked for it hears of it.
struct Written(Option<(Arc<Core>, SegmentId)>);

impl Written {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if let Some((core, id)) = self.0.take() {
            core.free(id);
        }
    }
}

/// Writes a block of temporary data, or a column, to the disk tier, with nothing of it in the DRAM tier: to the disk that room and load
/// name, to the next where that has no room or fails. `Retry` when none takes it, `Invalid` without a disk tier.
pub(crate) async fn write(core: &Arc<Core>, spec: SegmentSpec, bytes: Bytes) -> Result<()> {
    let is_block = spec.owner == Owner::Temporary && spec.pages() <= PAGES_PER_BLOCK;
    assert!(is_block || spec.owner == Owner::Form, "a block of temporary data, or a column");
    assert_eq!(bytes.len(), spec.bytes as usize);
    core.check_disk()?;
    let mut tried = Vec::new();
    let mut refused = Error::retry("the disk tier takes no more: the rest of it is kept, or its disks fail");
    while let Some(disk) = core.disk_without(spec.id, spec.owner, &tried) {
        let (no, bytes) = (disk.no, bytes.clone());
        match on_disk(disk, move |core| write_to(core, core.disk(no), spec, &bytes)).await? {
            Ok(written) => {
                written.keep();
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Retry => refused = error,
            Err(error) => return Err(error),
        }
        tried.push(no);
    }
    Err(refused)
}

/// Pages of such a block, verified; none when they are not there (any more), or the disk does not give them.
pub(crate) async fn read(core: &Arc<Core>, id: SegmentId, run: PageRun) -> Result<Option<Bytes>> {
    core.check_disk()?;
    let Some(disk) = core.disk_of(id) else { return Ok(None) };
    on_disk(disk, move |core| read_verified(core, id, run)).await
}

/// All of a column, verified and without what its last page is padded with; none when it is not there (any more), or the disk does not
/// give it.
pub(crate) async fn read_whole(core: &Arc<Core>, id: SegmentId) -> Result<Option<Bytes>> {
    core.check_disk()?;
    let Some(disk) = core.disk_of(id) else { return Ok(None) };
    on_disk(disk, move |core| read_whole_verified(core, id)).await
}

/// Does something on a disk's own threads.
async fn on_disk<T: Send + 'static>(disk: &Disk, work: impl FnOnce(&Arc<Core>) -> T + Send + 'static) -> Result<T> {
    let (done, waiting) = oneshot::channel();
    disk.pool.task(move |core| {
        // Whoever asked may be gone.
        let _ = done.send(work(core));
    });
    waiting.await.map_err(|_| Error::closed("the store is being closed"))
}

fn write_to(core: &Arc<Core>, disk: &Disk, spec: SegmentSpec, bytes: &[u8]) -> Result<Written> {
    let place = Place::Disk(disk.no);
    let run = PageRun::new(0, spec.pages());
    spec.validate(run)?;
    let len = u64::from(run.len);
    // One page of sums more for a border of their pages that the block may cross.
    let mut reservation = core.make_room(place, len + SumGroups::pages_of(1023, len))?;
    let (segment, pin) = {
        let mut shard = core.table.by_id(spec.id);
        let segment = shard.find_or_add(&spec)?;
        core.pin_blocks(shard.get(segment), run);
        (segment, BlockPin::new(core, segment, run))
    };
    let Some(start) = core.claim_on_disk(disk, segment, run) else {
        core.free(spec.id);
        return Err(Error::retry("the disk tier has no addresses left and all of it is kept"));
    };
    let mut pages = Aligned::new(run.len as usize * PAGE_BYTES as usize);
    pages.memory[..bytes.len()].copy_from_slice(bytes);
    let each = pages.memory.chunks_exact(PAGE_BYTES as usize);
    let sums: Vec<u32> = run.pages().zip(each).map(|(page, bytes)| page_sum(spec.id, page, bytes)).collect();
    let fresh = disk.sum_groups.add(start, len);
    match disk.file.write(start, &pages.memory).and_then(|()| disk.sums.store(start, &sums)) {
        Ok(()) => {
            disk.health.succeeded(Direction::Write);
            reservation.spend(len + fresh);
            core.publish(TierKind::Disk, segment, run);
            Ok(Written(Some((core.clone(), spec.id))))
        }
        Err(error) => {
            core.disk_failed(disk, Direction::Write, false, &error);
            core.punch(place, start, len);
            core.unclaim(TierKind::Disk, segment, run);
            drop(pin);
            core.free(spec.id);
            Err(Error::retry(format!("the disk tier does not take a block: {error}")).with_source(error))
        }
    }
}

fn read_whole_verified(core: &Arc<Core>, id: SegmentId) -> Option<Bytes> {
    let (bytes, run) = {
        let mut shard = core.table.by_id(id);
        let entry = shard.by_id(id)?;
        (entry.bytes as usize, PageRun::new(0, entry.pages()))
    };
    read_verified(core, id, run).map(|pages| pages.slice(..bytes))
}

fn read_verified(core: &Arc<Core>, id: SegmentId, run: PageRun) -> Option<Bytes> {
    let (segment, extent, disk, _pin) = {
        let mut shard = core.table.by_id(id);
        let segment = shard.find(id)?;
        let entry = shard.get(segment);
        if !entry.has(TierKind::Disk, run) {
            return None;
        }
        let extent = entry.disk.extent?;
        let disk = core.disk(entry.disk_no);
        core.pin_blocks(entry, run);
        (segment, extent, disk, BlockPin::new(core, segment, run))
    };
    let start = extent + u64::from(run.start);
    let mut pages = Aligned::new(run.len as usize * PAGE_BYTES as usize);
    let read = disk.file.read(start, &mut pages.memory).and_then(|()| disk.sums.load(start, u64::from(run.len)));
    match read {
        Ok(sums) => {
            disk.health.succeeded(Direction::Read);
            let each = pages.memory.chunks_exact(PAGE_BYTES as usize).zip(sums);
            let is_good = run.pages().zip(each).all(|(page, (bytes, sum))| page_sum(id, page, bytes) == sum);
            is_good.then(|| pages.memory.freeze()).or_else(|| drop_damaged(core, segment, id, run))
        }
        Err(error) => {
            core.disk_failed(disk, Direction::Read, false, error);
            None
        }
    }
}

fn drop_damaged(core: &Core, segment: SegmentRef, id: SegmentId, run: PageRun) -> Option<Bytes> {
    tracing::warn!(segment = %id, pages = run.len, "pages of the disk tier do not verify and are dropped");
    core.drop_pages(TierKind::Disk, segment, run);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockStore, StoreSettings};

    fn spec(number: u128, bytes: u32) -> SegmentSpec {
        SegmentSpec { id: SegmentId(number), bytes, owner: Owner::Temporary, keep: true }
    }

    #[tokio::test]
    async fn blocks_go_to_disk_and_come_back_with_nothing_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 2 << 20).with_disk(8 << 20)).unwrap();
        let before = store.usage().dram.used_bytes;
        let bytes = |number: u128, len: usize| Bytes::from((0..len).map(|at| (at / 7) as u8 ^ number as u8).collect::<Vec<_>>());
        for (number, len) in [(1, 1), (2, 4096), (3, 70_001), (4, 1 << 20)] {
            let all = bytes(number, len);
            store.write_to_disk(spec(number, len as u32), all.clone()).await.unwrap();
            let run = PageRun::covering(0..len as u64).unwrap();
            assert_eq!(store.read_from_disk(SegmentId(number), run).await.unwrap().unwrap()[..len], all);
        }
        let part = store.read_from_disk(SegmentId(4), PageRun::new(10, 12)).await.unwrap().unwrap();
        assert_eq!(part, bytes(4, 1 << 20)[10 << 12..12 << 12]);
        assert_eq!(store.usage().dram.used_bytes, before);
        assert_eq!(store.held(SegmentId(4)).disk_bytes, 1 << 20);
        store.free(SegmentId(4));
        assert!(store.read_from_disk(SegmentId(4), PageRun::new(10, 12)).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_full_disk_tier_refuses_and_has_room_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 2 << 20).with_disk(4 << 20)).unwrap();
        let block = Bytes::from(vec![7; 1 << 20]);
        let mut written = 0;
        while store.write_to_disk(spec(written, 1 << 20), block.clone()).await.is_ok() {
            written += 1;
            assert!(written <= 4);
        }
        assert!(written >= 3, "{written}");
        assert_eq!(store.held(SegmentId(written)).bytes, 0, "what is refused leaves nothing");
        store.free(SegmentId(0));
        store.flush().await;
        store.write_to_disk(spec(100, 1 << 20), block.clone()).await.unwrap();
        drop(store);
        // Nobody knows the numbers of temporary blocks any more.
        let store = BlockStore::open(StoreSettings::new(folder.path(), 2 << 20).with_disk(4 << 20)).unwrap();
        assert_eq!((store.usage().disk.used_bytes, store.segments().len()), (0, 0));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 2 << 20).with_disk(8 << 20)).unwrap();
        for number in 0..50 {
            let mut writing = Box::pin(store.write_to_disk(spec(number, 1 << 20), Bytes::from(vec![7; 1 << 20])));
            let written = polled_once(writing.as_mut()).await;
            drop(writing);
            if written.is_some() {
                // So quick a disk.
                store.free(SegmentId(number));
            }
            store.flush().await;
        }
        assert_eq!((store.usage().disk.used_bytes, store.segments().len()), (0, 0));
    }

    async fn polled_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn columns_are_there_after_a_restart_and_take_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let open = || BlockStore::open(StoreSettings::new(folder.path(), 2 << 20).with_disk(16 << 20)).unwrap();
        let store = open();
        let bytes: Bytes = (0..5_000_001u32).map(|at| (at / 9) as u8).collect();
        let before = store.usage();
        let column = SegmentSpec { id: SegmentId(1), bytes: bytes.len() as u32, owner: Owner::Form, keep: false };
        store.write_to_disk(column, bytes.clone()).await.unwrap();
        assert!(store.read_all_from_disk(SegmentId(1)).await.unwrap().unwrap() == bytes);
        assert_eq!(store.usage().dram.used_bytes, before.dram.used_bytes);
        assert!(store.usage().disk.bytes_of(Owner::Form) >= bytes.len() as u64);
        store.flush().await;
        drop(store);
        let store = open();
        assert!(store.read_all_from_disk(SegmentId(1)).await.unwrap().unwrap() == bytes);
        let start = store.core.table.by_id(SegmentId(1)).by_id(SegmentId(1)).unwrap().disk.extent.unwrap();
        store.core.disks[0].file.write(start + 700, Aligned::new(4096).memory.as_ref()).unwrap();
        assert!(store.read_all_from_disk(SegmentId(1)).await.unwrap().is_none(), "damaged");
        assert_eq!(store.held(SegmentId(1)).bytes, 0);
        store.write_to_disk(column, bytes.clone()).await.unwrap();
        assert!(store.free(SegmentId(1)) > 0);
        assert!(store.read_all_from_disk(SegmentId(1)).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn damage_is_no_data() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 2 << 20).with_disk(4 << 20)).unwrap();
        store.write_to_disk(spec(1, 1 << 20), Bytes::from(vec![7; 1 << 20])).await.unwrap();
        store.core.disks[0].file.write(3, Aligned::new(4096).memory.as_ref()).unwrap();
        assert!(store.read_from_disk(SegmentId(1), PageRun::new(0, 8)).await.unwrap().is_none());
        assert!(store.read_from_disk(SegmentId(1), PageRun::new(8, 16)).await.unwrap().is_some());
        let without = BlockStore::open(StoreSettings::new(folder.path().join("none"), 2 << 20)).unwrap();
        let refused = without.write_to_disk(spec(1, 1), Bytes::from_static(b"x")).await.unwrap_err();
        assert_eq!(refused.kind(), forebay_types::ErrorKind::Invalid);
    }
}
