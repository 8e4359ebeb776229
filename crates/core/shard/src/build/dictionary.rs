use forebay_types::Result;

use super::assemble::Input;
use crate::record::blocks::{self, BLOCK_RECORDS, BlockWriter};
use crate::record::varint;

/// The dictionary of the record text: at most this much, and at most a 64th of the input.
const DICTIONARY_BYTES: usize = 110 << 10;
/// It is trained on at most so many times its size.
const TRAINED_ON: usize = 40;
/// Blocks that are compressed to know what the record text will take.
const SAMPLED_BLOCKS: usize = 64;

/// A dictionary for the record text from blocks all over the input, and what all of it will take in blocks, from a sample.
pub(super) fn sample(input: &Input, attributes: usize, input_bytes: u64) -> Result<(Vec<u8>, u64)> {
    let records = input.keys.len();
    // Miri can't run zstd; a shard that says so has no blocks.
    if records == 0 || cfg!(miri) {
        return Ok((Vec::new(), 0));
    }
    let most = DICTIONARY_BYTES.min(input_bytes as usize / 64);
    let count = records.div_ceil(BLOCK_RECORDS as usize);
    let each = (input_bytes as usize).div_ceil(count).max(1);
    let wanted = (most * TRAINED_ON / each).clamp(SAMPLED_BLOCKS, count.max(SAMPLED_BLOCKS));
    let step = count.div_ceil(wanted);
    let (mut raw, mut ends) = (Vec::new(), Vec::new());
    input.for_each_record(attributes, |record, lengths, values| {
        let block = record / BLOCK_RECORDS as usize;
        if block.is_multiple_of(step) {
            varint::write((lengths.len() + values.len()) as u64, &mut raw);
            raw.extend_from_slice(lengths);
            raw.extend_from_slice(values);
            if record + 1 == records || (record + 1).is_multiple_of(BLOCK_RECORDS as usize) {
                ends.push(raw.len());
            }
        }
    });
    let sizes: Vec<usize> = ends.iter().scan(0, |from, end| Some(end - std::mem::replace(from, *end))).collect();
    // A trained one has the tables of the entropy coder too, which blocks then neither hold nor have to be read from. What is
    // too little to learn from is a dictionary as it stands.
    let dictionary = zstd::dict::from_continuous(&raw, &sizes, most).unwrap_or_else(|_| raw[..most.min(raw.len())].to_vec());
    let packer = blocks::packer(&dictionary);
    let mut writer = BlockWriter::new(&packer)?;
    let (mut packed, mut sampled) = (Vec::new(), 0);
    for (place, end) in ends.iter().enumerate().step_by(ends.len().div_ceil(SAMPLED_BLOCKS)) {
        writer.compress(&raw[end - sizes[place]..*end], &mut packed)?;
        sampled += 1;
    }
    let each = packed.len() as f64 / f64::from(sampled) + 4.0;
    Ok((dictionary, (each * count as f64) as u64))
}
