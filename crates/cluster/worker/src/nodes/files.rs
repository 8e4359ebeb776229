//! Files that are appended to and written in.

use bytes::Bytes;
use forebay_nodes::{Appended, BlockRef, NodeError, NodeErrorKind, NodeResult};
use forebay_protocol::NodeReply;
use forebay_runtime::{Defect, planted};
use forebay_transport::Response;

use super::fence::Reached;
use super::values::{ANSWER_BYTES_MAX, LOOKS, lost, reply, with_payload};
use super::{Nodes, WRITER_LEASE};

impl Nodes {
    /// Adds bytes to the end of a file; its new length.
    pub(super) async fn append(&self, at: Reached, name: &str, bytes: &[u8], writer: u64) -> NodeResult<u64> {
        for _ in 0..LOOKS {
            let appended = self.changing(at)?.append(at.dir, name, bytes, writer, self.now(), WRITER_LEASE)?;
            if let Some(len) = self.end_append((at, name), bytes, appended).await? {
                return Ok(len);
            }
        }
        Err(busy(name))
    }

    /// Puts what does not fit into the tail into blocks; the file's new length. None when the file has changed meanwhile.
    async fn end_append(&self, (at, name): (Reached, &str), bytes: &[u8], appended: Appended) -> NodeResult<Option<u64>> {
        let (serial, len, tail) = match appended {
            Appended::Done(len) => return Ok(Some(len)),
            Appended::NeedsBlocks { serial, len, tail } => (serial, len, tail),
        };
        let affinity = self.affinity_of(at.dir, name)?;
        let blocks = self.write_blocks((at.dir, name), &affinity, &[&tail[..], bytes]).await?;
        match self.add_blocks(at, name, (serial, len), &blocks) {
            Err(error) if error.kind == NodeErrorKind::Retry => Ok(None),
            added => added.map(Some),
        }
    }

    /// Adds blocks that are where they are to lie to the end of a file; its new length.
    pub(super) async fn append_blocks(&self, at: Reached, name: &str, blocks: &[BlockRef], writer: u64) -> NodeResult<u64> {
        let taken = self.take_brought(blocks).await?;
        let added = self.append_taken(at, name, blocks, writer).await;
        match &added {
            Ok(_) => taken.claim(),
            Err(error) if error.kind == NodeErrorKind::Moving => taken.release().await,
            // They are there for who brought them.
            Err(_) => {}
        }
        added
    }

    async fn append_taken(&self, at: Reached, name: &str, blocks: &[BlockRef], writer: u64) -> NodeResult<u64> {
        for _ in 0..LOOKS {
            let (view, tail) = {
                let mut names = self.changing(at)?;
                let len = names.check_write(at.dir, name, 0, writer, self.now(), WRITER_LEASE)?;
                let view = names.view(at.dir, name, 0, len)?;
                let tail = view.tail.clone();
                (view, tail)
            };
            let affinity = self.affinity_of(at.dir, name)?;
            let mut all = self.write_blocks((at.dir, name), &affinity, &[&tail[..]]).await?;
            let tails = all.clone();
            all.extend_from_slice(blocks);
            let added = self.changing(at).and_then(|mut names| names.append_blocks(at.dir, name, view.serial, view.len, &all));
            match added {
                Err(error) if error.kind == NodeErrorKind::Retry => self.free_later(tails),
                Err(error) => {
                    self.free_later(tails);
                    return Err(error);
                }
                Ok(len) => return Ok(len),
            }
        }
        Err(busy(name))
    }

    fn add_blocks(&self, at: Reached, name: &str, (serial, len): (u64, u64), blocks: &[BlockRef]) -> NodeResult<u64> {
        let added = self.changing(at).and_then(|mut names| names.append_blocks(at.dir, name, serial, len, blocks));
        added.inspect_err(|_| self.free_later(blocks.to_vec()))
    }

