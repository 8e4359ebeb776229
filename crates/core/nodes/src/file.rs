use std::time::Duration;

use forebay_types::Error;
use serde::{Deserialize, Serialize};

use crate::create::{check_still, wrong_type};
use crate::node::Node;
use crate::{BlockRef, DirId, Namespace, NodeError, NodeErrorKind, NodeResult, NodeType};

/// The end of a file lies with its metadata until it is longer than this.
pub const TAIL_BYTES_MAX: usize = 64 << 10;

/// A file: blocks, and after them the bytes that make no block yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SaidFile")]
pub(crate) struct File {
    /// Never given twice: a file that was deleted and made again is another one.
    serial: u64,
    /// Each with the offset in the file at which it ends.
    blocks: Vec<(u64, BlockRef)>,
    tail: Vec<u8>,
    /// Who writes, and until when nobody else may.
    writer: Option<(u64, Duration)>,
}

/// A file as another worker hands it over.
#[derive(Deserialize)]
struct SaidFile {
    serial: u64,
    blocks: Vec<(u64, BlockRef)>,
    tail: Vec<u8>,
    writer: Option<(u64, Duration)>,
}

impl TryFrom<SaidFile> for File {
    type Error = Error;

    fn try_from(said: SaidFile) -> Result<Self, Error> {
        let SaidFile { serial, blocks, tail, writer } = said;
        let mut at = 0;
        for (end, block) in &blocks {
            at += u64::from(block.len);
            if *end != at {
                return Err(Error::invalid(format!("a file's block ends at byte {end}, not {at}")));
            }
        }
        if tail.len() > TAIL_BYTES_MAX {
            return Err(Error::invalid(format!("a file's tail has {} bytes: {TAIL_BYTES_MAX} at most", tail.len())));
        }
        Ok(Self { serial, blocks, tail, writer })
    }
}

/// What a write to a file has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Done; the file's length.
    Done(u64),
    /// The bytes don't fit into the tail: put the tail and them into blocks, then [`Namespace::append_blocks`].
    NeedsBlocks {
        /// Which file.
        serial: u64,
        /// Its length.
        len: u64,
        /// Its tail, which the first blocks take the place of.
        tail: Vec<u8>,
    },
}

/// Where bytes of a file are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileView {
    /// Which file.
    pub serial: u64,
    /// Its length.
    pub len: u64,
    /// Index of the first block below.
    pub first: usize,
    /// Offset in the file at which that one begins.
    pub start: u64,
    /// The blocks that have a part of the range.
    pub blocks: Vec<BlockRef>,
    /// Offset in the file at which its tail begins.
    pub tail_at: u64,
    /// What of the range is in the tail.
    pub tail: Vec<u8>,
}

impl File {
    pub(crate) fn new(serial: u64) -> Self {
        Self { serial, blocks: Vec::new(), tail: Vec::new(), writer: None }
    }

    pub(crate) fn len(&self) -> u64 {
        self.tail_at() + self.tail.len() as u64
    }

    pub(crate) fn heap_bytes(&self) -> u64 {
        (size_of::<Self>() + self.tail.len() + self.blocks.len() * size_of::<(u64, BlockRef)>()) as u64
    }

    pub(crate) fn into_blocks(self) -> Vec<BlockRef> {
        self.blocks.into_iter().map(|(_, block)| block).collect()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockRef> {
        self.blocks.iter().map(|(_, block)| *block)
    }

    /// The bytes behind the blocks.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.tail
    }

    pub(crate) fn writer(&self) -> Option<(u64, Duration)> {
        self.writer
    }

    pub(crate) fn set_writer(&mut self, writer: Option<(u64, Duration)>) {
        self.writer = writer;
    }

    /// Puts other blocks in the places of some.
    pub(crate) fn replace(&mut self, mut other: impl FnMut(BlockRef) -> BlockRef) {
        self.blocks.iter_mut().for_each(|(_, block)| *block = other(*block));
    }

    fn tail_at(&self) -> u64 {
        self.blocks.last().map_or(0, |(end, _)| *end)
    }

    fn check_writer(&mut self, writer: u64, now: Duration, lease: Duration) -> NodeResult<()> {
        match self.writer {
            Some((other, until)) if other != writer && until > now => {
                let left = (until - now).as_millis();
                Err(NodeError::new(
                    NodeErrorKind::Retry,
                    format!("another writer has the file for {left} ms more, or until it is done"),
                ))
            }
            _ => {
                self.writer = (writer != 0).then_some((writer, now + lease));
                Ok(())
            }
        }
    }

    fn push(&mut self, block: BlockRef) {
        self.blocks.push((self.tail_at() + u64::from(block.len), block));
    }
}

impl Namespace {
    /// Makes `writer` (not 0) the file's only writer until `lease` after its last write. `Retry` while another one is.
    /// Returns the file's length.
    pub fn open_writer(&mut self, dir: DirId, name: &str, writer: u64, now: Duration, lease: Duration) -> NodeResult<u64> {
        let file = self.file_mut(dir, name)?;
        file.check_writer(writer, now, lease)?;
        Ok(file.len())
    }

    /// The writer is done; nothing when it is not the file's writer any more.
    pub fn close_writer(&mut self, dir: DirId, name: &str, writer: u64) -> NodeResult<()> {
        let file = self.file_mut(dir, name)?;
        if file.writer.is_some_and(|(current, _)| current == writer) {
            file.writer = None;
        }
        Ok(())
    }

