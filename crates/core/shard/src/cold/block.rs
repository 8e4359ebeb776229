//! Blocks: records that are compressed together.

use forebay_types::{Error, Result};

use super::cursor::{Cursor, put_key};
use crate::model::key::{Key, KeyType};
use crate::record::Record;
use crate::record::body;
use crate::record::varint;

/// Fast to write, and a twentieth larger than what takes ten times as long.
const LEVEL: i32 = 3;
/// Checksum, and bytes before they were compressed.
const HEAD_BYTES: usize = 8;
/// Bytes of a block before they are compressed, at most: what a reader unpacks.
pub(super) const RAW_BYTES_MAX: usize = 32 << 20;

/// What an error of whatever a file is written to came of.
pub(super) const CANT_WRITE: &str = "a cold file can't be written";

/// A block on its way: keys, and bodies of records.
#[derive(Default)]
pub(super) struct Block {
    raw: Vec<u8>,
    last: Option<Key>,
}

impl Block {
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Adds a record: the lengths of its values plus one, 0 for null, and their bytes.
    pub(super) fn push(&mut self, key: &Key, values: &[Option<&[u8]>]) {
        debug_assert!(self.last.as_ref().is_none_or(|last| last <= key), "records are in the order of their keys");
        put_key(key, self.last.as_ref(), &mut self.raw);
        let mut lengths = Vec::with_capacity(2 * values.len());
        values.iter().for_each(|value| varint::write(value.map_or(0, |value| value.len() as u64 + 1), &mut lengths));
        let bytes: usize = values.iter().flatten().map(|value| value.len()).sum();
        varint::write((lengths.len() + bytes) as u64, &mut self.raw);
        self.raw.extend_from_slice(&lengths);
        values.iter().flatten().for_each(|value| self.raw.extend_from_slice(value));
        self.last = Some(key.clone());
    }

    /// Appends the block, and is empty then. `number` is its place among all.
    pub(super) fn finish(&mut self, number: u64, out: &mut Vec<u8>) -> Result<()> {
        let packed = zstd::bulk::compress(&self.raw, LEVEL)
            .map_err(|error| Error::internal(format!("zstd can't compress a block of {} bytes: {error}", self.raw.len())))?;
        let length = (self.raw.len() as u32).to_le_bytes();
        out.extend_from_slice(&checksum(number, &[&length, &packed]).to_le_bytes());
        out.extend_from_slice(&length);
        out.extend_from_slice(&packed);
        *self = Self::default();
        Ok(())
    }
}

/// Puts the record of a key into `out`; false if the block has none.
pub(super) fn find(number: u64, bytes: &[u8], wanted: &Key, attributes: usize, out: &mut Record) -> Result<bool> {
    let raw = unpack(number, bytes)?;
    let mut cursor = Cursor(&raw);
    let mut last = None;
    while !cursor.0.is_empty() {
        let next = cursor.key(wanted.key_type(), last.as_ref());
        let (key, record) = next.and_then(|key| Some((key, record_of(&mut cursor)?))).ok_or_else(damaged)?;
        if key >= *wanted {
            let is_it = key == *wanted;
            if is_it {
                body::read(record, attributes, None, out);
            }
            return Ok(is_it);
        }
        last = Some(key);
    }
    Ok(false)
}

fn record_of<'b>(cursor: &mut Cursor<'b>) -> Option<&'b [u8]> {
    let length = cursor.number()?;
    cursor.bytes(length)
}

fn unpack(number: u64, bytes: &[u8]) -> Result<Vec<u8>> {
    let (head, packed) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(damaged)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = word(4) as usize;
    if word(0) != checksum(number, &[&head[4..], packed]) || length > RAW_BYTES_MAX {
        return Err(damaged());
    }
    let raw = zstd::bulk::decompress(packed, length).map_err(|_| damaged())?;
    if raw.len() == length { Ok(raw) } else { Err(damaged()) }
}

/// Of what stands at a place among those of its kind: so nothing is taken for its neighbour.
pub(super) fn checksum(place: u64, parts: &[&[u8]]) -> u32 {
    parts.iter().fold(forebay_types::crc32c(&place.to_le_bytes()), |sum, part| forebay_types::crc32c_append(sum, part))
}

pub(super) fn damaged() -> Error {
    Error::corrupt("a shard's cold file does not verify: fetch it again, or create the dataset again")
}

/// The type that keys of a file have, as it writes them.
pub(super) fn key_code(key_type: KeyType) -> u8 {
    match key_type {
        KeyType::U64 => 0,
        KeyType::Bytes => 1,
    }
}
