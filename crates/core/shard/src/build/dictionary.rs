//! What is learned from a sample before the record text is written: which values get numbers, and zstd's dictionary.

use std::collections::HashSet;

use forebay_types::Result;
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::input::{Input, for_each_value};
use crate::record::Record;
use crate::record::blocks::{self, BLOCK_RECORDS, BlockWriter, RawBlock};
use crate::record::codes::{self, Codes};

/// The dictionary of the record text: at most this much, and at most a 64th of the input.
const DICTIONARY_BYTES: usize = 110 << 10;
/// It is trained on at most so many times its size.
const TRAINED_ON: usize = 40;
/// Blocks that are compressed to know what the record text will take.
const SAMPLED_BLOCKS: usize = 64;
/// The length of a block's text, and the place of the block.
const PLACE_BYTES: f64 = 6.0;
/// An attribute is numbered that has at most so many values, whose bytes are at most so small a part of the input.
const NUMBERED_MAX: usize = 4096;
const NUMBERED_SHARE: usize = 512;

/// What the record text needs beside the records.
#[derive(Default)]
pub(super) struct Sampled {
    /// The values that are numbered, as a section.
    pub(super) codes: Vec<u8>,
    /// The dictionary for zstd.
    pub(super) dictionary: Vec<u8>,
    /// What all of it will take in blocks, estimated.
    pub(super) block_bytes: u64,
}

/// The numbered values, and a dictionary for the rest from blocks all over the input, with what blocks will take, from a
/// sample.
pub(super) fn sample(input: &Input, attributes: usize, input_bytes: u64) -> Result<Sampled> {
    let records = input.keys.len();
    // Miri can't run zstd; a shard that says so has no blocks.
    if records == 0 || cfg!(miri) {
        return Ok(Sampled::default());
    }
    let section = numbered(input, attributes, input_bytes);
    let codes = Codes::read(&section, attributes).expect("what has just been written");
    let most = DICTIONARY_BYTES.min(input_bytes as usize / 64);
    let count = records.div_ceil(BLOCK_RECORDS as usize);
    let each = (input_bytes as usize).div_ceil(count).max(1);
    let wanted = (most * TRAINED_ON / each).clamp(SAMPLED_BLOCKS, count.max(SAMPLED_BLOCKS));
    let step = count.div_ceil(wanted);
    let blocks = blocks_of(input, attributes, &codes, step, 0)?;
    let (raw, sizes): (Vec<&[u8]>, Vec<usize>) = blocks.iter().map(|block| (&block[..], block.len())).unzip();
    let raw = raw.concat();
    // A trained one has the tables of the entropy coder too, which blocks then neither hold nor have to be read from. What is
    // too little to learn from is a dictionary as it stands.
    let dictionary = zstd::dict::from_continuous(&raw, &sizes, most).unwrap_or_else(|_| raw[..most.min(raw.len())].to_vec());
    let packer = blocks::packer(&dictionary);
    let mut writer = BlockWriter::new(&packer)?;
    // Other blocks than those that the dictionary was made of, if there are any: it packs its own better than the rest.
    let others = step * count.div_ceil(step).div_ceil(SAMPLED_BLOCKS);
    let blocks = blocks_of(input, attributes, &codes, others, step / 2)?;
    let (mut packed, mut sampled) = (Vec::new(), 0);
    for block in &blocks {
        writer.compress_text(block, &mut packed)?;
        sampled += 1;
    }
    let numbers = (codes.bits * BLOCK_RECORDS as usize).div_ceil(8) as f64;
    let each = packed.len() as f64 / f64::from(sampled.max(1)) + numbers + PLACE_BYTES;
    Ok(Sampled { codes: section, dictionary, block_bytes: (each * count as f64) as u64 })
}

/// The text of every `step`-th block, from block `first` on.
fn blocks_of(input: &Input, attributes: usize, codes: &Codes, step: usize, first: usize) -> Result<Vec<Vec<u8>>> {
    let numbers = codes.numbers();
    let (mut block, mut record) = (RawBlock::new(codes), Record::new());
    let (mut blocks, mut outcome) = (Vec::new(), Ok(()));
    input.for_each_record(attributes, |at, lengths, values| {
        if outcome.is_err() || at / BLOCK_RECORDS as usize % step != first {
            return;
        }
        record.clear();
        for_each_value(attributes, lengths, values, |_, value| {
            record.bytes.extend_from_slice(value.unwrap_or_default());
            record.end_value(value.is_none());
        });
        outcome = block.push(codes, &numbers, &record);
        if at + 1 == input.keys.len() || (at + 1).is_multiple_of(BLOCK_RECORDS as usize) {
            blocks.push(block.finish().text);
        }
    });
    outcome.map(|()| blocks)
}

/// The different values of one attribute, as long as they are few.
struct Few {
    values: HashSet<Vec<u8>, Xxh3DefaultBuilder>,
    null: bool,
    bytes: usize,
    /// The value before, and how many have been the same as the one before.
    last: Option<Vec<u8>>,
    repeated: usize,
}

impl Few {
    fn add(&mut self, value: Option<&[u8]>) {
        // Before the first value there is none, as if a null had been before it.
        self.null |= value.is_none();
        if value == self.last.as_deref() {
            self.repeated += 1;
            return;
        }
        match (value, &mut self.last) {
            (Some(value), Some(last)) => {
                last.clear();
                last.extend_from_slice(value);
            }
            (value, last) => *last = value.map(<[u8]>::to_vec),
        }
        if let Some(value) = value
            && !self.values.contains(value)
        {
            self.bytes += value.len() + 2;
            self.values.insert(value.to_vec());
        }
        debug_assert!(self.null || self.last.is_some(), "what came last was a value or a null");
    }
}

/// The section of numbered values. Attributes whose values repeat from record to record are left to zstd, to which that is
/// next to nothing.
fn numbered(input: &Input, attributes: usize, input_bytes: u64) -> Vec<u8> {
    let bytes_max = input_bytes as usize / NUMBERED_SHARE;
    let few = |attribute| {
        // The estimate is off by a few percent.
        let few = input.distinct(attribute) as usize <= NUMBERED_MAX * 11 / 10;
        few.then(|| Few { values: HashSet::default(), null: false, bytes: 0, last: None, repeated: 0 })
    };
    let mut columns: Vec<Option<Few>> = (0..attributes).map(few).collect();
    input.for_each_record(attributes, |_, lengths, values| {
        for_each_value(attributes, lengths, values, |attribute, value| {
            if let Some(few) = &mut columns[attribute] {
                few.add(value);
                if few.values.len() > NUMBERED_MAX || few.bytes > bytes_max {
                    columns[attribute] = None;
                }
            }
        });
    });
    codes::encode(columns.iter().map(|few| {
        let Some(few) = few.as_ref().filter(|few| few.repeated * 2 < input.keys.len()) else { return Vec::new() };
        let mut values: Vec<_> =
            few.null.then_some(None).into_iter().chain(few.values.iter().map(|value| Some(&value[..]))).collect();
        values.sort_unstable();
        values
    }))
}