    /// Writes over bytes of a file, and on at its end; its new length.
    pub(super) async fn write(&self, at: Reached, name: &str, offset: u64, bytes: &[u8], writer: u64) -> NodeResult<u64> {
        if planted(Defect::SparseGiant) {
            self.reach(at, name, offset, writer).await?;
        }
        'again: for _ in 0..LOOKS {
            let (len, view) = {
                let mut names = self.changing(at)?;
                let len = names.check_write(at.dir, name, offset, writer, self.now(), WRITER_LEASE)?;
                (len, names.view(at.dir, name, offset, bytes.len() as u64)?)
            };
            let over = ((len - offset) as usize).min(bytes.len());
            let (over, on) = bytes.split_at(over);
            let (mut index, mut start) = (view.first, view.start);
            for block in view.blocks {
                let Some(old) = self.fetch(block).await? else { continue 'again };
                let mut new = Vec::from(old);
                let from = offset.max(start);
                let to = (offset + over.len() as u64).min(start + u64::from(block.len));
                new[(from - start) as usize..(to - start) as usize]
                    .copy_from_slice(&over[(from - offset) as usize..(to - offset) as usize]);
                let affinity = self.affinity_of(at.dir, name)?;
                let new = self.write_blocks((at.dir, name), &affinity, &[&new[..]]).await?;
                let (replaced, freed) = match self.changing(at) {
                    Ok(mut names) => (names.replace_block(at.dir, name, view.serial, index, (block, new[0])), names.take_freed()),
                    Err(error) => (Err(error), Vec::new()),
                };
                self.free_later(freed);
                if let Err(error) = replaced {
                    self.free_later(new);
                    if error.kind == NodeErrorKind::Retry {
                        continue 'again;
                    }
                    return Err(error);
                }
                (index, start) = (index + 1, start + u64::from(block.len));
            }
            let appended = {
                let mut names = self.changing(at)?;
                let now = match names.write_tail(at.dir, name, (view.serial, view.tail_at), offset, over) {
                    Err(error) if error.kind == NodeErrorKind::Retry => continue,
                    written => written?,
                };
                if on.is_empty() {
                    return Ok(now);
                }
                // What goes on at its end does so only as long as it ends there.
                if now != len {
                    continue;
                }
                names.append(at.dir, name, on, writer, self.now(), WRITER_LEASE)?
            };
            if let Some(len) = self.end_append((at, name), on, appended).await? {
                return Ok(len);
            }
        }
        Err(busy(name))
    }

    /// A defect that can be put back: what is missing before an offset becomes zeros.
    async fn reach(&self, at: Reached, name: &str, offset: u64, writer: u64) -> NodeResult<()> {
        let len = self.changing(at)?.check_write(at.dir, name, 0, writer, self.now(), WRITER_LEASE)?;
        let gap = vec![0; offset.saturating_sub(len) as usize];
        self.append(at, name, &gap, writer).await.map(drop)
    }

    /// Bytes of a file.
    pub(super) async fn read(&self, at: Reached, name: &str, offset: u64, bytes: u32) -> NodeResult<Response> {
        for _ in 0..LOOKS {
            let view = self.reached(at)?.view(at.dir, name, offset, u64::from(bytes).min(ANSWER_BYTES_MAX))?;
            let wanted = u64::from(bytes).min(ANSWER_BYTES_MAX).min(view.len - offset);
            if view.blocks.is_empty() || wanted == 0 {
                return Ok(with_payload(vec![Bytes::from(view.tail)]));
            }
            if let Some(response) = self.answer_blocks(&view.blocks, view.len, offset - view.start, wanted, &view.tail).await? {
                return Ok(response);
            }
        }
        Err(lost(name))
    }

    /// Where bytes of a file are.
    pub(super) fn extents(&self, at: Reached, name: &str, offset: u64, bytes: u64) -> NodeResult<Response> {
        let view = self.reached(at)?.view(at.dir, name, offset, bytes)?;
        let skip = if view.blocks.is_empty() { 0 } else { offset - view.start };
        let tail = forebay_protocol::Raw(&view.tail);
        Ok(reply(&NodeReply::Extents { serial: view.serial, len: view.len, skip, blocks: view.blocks, tail }))
    }

    /// A whole block, from wherever it is.
    async fn fetch(&self, block: BlockRef) -> NodeResult<Option<Bytes>> {
        if block.worker == self.worker {
            return self.read_block(block, 0, block.len).await;
        }
        self.fetch_elsewhere(block).await.map(Some)
    }
}

fn busy(name: &str) -> NodeError {
    NodeError::new(NodeErrorKind::Retry, format!("{name:?}: others write to the file all the time: try again"))
}
