//! Making a cold file of sorted records.

use forebay_types::Result;

use super::block::{Block, RAW_BYTES_MAX, checksum, key_code};
use super::cursor::put_key;
use super::postings;
use crate::build::builder::Builder;
use crate::build::input::{Input, KeyList};
use crate::model::key::Key;
use crate::model::schema::Schema;
use crate::record::varint;

pub(super) const MAGIC: &[u8; 8] = b"FBSHCOLD";
pub(super) const VERSION: u32 = 1;
/// Magic, version, checksum of what follows.
pub(super) const HEAD_BYTES: usize = 16;
/// A block has as many bytes as makes the list of blocks and one block together the least: about five bytes a block of the list, and
/// records that shrink to two fifths.
const LIST_OVER_PACKED: f64 = 13.0;
const BLOCK_BYTES_MIN: usize = 4 << 10;
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// A cold file: all of its bytes, of which the last are its tail.
pub struct ColdFile {
    /// All of it.
    pub bytes: Vec<u8>,
    /// How many of them, at the end, are the tail: what is read first.
    pub tail_bytes: u64,
}

impl Builder {
    /// The records so far as a cold file; none where one of them is too large to be read so.
    pub fn cold(&mut self) -> Result<Option<ColdFile>> {
        let (schema, input, input_bytes) = self.sorted();
        write(schema, input, input_bytes)
    }
}

fn write(schema: &Schema, input: &Input, input_bytes: u64) -> Result<Option<ColdFile>> {
    let attributes = schema.attributes.len();
    let keys: Vec<Key> = (0..input.keys.len()).map(|record| key_of(&input.keys, record)).collect();
    debug_assert!(keys.is_sorted(), "records are in the order of their keys");
    let wanted = ((input_bytes as f64 * LIST_OVER_PACKED).sqrt() as usize).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
    let mut blocks = Blocks::default();
    let mut written = Ok(());
    let mut is_too_large = false;
    input.for_each_record(attributes, |record, lengths, values| {
        is_too_large |= lengths.len() + values.len() > RAW_BYTES_MAX / 2;
        if written.is_ok() && !is_too_large {
            written = blocks.push(&keys[record], lengths, values, wanted);
        }
    });
    written?;
    if is_too_large {
        return Ok(None);
    }
    let (mut bytes, list) = blocks.finish()?;
    let mut tail = MAGIC.to_vec();
    tail.extend_from_slice(&VERSION.to_le_bytes());
    tail.extend_from_slice(&[0; 4]);
    tail.push(key_code(schema.key_type));
    tail.extend_from_slice(&list);
    varint::write(attributes as u64, &mut tail);
    for attribute in 0..attributes {
        let from = bytes.len();
        let count = postings::write(input, &keys, attribute, attributes, &mut bytes);
        varint::write(count, &mut tail);
        varint::write((bytes.len() - from) as u64, &mut tail);
    }
    let sum = checksum(bytes.len() as u64, &[&tail[HEAD_BYTES..]]);
    tail[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(&tail);
    Ok(Some(ColdFile { bytes, tail_bytes: tail.len() as u64 }))
}

fn key_of(keys: &KeyList, record: usize) -> Key {
    match keys {
        KeyList::Numbers(keys) => Key::U64(keys[record]),
        KeyList::Strings { .. } => Key::Bytes(keys.string(record).to_vec()),
    }
}

/// Blocks so far, and the list of them.
#[derive(Default)]
struct Blocks {
    bytes: Vec<u8>,
    list: Vec<u8>,
    count: u64,
    block: Block,
    first: Option<Key>,
    last_first: Option<Key>,
}

impl Blocks {
    fn push(&mut self, key: &Key, lengths: &[u8], values: &[u8], wanted: usize) -> Result<()> {
        if self.block.len() >= wanted {
            self.end()?;
        }
        if self.block.is_empty() {
            self.first = Some(key.clone());
        }
        self.block.push(key, lengths, values);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        assert_eq!(self.first.is_none(), self.block.is_empty(), "a block has a first key, and only one with records");
        let Some(first) = self.first.take() else { return Ok(()) };
        let from = self.bytes.len();
        self.block.finish(self.count, &mut self.bytes)?;
        put_key(&first, self.last_first.as_ref(), &mut self.list);
        varint::write((self.bytes.len() - from) as u64, &mut self.list);
        self.last_first = Some(first);
        self.count += 1;
        Ok(())
    }

    /// All blocks, and the list with their number before it.
    fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        self.end()?;
        let mut list = Vec::new();
        varint::write(self.count, &mut list);
        list.extend_from_slice(&self.list);
        Ok((self.bytes, list))
    }
}
