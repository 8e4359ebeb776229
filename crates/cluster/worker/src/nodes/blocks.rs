use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_block_store::SegmentSpec;
use forebay_nodes::{BlockRef, NodeError, NodeErrorKind, NodeResult};
use forebay_types::{BLOCK_BYTES, Error, ErrorKind, Owner, PageRun, SegmentId};

use super::{Kept, Nodes};

/// How often, and with what pause, room is asked for before there is none.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// What segments of temporary blocks have above their number; those of the cache are hashes.
const TEMPORARY: u128 = 0x666f_7265_6261_7974 << 64;

fn segment(number: u64) -> SegmentId {
    SegmentId(TEMPORARY | u128::from(number))
}

fn run(len: u32) -> PageRun {
    PageRun::covering(0..u64::from(len)).expect("a block has bytes")
}

impl Nodes {
    /// Puts bytes into blocks of at most 1 MiB, those of each part by themselves. Without room for all of them there are none.
    pub(super) async fn write_blocks(&self, parts: &[&[u8]]) -> NodeResult<Vec<BlockRef>> {
        let mut blocks = Vec::new();
        for chunk in parts.iter().flat_map(|part| part.chunks(BLOCK_BYTES as usize)) {
            match self.write_block(chunk).await {
                Ok(block) => blocks.push(block),
                Err(error) => {
                    self.free_here(&blocks);
                    return Err(error);
                }
            }
        }
        Ok(blocks)
    }

    async fn write_block(&self, bytes: &[u8]) -> NodeResult<BlockRef> {
        let len = bytes.len() as u32;
        let number = self.names.lock().number();
        let mut tries = 0;
        loop {
            let before = self.block_bytes.fetch_add(len.into(), Relaxed);
            let failed = if before + u64::from(len) > self.block_bytes_max {
                Error::retry(format!("temporary data has its share of the tiers, {} bytes", self.block_bytes_max))
            } else {
                match self.fill(number, bytes) {
                    Ok(()) => return Ok(BlockRef { worker: self.worker, number, len }),
                    Err(error) => error,
                }
            };
            self.block_bytes.fetch_sub(len.into(), Relaxed);
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
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn fill(&self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let len = bytes.len() as u32;
        let spec = SegmentSpec { id: segment(number), bytes: len, owner: Owner::Temporary, keep: true };
        let mut fill = self.store.begin_fill(spec, run(len))?;
        let filled = fill.write(0, bytes).and_then(|()| fill.finish());
        if filled.is_err() {
            self.store.free(spec.id);
        }
        filled
    }

    /// Keeps a block for a node that will be told of it.
    pub(super) async fn keep_block(&self, bytes: &[u8]) -> NodeResult<BlockRef> {
        if bytes.is_empty() || bytes.len() as u64 > BLOCK_BYTES {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("a block has 1 byte to 1 MiB, not {}", bytes.len())));
        }
        let block = self.write_block(bytes).await?;
        self.kept.lock().insert(block.number, Kept { len: block.len, since: Instant::now() });
        Ok(block)
    }

    /// A part of a block of this worker, from where it lies. None when it is not here (any more).
    pub(super) async fn read_block(&self, block: BlockRef, start: u32, bytes: u32) -> NodeResult<Option<Bytes>> {
        let end = start.checked_add(bytes).filter(|end| *end <= block.len && bytes > 0 && block.worker == self.worker);
        let Some(end) = end else {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("bytes {start}+{bytes} are none of a block here")));
        };
        let (id, run) = (segment(block.number), PageRun::covering(start.into()..end.into()).expect("not empty"));
        let mut pinned = self.store.pin(id, run);
        if pinned.is_none() {
            // An error of the disk is a block that is not there.
            if let Err(error) = self.store.load(id, run).await {
                tracing::debug!(block = block.number, %error, "temporary block not loaded");
            }
            pinned = self.store.pin(id, run);
        }
        Ok(pinned.map(|pinned| {
            let from = start as usize - run.bytes().start as usize;
            pinned.into_bytes().slice(from..from + bytes as usize)
        }))
    }

    /// A node here has these blocks now.
    pub(super) fn claim(&self, blocks: &[BlockRef]) {
        let mut kept = self.kept.lock();
        for block in blocks.iter().filter(|block| block.worker == self.worker) {
            kept.remove(&block.number);
        }
    }

    /// Gives back those of the blocks that are of this worker. Readers that have them pinned keep their bytes.
    pub(super) fn free_here(&self, blocks: &[BlockRef]) {
        let mut kept = self.kept.lock();
        for block in blocks.iter().filter(|block| block.worker == self.worker) {
            kept.remove(&block.number);
            // Word of it may come twice.
            if self.store.free(segment(block.number)) > 0 {
                self.block_bytes.fetch_sub(block.len.into(), Relaxed);
            }
        }
    }
}
