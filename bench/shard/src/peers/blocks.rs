//! The peer of equal size: zstd blocks with a dictionary, and postings for each attribute.

use std::collections::BTreeMap;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

use super::elias_fano::EliasFano;
use super::row::{self, Row};
use crate::workload::{ATTRIBUTES, Records};

const RECORDS_A_BLOCK: usize = 16;
const DICTIONARY_BYTES: usize = 110 << 10;
/// The dictionary is trained on this much.
const SAMPLES_BYTES: usize = 8 << 20;

/// What one would build instead: records in key order in zstd blocks of 16 with a shared dictionary, and for each
/// attribute its values, sorted, with Elias-Fano postings.
pub(crate) struct Blocks {
    keys: EliasFano,
    rows: usize,
    dictionary_bytes: usize,
    data: Vec<u8>,
    offsets: EliasFano,
    columns: Vec<Column>,
    dictionary: DecoderDictionary<'static>,
}

struct Column {
    values: Vec<u8>,
    value_ends: EliasFano,
    /// How many rows all values up to one have.
    row_ends: EliasFano,
    /// `value * rows + row`, ascending.
    rows: EliasFano,
    count: usize,
}

/// What a reader keeps between reads.
pub(crate) struct BlockReader<'a> {
    blocks: &'a Blocks,
    decompressor: Decompressor<'a>,
    buffer: Vec<u8>,
}

impl Blocks {
    /// Compresses at zstd's level `level` and indexes every attribute.
    pub(crate) fn new(records: &Records, level: i32) -> std::io::Result<Self> {
        let blocks: Vec<Vec<u8>> = (0..records.len()).step_by(RECORDS_A_BLOCK).map(|first| block(records, first)).collect();
        let every = (records.values_bytes() / SAMPLES_BYTES).max(1);
        let samples: Vec<&[u8]> = blocks.iter().step_by(every).map(Vec::as_slice).collect();
        let dictionary = zstd::dict::from_samples(&samples, DICTIONARY_BYTES)?;
        let encoder = EncoderDictionary::copy(&dictionary, level);
        let mut compressor = Compressor::with_prepared_dictionary(&encoder)?;
        // What every frame would repeat is left out.
        compressor.include_contentsize(false)?;
        compressor.include_checksum(false)?;
        compressor.include_magicbytes(false)?;
        compressor.include_dictid(false)?;
        let (mut data, mut ends) = (Vec::new(), Vec::with_capacity(blocks.len()));
        for block in &blocks {
            data.extend_from_slice(&compressor.compress(block)?);
            ends.push(data.len() as u64);
        }
        let last = records.keys.last().copied().unwrap_or(0);
        Ok(Self {
            keys: EliasFano::new(records.keys.iter().copied(), last + 1),
            rows: records.len(),
            dictionary_bytes: dictionary.len(),
            offsets: EliasFano::new(ends.into_iter(), data.len() as u64 + 1),
            data,
            columns: (0..ATTRIBUTES.len()).map(|attribute| Column::new(records, attribute)).collect(),
            dictionary: DecoderDictionary::copy(&dictionary),
        })
    }

    /// A reader; one a thread.
    pub(crate) fn reader(&self) -> std::io::Result<BlockReader<'_>> {
        let mut decompressor = Decompressor::with_prepared_dictionary(&self.dictionary)?;
        decompressor.include_magicbytes(false)?;
        Ok(BlockReader { blocks: self, decompressor, buffer: Vec::with_capacity(64 << 10) })
    }

    /// Bytes stored, all parts.
    pub(crate) fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        self.keys.bytes() + self.data.len() + self.offsets.bytes() + self.dictionary_bytes + columns
    }
}

fn block(records: &Records, first: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4096);
    for at in first..(first + RECORDS_A_BLOCK).min(records.len()) {
        row::write(records, at, &mut bytes);
    }
    bytes
}

impl Column {
    fn new(records: &Records, attribute: usize) -> Self {
        let mut sorted: BTreeMap<&[u8], Vec<u64>> = BTreeMap::new();
        for row in 0..records.len() {
            sorted.entry(records.value(row, attribute)).or_default().push(row as u64);
        }
        let count = sorted.len();
        let (mut values, mut value_ends, mut row_ends, mut places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (id, (value, rows)) in (0u64..).zip(&sorted) {
            values.extend_from_slice(value);
            value_ends.push(values.len() as u64);
            places.extend(rows.iter().map(|row| id * records.len() as u64 + row));
            row_ends.push(places.len() as u64);
        }
        Self {
            value_ends: EliasFano::new(value_ends.into_iter(), values.len() as u64 + 1),
            row_ends: EliasFano::new(row_ends.into_iter(), records.len() as u64 + 1),
            rows: EliasFano::new(places.into_iter(), count as u64 * records.len() as u64),
            values,
            count,
        }
    }

    fn value(&self, id: usize) -> &[u8] {
        let (start, end) = match id {
            0 => (0, self.value_ends.get(0)),
            _ => {
                let mut ends = self.value_ends.from(id - 1);
                (ends.next().expect("in bounds"), ends.next().expect("in bounds"))
            }
        };
        &self.values[start as usize..end as usize]
    }

    fn find(&self, value: &[u8]) -> Option<usize> {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = from.midpoint(to);
            match self.value(middle).cmp(value) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    fn bytes(&self) -> usize {
        self.values.len() + self.value_ends.bytes() + self.row_ends.bytes() + self.rows.bytes()
    }
}

impl BlockReader<'_> {
    /// Puts a record's values into `into`.
    pub(crate) fn get(&mut self, key: u64, into: &mut Row) -> bool {
        let blocks = self.blocks;
        let row = blocks.keys.lower_bound(key);
        if row == blocks.rows || blocks.keys.get(row) != key {
            return false;
        }
        let block = row / RECORDS_A_BLOCK;
        let start = if block == 0 { 0 } else { blocks.offsets.get(block - 1) as usize };
        let end = blocks.offsets.get(block) as usize;
        self.buffer.clear();
        self.decompressor.decompress_to_buffer(&blocks.data[start..end], &mut self.buffer).expect("what was compressed");
        let mut rest = self.buffer.as_slice();
        for _ in 0..row % RECORDS_A_BLOCK {
            rest = &rest[row::length(rest)..];
        }
        into.read(rest);
        true
    }

    /// The keys of a value, ascending.
    pub(crate) fn search(&self, attribute: usize, value: &[u8]) -> Vec<u64> {
        let column = &self.blocks.columns[attribute];
        let Some(id) = column.find(value) else { return Vec::new() };
        let start = if id == 0 { 0 } else { column.row_ends.get(id - 1) as usize };
        let end = column.row_ends.get(id) as usize;
        let base = id as u64 * self.blocks.rows as u64;
        column.rows.from(start).take(end - start).map(|place| self.blocks.keys.get((place - base) as usize)).collect()
    }
}
