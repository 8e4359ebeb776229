//! Both ends of a file: the header that says what it is, and the footer that leads to its metadata.

use std::ops::Range;

use forebay_types::{Error, Result};

use crate::fields::{Decoder, Encoder};
use crate::schema::TableSchema;

/// Bytes before the first cell.
pub(crate) const HEADER_BYTES: u64 = 64;
/// Bytes at the end of a file that say where its metadata is.
pub const FOOTER_BYTES: u64 = 32;
/// The version of tables whose columns are all of kinds that were there from the beginning.
const VERSION: u32 = 1;
/// The version of tables with lists of anything but fixed-width values, or maps.
pub(crate) const VERSION_OF_NESTED: u32 = 2;
/// The version of tables with bloom filters; the latest one that is read.
pub(crate) const VERSION_OF_BLOOMS: u32 = 3;
const MAGIC: &[u8; 8] = b"FBYTABLE";
/// Largest metadata block, in bytes.
const METADATA_BYTES_MAX: u64 = 1 << 30;

/// The oldest version that can have these columns, so that older programs can read the table.
pub(crate) fn version_of(schema: &TableSchema, has_blooms: bool) -> u32 {
    match schema.has_nested() {
        _ if has_blooms => VERSION_OF_BLOOMS,
        true => VERSION_OF_NESTED,
        false => VERSION,
    }
}

/// The first bytes of a file.
pub(crate) fn header(version: u32) -> Vec<u8> {
    let mut out = Encoder::default();
    out.bytes(MAGIC);
    out.u32(version);
    out.0.resize(HEADER_BYTES as usize, 0);
    out.0
}

/// The last bytes of a file: where the metadata is, and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    pub(crate) metadata: Range<u64>,
    pub(crate) checksum: u32,
    pub(crate) version: u32,
}

impl Footer {
    /// Where the footer is in a file of that many bytes.
    /// `Corrupt` if the file is too short to be a table.
    pub fn range(file_bytes: u64) -> Result<Range<u64>> {
        if file_bytes < HEADER_BYTES + FOOTER_BYTES {
            return Err(Error::corrupt(format!("a file of {file_bytes} bytes is no table; was it written to its end?")));
        }
        Ok(file_bytes - FOOTER_BYTES..file_bytes)
    }

    /// Reads the footer of a file of `file_bytes` from its last [`FOOTER_BYTES`] bytes; what stands before them may be
    /// given too.
    /// `Corrupt` if it is none, `Invalid` for a version that this program does not read.
    pub fn parse(file_bytes: u64, tail: &[u8]) -> Result<Self> {
        let end = Self::range(file_bytes)?.start;
        let start = tail.len().checked_sub(FOOTER_BYTES as usize);
        let start = start.ok_or_else(|| Error::corrupt("the footer of the table is cut off"))?;
        let mut input = Decoder::new(&tail[start..]);
        let (at, bytes) = (input.u64()?, input.u64()?);
        let (checksum, version) = (input.u32()?, input.u32()?);
        if input.take(8)? != MAGIC {
            return Err(Error::corrupt("the file does not end as a table does; was it written to its end?"));
        }
        if !(VERSION..=VERSION_OF_BLOOMS).contains(&version) {
            let message = format!("a table of version {version}; this program reads versions {VERSION} to {VERSION_OF_BLOOMS}");
            return Err(Error::invalid(message));
        }
        if at < HEADER_BYTES || bytes > METADATA_BYTES_MAX || at.checked_add(bytes) != Some(end) {
            return Err(Error::corrupt(format!("footer of the table: metadata of {bytes} bytes can't be at byte {at}")));
        }
        Ok(Self { metadata: at..end, checksum, version })
    }

    /// Where the metadata is.
    pub fn metadata(&self) -> Range<u64> {
        self.metadata.clone()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.metadata.start);
        out.u64(self.metadata.end - self.metadata.start);
        out.u32(self.checksum);
        out.u32(self.version);
        out.bytes(MAGIC);
        out.0
    }
}
