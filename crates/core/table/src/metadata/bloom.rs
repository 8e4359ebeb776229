//! Where a column's bloom filter for one row group is.

use std::ops::Range;

use bytes::Bytes;
use forebay_types::{Error, Result};

use crate::bloom::{BLOCK_BYTES, BloomFilter};
use crate::fields::Encoder;

/// Where the bloom filter of a column is, of one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BloomInfo {
    /// Whole blocks, at least one.
    pub(crate) range: Range<u64>,
    /// CRC-32C over them.
    pub(crate) checksum: u32,
}

impl BloomInfo {
    /// The range of the file that holds it.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Opens it from the bytes of its range, once its checksum agrees.
    /// `Corrupt` for bytes that are not what was written.
    pub fn open(&self, bytes: Bytes) -> Result<BloomFilter> {
        if bytes.len() as u64 != self.range.end - self.range.start || forebay_types::crc32c(&bytes) != self.checksum {
            let message = format!("the bloom filter at byte {} does not verify; copy the file again", self.range.start);
            return Err(Error::corrupt(message));
        }
        Ok(BloomFilter::new(bytes))
    }

    pub(super) fn encode(info: Option<&Self>, out: &mut Encoder) {
        let Some(info) = info else { return out.u32(0) };
        out.u32(((info.range.end - info.range.start) / BLOCK_BYTES as u64) as u32);
        out.u64(info.range.start);
        out.u32(info.checksum);
    }
}
