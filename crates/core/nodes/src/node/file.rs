//! A file: blocks, and behind them a tail in memory.

use std::time::Duration;

use forebay_types::Error;
use serde::{Deserialize, Serialize};

use super::content::check_offset;
use crate::terms::{BlockRef, NodeError, NodeErrorKind, NodeResult};

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
    /// The bytes behind the blocks.
    pub(crate) tail: Vec<u8>,
    /// Who writes, and until when nobody else may.
    pub(crate) writer: Option<(u64, Duration)>,
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
    /// The bytes don't fit into the tail: put the tail and them into blocks, then
    /// [`Namespace::append_blocks`](crate::Namespace::append_blocks).
    NeedsBlocks {
        /// Which file.
        serial: u64,
        /// Its length.
        len: u64,
        /// Its tail, which the first blocks take the place of.
        tail: Vec<u8>,
    },
}

/// What takes a change of a file back.
#[derive(Debug)]
pub(crate) enum FileBack {
    /// Another one was its writer.
    Writer(Option<(u64, Duration)>),
    /// The tail had so many bytes.
    Tail(usize),
    /// It had so many blocks, and behind them this tail.
    Blocks(usize, Vec<u8>),
    /// Bytes of the tail, from this one on, were these.
    Bytes(usize, Vec<u8>),
    /// The block of an index was this one.
    Block(usize, BlockRef),
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

    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockRef> {
        self.blocks.iter().map(|(_, block)| *block)
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

    /// Makes `writer` the only one until `lease` after `now`; 0 is one that writes this once. `Retry` while another one is.
    pub(crate) fn take_writer(&mut self, writer: u64, now: Duration, lease: Duration) -> NodeResult<FileBack> {
        match self.writer {
            Some((other, until)) if other != writer && until > now => {
                let left = (until - now).as_millis();
                Err(NodeError::new(
                    NodeErrorKind::Retry,
                    format!("another writer has the file for {left} ms more, or until it is done"),
                ))
            }
            _ => {
                let writer = (writer != 0).then_some((writer, now + lease));
                Ok(FileBack::Writer(std::mem::replace(&mut self.writer, writer)))
            }
        }
    }

    /// The writer is done, if it is still the one.
    pub(crate) fn release_writer(&mut self, writer: u64) -> FileBack {
        let before = self.writer;
        if before.is_some_and(|(current, _)| current == writer) {
            self.writer = None;
        }
        FileBack::Writer(before)
    }

    /// Whether it is the file of that serial and length.
    pub(crate) fn is_still(&self, serial: u64, len: u64) -> bool {
        self.serial == serial && self.len() == len
    }

    /// What is to be put into blocks when so many more bytes don't fit into the tail.
    pub(crate) fn needs_blocks(&self, more: usize) -> Option<Appended> {
        let fits = self.tail.len() + more <= TAIL_BYTES_MAX;
        (!fits).then(|| Appended::NeedsBlocks { serial: self.serial, len: self.len(), tail: self.tail.clone() })
    }

    /// Adds to the tail bytes that fit into it ([`Self::needs_blocks`]).
    pub(crate) fn append(&mut self, bytes: &[u8]) -> FileBack {
        assert!(self.tail.len() + bytes.len() <= TAIL_BYTES_MAX, "the bytes fit into the tail");
        let before = self.tail.len();
        self.tail.extend_from_slice(bytes);
        FileBack::Tail(before)
    }

    /// Puts blocks in the place of the tail and behind it. `Retry` when it is not the file of that serial and length any more.
    pub(crate) fn append_blocks(&mut self, name: &str, serial: u64, len: u64, blocks: &[BlockRef]) -> NodeResult<FileBack> {
        if !self.is_still(serial, len) {
            return Err(changed(name));
        }
        let before = FileBack::Blocks(self.blocks.len(), std::mem::take(&mut self.tail));
        for block in blocks {
            self.blocks.push((self.tail_at() + u64::from(block.len), *block));
        }
        Ok(before)
    }

    /// Where a range is; ends at the file's end. `Invalid` when it begins behind that.
    pub(crate) fn view(&self, name: &str, offset: u64, bytes: u64) -> NodeResult<FileView> {
        let len = self.check_offset(name, offset)?;
        let end = offset.saturating_add(bytes).min(len);
        let first = self.blocks.partition_point(|(block_end, _)| *block_end <= offset);
        let last = self.blocks.partition_point(|(block_end, block)| block_end - u64::from(block.len) < end).max(first);
        let start = if first == 0 { 0 } else { self.blocks[first - 1].0 };
        let at = self.tail_at();
        debug_assert!(start <= offset && at <= len, "the first block begins at {start}, the tail of {len} bytes at {at}");
        let tail = if end > at { self.tail[(offset.max(at) - at) as usize..(end - at) as usize].to_vec() } else { Vec::new() };
        let blocks = self.blocks[first..last].iter().map(|(_, block)| *block).collect();
        Ok(FileView { serial: self.serial, len, first, start, blocks, tail_at: at, tail })
    }

    /// `Invalid` when nothing can be written or read at an offset. Returns the file's length.
    pub(crate) fn check_offset(&self, name: &str, offset: u64) -> NodeResult<u64> {
        let len = self.len();
        check_offset(name, offset, len).map(|()| len)
    }

    /// Writes over the part of a range that lies in the tail. `Retry` when the file has another serial, its tail begins elsewhere, or
    /// the range goes past its end.
    pub(crate) fn write_tail(
        &mut self,
        name: &str,
        (serial, tail_at): (u64, u64),
        offset: u64,
        bytes: &[u8],
    ) -> NodeResult<FileBack> {
        let (at, len) = (self.tail_at(), self.len());
        let end = offset + bytes.len() as u64;
        if self.serial != serial || at != tail_at || end > len {
            return Err(changed(name));
        }
        if end <= at {
            return Ok(FileBack::Bytes(0, Vec::new()));
        }
        let from = offset.max(at);
        let place = &mut self.tail[(from - at) as usize..(end - at) as usize];
        let before = FileBack::Bytes((from - at) as usize, place.to_vec());
        place.copy_from_slice(&bytes[(from - offset) as usize..]);
        Ok(before)
    }

    /// Puts a block in another one's place, of the same length. `Retry` when that is not where it was.
    pub(crate) fn replace_block(
        &mut self,
        name: &str,
        serial: u64,
        index: usize,
        (old, new): (BlockRef, BlockRef),
    ) -> NodeResult<FileBack> {
        match self.blocks.get_mut(index) {
            Some((_, block)) if self.serial == serial && *block == old && old.len == new.len => *block = new,
            _ => return Err(changed(name)),
        }
        Ok(FileBack::Block(index, old))
    }

    /// Each block ends where the next one begins, and the tail is no longer than it may be. O(blocks).
    pub(crate) fn check(&self) {
        let mut ends = self.blocks.iter().scan(0, |at, (end, block)| {
            *at += u64::from(block.len);
            Some(*at == *end)
        });
        assert!(ends.all(|is_right| is_right), "a file's blocks end where their lengths say");
        assert!(self.tail.len() <= TAIL_BYTES_MAX, "a tail of {} bytes is no block yet", self.tail.len());
    }

    /// Takes the last change back.
    pub(crate) fn take_back(&mut self, back: FileBack) {
        match back {
            FileBack::Writer(writer) => self.writer = writer,
            FileBack::Tail(len) => self.tail.truncate(len),
            FileBack::Blocks(count, tail) => {
                self.blocks.truncate(count);
                self.tail = tail;
            }
            FileBack::Bytes(at, bytes) => {
                if let Some(place) = self.tail.get_mut(at..at + bytes.len()) {
                    place.copy_from_slice(&bytes);
                }
            }
            FileBack::Block(index, block) => self.blocks.get_mut(index).map_or((), |place| place.1 = block),
        }
    }
}

fn changed(name: &str) -> NodeError {
    NodeError::new(NodeErrorKind::Retry, format!("{name:?}: the file was changed meanwhile: try again"))
}
