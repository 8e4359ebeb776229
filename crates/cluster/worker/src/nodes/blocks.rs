//! Blocks in the tiers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::{BlockFill, Pinned, SegmentSpec};
use forebay_nodes::{Affinity, BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, StorageClass};
use forebay_protocol::{NodeReply, Span};
use forebay_runtime::{Defect, planted};
use forebay_transport::Response;
use forebay_types::{BLOCK_BYTES, Error, ErrorKind, Owner, PageRun, SegmentId};

use super::tree::route;
use super::values::{reply, with_payload};
use super::{Brought, Kept, Nodes};
use crate::in_place::SessionPins;

/// How often, and with what pause, room is asked for before there is none.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// What segments of temporary blocks have above their number; those of the cache are hashes.
const TEMPORARY: u128 = 0x666f_7265_6261_7974 << 64;

/// Blocks of more bytes than this take a whole block's memory.
const WHOLE_FROM: u32 = BLOCK_BYTES as u32 / 8 * 7;

/// Blocks whose numbers have this bit are on disk only. Others have numbers below it.
const ON_DISK: u64 = 1 << 63;

fn segment(number: u64) -> SegmentId {
    SegmentId(TEMPORARY | u128::from(number))
}

fn run(len: u32) -> PageRun {
    PageRun::covering(0..u64::from(len)).expect("a block has bytes")
}

fn spec(number: u64, bytes: u32) -> SegmentSpec {
    SegmentSpec { id: segment(number), bytes, owner: Owner::Temporary, keep: true }
}

/// Bytes of the tier that a block takes: one that is nearly as large as blocks can be has the memory of a whole one, which is
/// received into, written in place, and used again.
fn room(number: u64, len: u32) -> u32 {
    if number & ON_DISK == 0 && len > WHOLE_FROM { BLOCK_BYTES as u32 } else { len }
}

/// Bytes of a block.
pub(super) struct Found {
    pages: Pages,
    /// Where they begin in these pages.
    from: u32,
    bytes: u32,
}

/// Pages of a block.
enum Pages {
    /// In the DRAM tier, under a pin.
    InPlace(Pinned),
    /// Read from disk for this once.
    Read(Bytes),
}

impl Found {
    fn into_bytes(self) -> Bytes {
        let pages = match self.pages {
            Pages::InPlace(pages) => pages.into_bytes(),
            Pages::Read(pages) => pages,
        };
        pages.slice(self.from as usize..(self.from + self.bytes) as usize)
    }

    /// As an answer: in place for a client that can read there and has not pinned too much, else as payload.
    pub(super) fn answer(self, pins: Option<&SessionPins>) -> Response {
        if let (Pages::InPlace(pages), Some(pins)) = (&self.pages, pins) {
            let span = Span { offset: pages.arena_offset() + u64::from(self.from), len: self.bytes.into() };
            if let Ok(pin) = pins.add(pages.clone()) {
                return reply(&NodeReply::InPlace { pin, span });
            }
        }
        with_payload(vec![self.into_bytes()])
    }
}

/// Bytes that are counted, no longer when this is dropped.
pub(super) struct Counted<'a>(&'a AtomicU64, u32);

impl Counted<'_> {
    /// They stay counted.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(self.1.into(), Relaxed);
        debug_assert!(before >= self.1.into(), "bytes are given back once");
    }
}

/// Blocks of something that is not complete yet: they go when it does not come about.
struct Written<'a> {
    nodes: &'a Nodes,
    blocks: Vec<BlockRef>,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        self.nodes.free_later(std::mem::take(&mut self.blocks));
    }
}

impl Nodes {
    /// Puts bytes of a node into blocks of at most 1 MiB, those of each part by themselves, here or where the node asks to lie.
    /// Without room for all of them there are none.
    pub(super) async fn write_blocks(
        &self,
        (dir, name): (DirId, &str),
        affinity: &Affinity,
        parts: &[&[u8]],
    ) -> NodeResult<Vec<BlockRef>> {
        let mut written = Written { nodes: self, blocks: Vec::new() };
        for chunk in parts.iter().flat_map(|part| part.chunks(BLOCK_BYTES as usize)) {
            let block = self.offer_block(route(dir, name), chunk, affinity).await?;
            written.blocks.push(block);
        }
        Ok(std::mem::take(&mut written.blocks))
    }

