//! A key-value's value: with its metadata, or in blocks.

use super::content::{check_offset, tag};
use crate::terms::{BlockRef, NodeResult};

/// Values up to this many bytes lie with their metadata.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// A key-value's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// With the metadata; at most [`INLINE_BYTES_MAX`].
    Inline(Box<[u8]>),
    /// In tiers, in this order.
    Blocks(Box<[BlockRef]>),
}

/// A key-value's value, borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got<'a> {
    /// With the metadata.
    Inline(&'a [u8]),
    /// In tiers, in this order.
    Blocks(&'a [BlockRef]),
}

/// Where bytes of a key-value's value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueView<'a> {
    /// Which value, never 0: made from its [`tag`].
    pub serial: u64,
    /// Its length.
    pub len: u64,
    /// Bytes of the first block below that come before the range.
    pub skip: u64,
    /// The blocks that have a part of the range.
    pub blocks: &'a [BlockRef],
    /// What of the range lies with the metadata.
    pub inline: &'a [u8],
}

impl<'a> Got<'a> {
    /// Where a range of the value of that name is; ends at its end. `Invalid` when it begins behind that.
    pub fn view(&self, name: &str, offset: u64, bytes: u64) -> NodeResult<ValueView<'a>> {
        let blocks: &'a [BlockRef] = if let Self::Blocks(blocks) = *self { blocks } else { &[] };
        let inline: &'a [u8] = if let Self::Inline(inline) = *self { inline } else { &[] };
        let len = inline.len() as u64 + blocks.iter().map(|block| u64::from(block.len)).sum::<u64>();
        check_offset(name, offset, len)?;
        let end = offset.saturating_add(bytes).min(len);
        // Blocks before the range, and up to its end; where the range's first block begins.
        let (mut first, mut last, mut start) = (0_usize, 0_usize, 0);
        let mut at = 0_u64;
        for block in blocks {
            if at < end {
                last += 1;
            }
            at += u64::from(block.len);
            if at <= offset {
                (first, start) = (first + 1, at);
            }
        }
        let found = &blocks[first..last.max(first)];
        let skip = if found.is_empty() { 0 } else { offset - start };
        let within = |offset: u64| offset.min(inline.len() as u64) as usize;
        let serial = tag(blocks, inline, len) as u64 | 1;
        Ok(ValueView { serial, len, skip, blocks: found, inline: &inline[within(offset)..within(end)] })
    }
}

impl Value {
    /// Bytes of the value.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Blocks(blocks) => blocks.iter().map(|block| u64::from(block.len)).sum(),
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Inline(bytes.into())
    }
}
