use crate::BlockRef;

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