    pub(super) async fn write_block(&self, bytes: &[u8], class: StorageClass) -> NodeResult<BlockRef> {
        let len = bytes.len() as u32;
        let on_disk = if class == StorageClass::Disk { ON_DISK } else { 0 };
        let number = self.names.read().number() | on_disk;
        let mut tries = 0;
        loop {
            let filled = match self.count_in(room(number, len)) {
                Ok(counted) => {
                    let filled = match class {
                        StorageClass::Dram => self.fill(number, bytes),
                        StorageClass::Disk => self.store.write_to_disk(spec(number, len), Bytes::copy_from_slice(bytes)).await,
                    };
                    filled.map(|()| counted.keep())
                }
                Err(error) => Err(error),
            };
            let Err(failed) = filled else { return Ok(BlockRef { worker: self.worker, number, len }) };
            tries += 1;
            if failed.kind() != ErrorKind::Retry || tries == TRIES {
                return Err(NodeError::new(
                    NodeErrorKind::NoSpace,
                    format!(
                        "no room for {len} bytes: {}; delete nodes, or give the workers more memory or disk",
                        failed.message()
                    ),
                ));
            }
            forebay_runtime::time::sleep(PAUSE).await;
        }
    }

    pub(super) fn block(&self, number: u64, len: u32) -> BlockRef {
        BlockRef { worker: self.worker, number, len }
    }

    /// Where blocks of a node are to lie.
    pub(super) fn affinity_of(&self, dir: DirId, name: &str) -> NodeResult<Affinity> {
        let stat = self.names.read().stat(dir, name)?;
        Ok(stat.map_or_else(Affinity::default, |stat| Affinity { class: stat.class, location: stat.location }))
    }

    /// `Invalid` when blocks of this class can't be kept here.
    pub(super) fn check_class(&self, class: Option<StorageClass>) -> NodeResult<()> {
        match class {
            Some(StorageClass::Disk) if !self.store.has_disk() => Err(NodeError::new(
                NodeErrorKind::Invalid,
                "this worker has no disk tier: give it one, leave the storage class out, or write dram",
            )),
            _ => Ok(()),
        }
    }

    /// Whether a block is of the class `disk`.
    pub(super) fn is_on_disk(block: BlockRef) -> bool {
        block.number & ON_DISK != 0
    }

