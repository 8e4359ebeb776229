//! A shard's cold file: its records as few ranges of bytes as they can be read by from far away.
//!
//! Owns: the bytes of the file (docs/specs/shard-cold.md), how it is made, and which ranges a record, or the keys of a value, are in.
//!
//! Never does: read the file. Whoever asks brings the ranges that it names, from wherever they are.
//!
//! Start with [`ColdTail`].

mod block;
mod bucket;
mod cursor;
mod postings;
mod write;

use std::fmt;
use std::ops::Range;

use forebay_types::{Error, Result, ResultExt};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::key::Key;
use crate::model::schema::Schema;
use crate::model::value::Value;
use crate::record::Record;
use block::{checksum, damaged, key_code};
use bucket::bucket_of;
use cursor::Cursor;
use write::{HEAD_BYTES, MAGIC, VERSION};

pub use write::{ColdFile, ColdWriter};

/// Some bytes of a cold file, to be brought and handed back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdRange {
    /// Where they are in the file.
    pub bytes: Range<u64>,
    /// Their place among those of their kind.
    place: u64,
}

impl fmt::Display for ColdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}..{}", self.bytes.start, self.bytes.end)
    }
}

/// What is read first of a cold file: it says which ranges have a record, or the keys of a value.
pub struct ColdTail {
    schema: Schema,
    /// The first key of each block, and where it begins; the blocks' end behind the last one.
    firsts: Vec<Key>,
    starts: Vec<u64>,
    attributes: Vec<Postings>,
}

/// The buckets of an attribute; none of them where it has none.
#[derive(Clone, Copy, Debug)]
struct Postings {
    buckets: u64,
    /// Where its directory begins.
    start: u64,
    /// Where its buckets end.
    end: u64,
}

impl Postings {
    fn buckets_from(&self) -> u64 {
        self.start + (self.buckets + 1) * 4
    }
}

impl ColdTail {
    /// Verifies the last bytes of a cold file, which has `file_bytes` in all, of a shard of that schema.
    pub fn open(bytes: &[u8], file_bytes: u64, schema: &Schema) -> Result<Self> {
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(damaged)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let before = file_bytes.checked_sub(bytes.len() as u64).ok_or_else(damaged)?;
        if &head[..8] != MAGIC {
            return Err(damaged());
        }
        if word(8) > VERSION {
            return Err(Error::invalid("a shard's cold file is of a newer version of Forebay: use that one"));
        }
        if word(8) != VERSION || word(12) != checksum(before, &[body]) {
            return Err(damaged());
        }
        Self::read(body, before, schema).ok_or_else(damaged)
    }

    fn read(body: &[u8], before: u64, schema: &Schema) -> Option<Self> {
        let mut cursor = Cursor(body);
        if cursor.bytes(1)? != [key_code(schema.key_type)] {
            return None;
        }
        let (mut firsts, mut starts, mut at) = (Vec::<Key>::new(), Vec::new(), 0u64);
        for _ in 0..cursor.number()? {
            let first = cursor.key(schema.key_type, firsts.last())?;
            if firsts.last().is_some_and(|last| *last >= first) {
                return None;
            }
            firsts.push(first);
            starts.push(at);
            at = at.checked_add(cursor.number()?)?;
        }
        starts.push(at);
        if cursor.number()? != schema.attributes.len() as u64 {
            return None;
        }
        let mut attributes = Vec::new();
        for _ in 0..schema.attributes.len() {
            let (buckets, length) = (cursor.number()?, cursor.number()?);
            let postings = Postings { buckets, start: at, end: at.checked_add(length)? };
            let least = buckets.checked_add(1)?.checked_mul(4)?;
            if buckets > 0 && length < least {
                return None;
            }
            at = postings.end;
            attributes.push(postings);
        }
        (at == before && cursor.0.is_empty()).then(|| Self { schema: schema.clone(), firsts, starts, attributes })
    }

    /// About the memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.firsts.iter().map(|key| size_of::<Key>() + key.len() + size_of::<u64>()).sum()
    }

    /// The block that has a key's record, if anything has; none where nothing can.
    pub fn block(&self, key: &Key) -> Option<ColdRange> {
        let at = self.firsts.partition_point(|first| first <= key).checked_sub(1)?;
        Some(ColdRange { bytes: self.starts[at]..self.starts[at + 1], place: at as u64 })
    }

    /// The record of a key, from the block that [`Self::block`] names; none where there is no such record.
    pub fn record(&self, range: &ColdRange, bytes: &[u8], key: &Key) -> Result<Option<Vec<Value>>> {
        if key.key_type() != self.schema.key_type {
            return Ok(None);
        }
        let mut record = Record::new();
        let is_there = block::find(range.place, bytes, key, self.schema.attributes.len(), &mut record);
        let is_there = is_there.context(|| range.to_string())?;
        is_there.then(|| record.values(&self.schema, None)).transpose()
    }

    /// Where it stands in which bytes the keys of a value are; none where the file has no such lists of an attribute.
    pub fn directory(&self, attribute: usize, value: &Value) -> Result<Option<ColdRange>> {
        let Some(postings) = self.attributes.get(attribute).filter(|postings| postings.buckets > 0) else { return Ok(None) };
        let Some(value) = self.encoded(attribute, value)? else { return Ok(None) };
        let place = bucket_of(xxh3_64(&value), postings.buckets);
        let from = postings.start + place * 4;
        Ok(Some(ColdRange { bytes: from..from + 8, place }))
    }

    /// The bytes that the keys of a value are in, from those that [`Self::directory`] names.
    pub fn bucket(&self, attribute: usize, range: &ColdRange, bytes: &[u8]) -> Result<ColdRange> {
        let postings = self.attributes.get(attribute).ok_or_else(damaged)?;
        let (from, to) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
        let to: [u8; 4] = to.try_into().map_err(|_| damaged())?;
        let at = |offset: [u8; 4]| postings.buckets_from() + u64::from(u32::from_le_bytes(offset));
        let bytes = at(*from)..at(to);
        // Each has a checksum at least.
        match bytes.start + 4 <= bytes.end && bytes.end <= postings.end {
            true => Ok(ColdRange { bytes, place: range.place }),
            false => Err(damaged().context(range)),
        }
    }

    /// The keys of a value, in order, from the bytes that [`Self::bucket`] names.
    pub fn keys(&self, attribute: usize, range: &ColdRange, bytes: &[u8], value: &Value) -> Result<Vec<Key>> {
        match self.encoded(attribute, value)? {
            Some(value) => bucket::find(range.place, bytes, &value, self.schema.key_type).context(|| range.to_string()),
            None => Ok(Vec::new()),
        }
    }

    fn encoded(&self, attribute: usize, value: &Value) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let attribute = self.schema.attributes.get(attribute).ok_or_else(damaged)?;
        Ok(attribute.value_type.encode(value, &mut bytes)?.then_some(bytes))
    }
}
