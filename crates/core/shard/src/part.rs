//! The envelope of all that a shard keeps: one file's header, sections and checksums, without knowing what is in them.

use bytes::Bytes;
use forebay_types::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::bits::word::load;

/// The first eight bytes of every part.
const MAGIC: &[u8; 8] = b"FBSHARD\0";
/// The version of the format that is written; others are refused.
const VERSION: u64 = 2;
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// Zeros after each section, so that a word may be loaded at its last byte.
const PADDING: usize = 8;
/// No part has more sections.
const SECTIONS_MAX: usize = 64;

/// A file's worth of a shard: a header, a table of sections, the sections, all of it under checksums.
///
/// docs/specs/shard.md has the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) kind: u64,
    pub(crate) shard: u64,
    pub(crate) id: u64,
    sections: Vec<Section>,
    pub(crate) bytes: usize,
}

#[derive(Clone, Debug)]
struct Section {
    /// With the padding, which stays readable behind it so that loads at its end take the fast way.
    bytes: Bytes,
    from: u64,
    length: usize,
    sum: u64,
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(format!("a shard's part does not verify: {what}; fetch or build it again"))
}

impl Part {
    /// Verifies `bytes` from the first to the last and cuts it into sections.
    pub(crate) fn open(bytes: Bytes) -> Result<Self> {
        let part = Self::open_head(bytes)?;
        (0..part.sections.len()).try_for_each(|index| part.verify(index))?;
        Ok(part)
    }

    /// The same of the header and the table of sections alone: each of these is to be verified before it is used.
    pub(crate) fn open_head(bytes: Bytes) -> Result<Self> {
        if bytes.len() < HEADER_BYTES || &bytes[..8] != MAGIC {
            return Err(corrupt("it does not begin as one"));
        }
        if load(&bytes, 8) & 0xffff != VERSION {
            return Err(Error::invalid(format!(
                "a shard's part has version {} of the format, this program reads {VERSION}; build the shard again",
                load(&bytes, 8) & 0xffff
            )));
        }
        let count = (load(&bytes, 8) >> 32) as usize;
        if load(&bytes, 32) != bytes.len() as u64 || count > SECTIONS_MAX {
            return Err(corrupt("its length is not the one in its header"));
        }
        let table_end = HEADER_BYTES + count * ENTRY_BYTES;
        let Some(head) = bytes.get(..table_end) else { return Err(corrupt("its table is cut off")) };
        let mut unsigned = head.to_vec();
        unsigned[40..48].fill(0);
        if load(&bytes, 40) != u64::from(forebay_types::crc32c(&unsigned)) {
            return Err(corrupt("the checksum of its header"));
        }
        let mut sections = Vec::with_capacity(count);
        for index in 0..count {
            let entry = HEADER_BYTES + index * ENTRY_BYTES;
            let (from, length, sum) = (load(&bytes, entry), load(&bytes, entry + 8), load(&bytes, entry + 16));
            let end = from.checked_add(length).filter(|end| *end <= bytes.len() as u64);
            let Some(end) = end else { return Err(corrupt("a section lies outside of it")) };
            let section = bytes.slice(from as usize..(end as usize + PADDING).min(bytes.len()));
            debug_assert!(length <= section.len() as u64, "a section ends before its padding does");
            sections.push(Section { bytes: section, from, length: length as usize, sum });
        }
        let kind = load(&bytes, 8) >> 16 & 0xffff;
        Ok(Self { kind, shard: load(&bytes, 16), id: load(&bytes, 24), sections, bytes: bytes.len() })
    }

    /// Verifies the section at `index`; one that is not there has no bytes.
    pub(crate) fn verify(&self, index: usize) -> Result<()> {
        let Some(Section { bytes, from, length, sum }) = self.sections.get(index) else { return Ok(()) };
        match u64::from(forebay_types::crc32c(&bytes[..*length])) == *sum {
            true => Ok(()),
            false => Err(corrupt(&format!("the checksum of section {index}, {length} bytes from byte {from} on"))),
        }
    }

    /// The section at `index` with its padding; empty if there is none.
    pub(crate) fn section(&self, index: usize) -> Bytes {
        self.sections.get(index).map(|section| section.bytes.clone()).unwrap_or_default()
    }

    /// Its bytes, without the padding.
    #[cfg(test)]
    pub(crate) fn length_of(&self, index: usize) -> usize {
        self.sections.get(index).map_or(0, |section| section.length)
    }
}

/// Writes a part. The shard's identity is the given one or, for a base, the hash of its sections.
pub(crate) fn write(kind: u64, shard: Option<u64>, id: u64, sections: &[&[u8]]) -> Vec<u8> {
    assert!(sections.len() <= SECTIONS_MAX);
    let table_end = HEADER_BYTES + sections.len() * ENTRY_BYTES;
    let total = table_end + sections.iter().map(|section| (section.len() + PADDING).next_multiple_of(8)).sum::<usize>();
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&(VERSION | kind << 16 | (sections.len() as u64) << 32).to_le_bytes());
    out.extend_from_slice(&[0; HEADER_BYTES - 16]);
    let mut from = table_end;
    for section in sections {
        out.extend_from_slice(&(from as u64).to_le_bytes());
        out.extend_from_slice(&(section.len() as u64).to_le_bytes());
        out.extend_from_slice(&u64::from(forebay_types::crc32c(section)).to_le_bytes());
        from += (section.len() + PADDING).next_multiple_of(8);
    }
    let identity = shard.unwrap_or_else(|| xxh3_64(&out[HEADER_BYTES..]));
    out[16..24].copy_from_slice(&identity.to_le_bytes());
    out[24..32].copy_from_slice(&id.to_le_bytes());
    out[32..40].copy_from_slice(&(total as u64).to_le_bytes());
    let sum = forebay_types::crc32c(&out);
    out[40..48].copy_from_slice(&u64::from(sum).to_le_bytes());
    for section in sections {
        out.extend_from_slice(section);
        out.resize((out.len() + PADDING).next_multiple_of(8), 0);
    }
    // The sum of roundings: each section ends on a multiple of 8 because each begins on one.
    debug_assert_eq!(out.len(), total);
    out
}