    /// Adds bytes to the end of a file. A `writer` of 0 writes this once.
    pub fn append(
        &mut self,
        dir: DirId,
        name: &str,
        bytes: &[u8],
        writer: u64,
        now: Duration,
        lease: Duration,
    ) -> NodeResult<Appended> {
        let full = self.check_room(bytes.len() as u64);
        let file = self.file_mut(dir, name)?;
        file.check_writer(writer, now, lease)?;
        if file.tail.len() + bytes.len() > TAIL_BYTES_MAX {
            return Ok(Appended::NeedsBlocks { serial: file.serial, len: file.len(), tail: file.tail.clone() });
        }
        full?;
        file.tail.extend_from_slice(bytes);
        let len = file.len();
        self.resized(0, bytes.len() as u64);
        Ok(Appended::Done(len))
    }

    /// Puts blocks to the end of a file that has been that long since they were asked for; the first of them have the
    /// tail's bytes. `Retry` when the file has changed: free the blocks and begin again.
    pub fn append_blocks(&mut self, dir: DirId, name: &str, serial: u64, len: u64, blocks: &[BlockRef]) -> NodeResult<u64> {
        let file = self.file_mut(dir, name)?;
        if file.serial != serial || file.len() != len {
            return Err(changed(name));
        }
        let before = file.heap_bytes();
        file.tail = Vec::new();
        blocks.iter().for_each(|block| file.push(*block));
        let (after, len) = (file.heap_bytes(), file.len());
        self.resized(before, after);
        Ok(len)
    }

    /// Where a range of a file is; ends at the file's end. `Invalid` when it begins behind that.
    pub fn view(&self, dir: DirId, name: &str, offset: u64, bytes: u64) -> NodeResult<FileView> {
        let file = match self.table(dir)?.find(name) {
            Some(Node::File(_, file)) => file,
            Some(other) => return Err(wrong_type(name, other, NodeType::File)),
            None => return Err(NodeError::not_found(name)),
        };
        let len = file.len();
        check_offset(name, offset, len)?;
        let end = offset.saturating_add(bytes).min(len);
        let first = file.blocks.partition_point(|(block_end, _)| *block_end <= offset);
        let last = file.blocks.partition_point(|(block_end, block)| block_end - u64::from(block.len) < end).max(first);
        let start = if first == 0 { 0 } else { file.blocks[first - 1].0 };
        let at = file.tail_at();
        let tail = if end > at { file.tail[(offset.max(at) - at) as usize..(end - at) as usize].to_vec() } else { Vec::new() };
        let blocks = file.blocks[first..last].iter().map(|(_, block)| *block).collect();
        Ok(FileView { serial: file.serial, len, first, start, blocks, tail_at: at, tail })
    }

    /// Writes over what of a range lies in the tail. The range ends at the file's end at the latest. Returns the length.
    /// `Retry` when it is another file than that of a [`FileView`] with this `serial`, or its tail begins elsewhere than at
    /// `tail_at`.
    pub fn write_tail(
        &mut self,
        dir: DirId,
        name: &str,
        (serial, tail_at): (u64, u64),
        offset: u64,
        bytes: &[u8],
    ) -> NodeResult<u64> {
        let file = self.file_mut(dir, name)?;
        let (at, len) = (file.tail_at(), file.len());
        let end = offset + bytes.len() as u64;
        if file.serial != serial || at != tail_at || end > len {
            return Err(changed(name));
        }
        if end > at {
            let from = offset.max(at);
            file.tail[(from - at) as usize..(end - at) as usize].copy_from_slice(&bytes[(from - offset) as usize..]);
        }
        Ok(len)
    }

    /// Checks that `writer` may write at `offset` now, as [`Self::append`] does. Returns the file's length.
    pub fn check_write(
        &mut self,
        dir: DirId,
        name: &str,
        offset: u64,
        writer: u64,
        now: Duration,
        lease: Duration,
    ) -> NodeResult<u64> {
        let file = self.file_mut(dir, name)?;
        let len = file.len();
        check_offset(name, offset, len)?;
        file.check_writer(writer, now, lease)?;
        Ok(len)
    }

    /// Puts a block in another one's place, of the same length. `Retry` when the file has changed.
    pub fn replace_block(
        &mut self,
        dir: DirId,
        name: &str,
        serial: u64,
        index: usize,
        blocks: (BlockRef, BlockRef),
    ) -> NodeResult<()> {
        let (old, new) = blocks;
        let file = self.file_mut(dir, name)?;
        match file.blocks.get_mut(index) {
            Some((_, block)) if file.serial == serial && *block == old && old.len == new.len => *block = new,
            _ => return Err(changed(name)),
        }
        self.free([old]);
        Ok(())
    }

    fn file_mut(&mut self, dir: DirId, name: &str) -> NodeResult<&mut File> {
        let node = self.node_mut(dir, name)?;
        check_still(name, node)?;
        match node {
            Node::File(_, file) => Ok(file),
            other => Err(wrong_type(name, other, NodeType::File)),
        }
    }
}

pub(crate) fn check_offset(name: &str, offset: u64, len: u64) -> NodeResult<()> {
    if offset > len {
        return Err(NodeError::new(
            NodeErrorKind::Invalid,
            format!("{name:?}: offset {offset} is behind its end: it has {len} bytes"),
        ));
    }
    Ok(())
}

fn changed(name: &str) -> NodeError {
    NodeError::new(NodeErrorKind::Retry, format!("{name:?}: the file was changed meanwhile: try again"))
}