    /// Counts a block's bytes; `Retry` when they are more than temporary data may have.
    pub(super) fn count_in(&self, len: u32) -> Result<Counted<'_>, Error> {
        let counted = Counted(&self.blocks.bytes, len);
        if self.blocks.bytes.fetch_add(len.into(), Relaxed) + u64::from(len) > self.blocks.bytes_max {
            return Err(Error::retry(format!("temporary data has its share of the tiers, {} bytes", self.blocks.bytes_max)));
        }
        Ok(counted)
    }

    fn fill(&self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let len = bytes.len() as u32;
        let spec = spec(number, room(number, len));
        if self.store.takes_block(&spec) {
            let mut fill = self.store.begin_block(spec)?;
            fill.write(bytes)?;
            fill.finish(bytes.len());
            return Ok(());
        }
        let mut fill = self.store.begin_fill(spec, run(len))?;
        let filled = fill.write(0, bytes).and_then(|()| fill.finish());
        if filled.is_err() {
            self.store.free(spec.id);
        }
        filled
    }

    /// A place for a block that is about to be received; none when it is to be written the other way: there is no room now, or
    /// it is a small one.
    pub(super) fn place_block(&self, len: u32) -> Option<(u64, BlockFill)> {
        let bytes = room(0, len);
        if u64::from(len) > BLOCK_BYTES || !self.store.takes_block(&spec(0, bytes)) || self.check_takes_new().is_err() {
            return None;
        }
        let number = self.names.read().number();
        let counted = self.count_in(bytes).ok()?;
        let fill = self.store.begin_block(spec(number, bytes)).ok()?;
        counted.keep();
        Some((number, fill))
    }

    /// A block that was received is there: keeps it for a node that will be told of it.
    pub(super) fn keep_placed(&self, number: u64, len: u32, fill: BlockFill, who: Brought) -> BlockRef {
        assert!(number & ON_DISK == 0, "what is received in place is in memory");
        fill.finish(len as usize);
        let known = self.blocks.kept.lock().insert(number, Kept::new(len, who));
        assert!(known.is_none(), "the number of a block is given once");
        BlockRef { worker: self.worker, number, len }
    }

    /// A block did not come.
    pub(super) fn give_up_placed(&self, len: u32) {
        let before = self.blocks.bytes.fetch_sub(room(0, len).into(), Relaxed);
        debug_assert!(before >= room(0, len).into(), "what is given up was counted");
    }

    /// Keeps a block for a node that will be told of it.
    pub(super) async fn keep_block(&self, bytes: &[u8], class: StorageClass, who: Brought) -> NodeResult<BlockRef> {
        if bytes.is_empty() || bytes.len() as u64 > BLOCK_BYTES {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("a block has 1 byte to 1 MiB, not {}", bytes.len())));
        }
        self.check_takes_new()?;
        let block = self.write_block(bytes, class).await?;
        let known = self.blocks.kept.lock().insert(block.number, Kept::new(block.len, who));
        assert!(known.is_none(), "the number of a block is given once");
        Ok(block)
    }

    /// A part of a block of this worker, from where it lies. None when it is not here (any more).
    pub(super) async fn read_block(&self, block: BlockRef, start: u32, bytes: u32) -> NodeResult<Option<Bytes>> {
        Ok(self.find_block(block, start, bytes).await?.map(Found::into_bytes))
    }

    /// The same as it lies, under a pin.
    pub(super) async fn find_block(&self, block: BlockRef, start: u32, bytes: u32) -> NodeResult<Option<Found>> {
        let end = start.checked_add(bytes).filter(|end| *end <= block.len && bytes > 0 && block.worker == self.worker);
        let Some(end) = end else {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("bytes {start}+{bytes} are none of a block here")));
        };
        let (id, run) = (segment(block.number), PageRun::covering(start.into()..end.into()).expect("not empty"));
        let from = start - run.bytes().start as u32;
        if block.number & ON_DISK != 0 {
            // An error of the disk is a block that is not there.
            let read = self.store.read_from_disk(id, run).await.inspect_err(|error| {
                tracing::debug!(block = block.number, %error, "temporary block not read");
            });
            return Ok(read.ok().flatten().map(|pages| Found { pages: Pages::Read(pages), from, bytes }));
        }
        let mut pinned = self.store.pin(id, run);
        if pinned.is_none() {
            // An error of the disk is a block that is not there.
            if let Err(error) = self.store.load(id, run).await {
                tracing::debug!(block = block.number, %error, "temporary block not loaded");
            }
            pinned = self.store.pin(id, run);
        }
        // Where a disk does not answer, nobody waits for it once more.
        if pinned.is_none() && self.store.state(id, run).missing.is_empty() {
            // Memory has no room for it now, or others took that at once: it is where it was.
            if let Some(pages) = self.store.read_from_disk(id, run).await.ok().flatten() {
                return Ok(Some(Found { pages: Pages::Read(pages), from, bytes }));
            }
            pinned = self.store.pin(id, run);
        }
        Ok(pinned.map(|pages| Found { pages: Pages::InPlace(pages), from, bytes }))
    }

    /// A node here has these blocks now, which were brought by this process.
    pub(super) fn claim(&self, blocks: &[BlockRef]) {
        let mut kept = self.blocks.kept.lock();
        for block in blocks.iter().filter(|block| block.worker == self.worker) {
            kept.remove(&block.number);
        }
    }

    /// Gives back those of the blocks that are of this worker. Readers that have them pinned keep their bytes.
    pub(super) fn free_here(&self, blocks: &[BlockRef]) {
        let mut kept = self.blocks.kept.lock();
        for block in blocks.iter().filter(|block| block.worker == self.worker) {
            kept.remove(&block.number);
            // Word of it may come twice.
            if self.store.free(segment(block.number)) > 0 {
                let bytes = u64::from(room(block.number, block.len));
                // Who names it may name another length than it has.
                self.blocks.bytes.update(Relaxed, Relaxed, |counted| match planted(Defect::ForgedReference) {
                    true => counted.wrapping_sub(bytes),
                    false => counted.saturating_sub(bytes),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_coordinator::CoordinatorSettings;

    use super::*;
    use crate::Tuning;
    use crate::process::bed::Bed;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_block_on_disk_is_read_when_memory_has_no_room_for_it() {
        let bed = Bed::start(CoordinatorSettings::LEASE).await;
        let worker = bed.worker_of("small", (4 << 20, 64 << 20), Tuning::default()).await;
        let nodes = &worker.rooms.nodes;
        let mut blocks = Vec::new();
        for number in 0..8u8 {
            let bytes = vec![number; BLOCK_BYTES as usize];
            blocks.push(nodes.keep_block(&bytes, StorageClass::Dram, Brought::ByClient).await.unwrap());
        }
        // Who has read one keeps the memory that it lies in, until there is none.
        let mut found = Vec::new();
        for block in blocks {
            found.push(nodes.find_block(block, 0, block.len).await.unwrap().expect("all of them are in a tier"));
        }
        assert!(found.iter().any(|found| matches!(found.pages, Pages::Read(_))), "memory is full of what is read");
        for (number, found) in found.into_iter().enumerate() {
            assert!(found.into_bytes().iter().all(|byte| usize::from(*byte) == number), "block {number}");
        }
    }
}
