//! Making a cold file of records that come in the order of their keys.

use std::io::{Read, Seek, Write};

use forebay_types::{Error, Result, ResultExt};

use super::block::{Block, CANT_WRITE, RAW_BYTES_MAX, checksum, key_code};
use super::cursor::put_key;
use super::postings::{self, Noted};
use crate::build::Builder;
use crate::build::distinct::Distinct;
use crate::build::input::{KeyList, for_each_value};
use crate::model::key::Key;
use crate::model::schema::Schema;
use crate::record::varint;

pub(super) const MAGIC: &[u8; 8] = b"FBSHCOLD";
pub(super) const VERSION: u32 = 2;
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

impl ColdFile {
    /// The records of a builder so far; none where one of them is too large to be read so.
    pub fn of(builder: &mut Builder) -> Result<Option<Self>> {
        let (schema, input, input_bytes) = builder.sorted();
        let attributes = schema.attributes.len();
        let mut writer = ColdWriter::new(schema.clone(), input_bytes, Vec::new(), vec![Vec::new(); attributes]);
        let mut written = Ok(());
        input.for_each_record(attributes, |record, lengths, values| {
            if written.is_ok() {
                let mut of_record = Vec::with_capacity(attributes);
                for_each_value(attributes, lengths, values, |_, value| of_record.push(value));
                written = writer.push(&input.keys.key(record), &of_record);
            }
        });
        written?;
        let written = writer.finish(|noted| Ok(std::io::Cursor::new(noted)))?;
        Ok(written.map(|(bytes, tail_bytes)| Self { bytes, tail_bytes }))
    }
}

/// Writes a cold file, record after record. In memory it has the keys, a block, and at the end of one attribute after the other what it
/// noted of a million records; the rest goes to where it is told.
pub struct ColdWriter<W> {
    schema: Schema,
    wanted: usize,
    blocks: Blocks<W>,
    keys: KeyList,
    noted: Vec<Noted<W>>,
    is_too_large: bool,
}

impl<W: Write> ColdWriter<W> {
    /// Of about so many bytes of input: the file goes into `out`, and what is noted of each attribute into one of `noted`.
    pub fn new(schema: Schema, input_bytes: u64, out: W, noted: Vec<W>) -> Self {
        assert_eq!(noted.len(), schema.attributes.len(), "there is one for each attribute");
        let wanted = ((input_bytes as f64 * LIST_OVER_PACKED).sqrt() as usize).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        let blocks = Blocks { out, at: 0, list: Vec::new(), count: 0, block: Block::default(), first: None, last_first: None };
        let noted = noted.into_iter().map(|out| Noted { out, distinct: Distinct::new(), bytes: Vec::new(), last: 0 }).collect();
        Self { wanted, blocks, keys: KeyList::new(schema.key_type), noted, is_too_large: false, schema }
    }

    /// The next record: its key, above all before it, and the encoded bytes of its values, `None` for null.
    pub fn push(&mut self, key: &Key, values: &[Option<&[u8]>]) -> Result<()> {
        if key.key_type() != self.schema.key_type || values.len() != self.noted.len() {
            return Err(Error::internal(format!("key {key} is not one of the cold file's")));
        }
        let bytes: usize = values.iter().flatten().map(|value| value.len()).sum();
        self.is_too_large |= bytes + 10 * values.len() > RAW_BYTES_MAX / 2;
        if self.is_too_large {
            return Ok(());
        }
        let record = self.keys.len() as u32;
        if !self.keys.push(key) {
            return Err(Error::internal(format!("key {key} is not above the one before it")));
        }
        for (noted, value) in self.noted.iter_mut().zip(values) {
            if let Some(value) = value {
                noted.push(record, value)?;
            }
        }
        self.blocks.push(key, values, self.wanted)
    }

    /// Ends the file, and gives how many of its bytes are its tail; none where one of the records is too large to be read from it.
    /// `read` begins to read what was noted.
    pub fn finish<R: Read + Seek>(mut self, mut read: impl FnMut(W) -> Result<R>) -> Result<Option<(W, u64)>> {
        if self.is_too_large {
            return Ok(None);
        }
        self.blocks.end()?;
        let Blocks { mut out, mut at, list, count, .. } = self.blocks;
        let mut tail = MAGIC.to_vec();
        tail.extend_from_slice(&VERSION.to_le_bytes());
        tail.extend_from_slice(&[0; 4]);
        tail.push(key_code(self.schema.key_type));
        varint::write(count, &mut tail);
        tail.extend_from_slice(&list);
        varint::write(self.noted.len() as u64, &mut tail);
        for mut noted in self.noted {
            noted.flush()?;
            let Noted { out: written, distinct, .. } = noted;
            let (count, bytes) = match postings::are_worth_it(distinct.estimate(), self.keys.len()) {
                true => postings::write(read(written)?, &self.keys, &mut out)?,
                false => (0, 0),
            };
            at += bytes;
            varint::write(count, &mut tail);
            varint::write(bytes, &mut tail);
        }
        let sum = checksum(at, &[&tail[HEAD_BYTES..]]);
        tail[12..16].copy_from_slice(&sum.to_le_bytes());
        out.write_all(&tail).context(|| CANT_WRITE)?;
        Ok(Some((out, tail.len() as u64)))
    }
}

/// Blocks so far, and the list of them.
struct Blocks<W> {
    out: W,
    at: u64,
    list: Vec<u8>,
    count: u64,
    block: Block,
    first: Option<Key>,
    last_first: Option<Key>,
}

impl<W: Write> Blocks<W> {
    fn push(&mut self, key: &Key, values: &[Option<&[u8]>], wanted: usize) -> Result<()> {
        if self.block.len() >= wanted {
            self.end()?;
        }
        if self.block.is_empty() {
            self.first = Some(key.clone());
        }
        self.block.push(key, values);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        assert_eq!(self.first.is_none(), self.block.is_empty(), "a block has a first key, and only one with records");
        let Some(first) = self.first.take() else { return Ok(()) };
        let mut packed = Vec::new();
        self.block.finish(self.count, &mut packed)?;
        self.out.write_all(&packed).context(|| CANT_WRITE)?;
        self.at += packed.len() as u64;
        put_key(&first, self.last_first.as_ref(), &mut self.list);
        varint::write(packed.len() as u64, &mut self.list);
        self.last_first = Some(first);
        self.count += 1;
        Ok(())
    }
}
