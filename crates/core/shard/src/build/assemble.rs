//! From sorted records to the bytes of a base and its first layers: the order in which a shard comes to be.

use bytes::Bytes;
use forebay_types::Result;

use super::dictionary::{Sampled, sample};
use super::input::{Input, KeyList};
use super::rows::{Rows, sort_lean, sort_rows};
use crate::base::{BASE_KIND, Base, Numbers, record_bits};
use crate::bits::pack;
use crate::keys;
use crate::layers::build::LayerBuilder;
use crate::layers::id::LayerId;
use crate::layers::plan;
use crate::model::alphabet::Alphabet;
use crate::model::schema::Schema;
use crate::part;
use crate::record::varint;
use crate::sampling::QueryCounters;

/// A shard as bytes: one file a part.
pub struct BuiltShard {
    /// The base part.
    pub base: Bytes,
    /// The first layers.
    pub layers: Vec<(LayerId, Bytes)>,
}

/// Makes the base, and the first layers that are wanted: those of a size, for what was asked. Without any it takes two thirds of the memory.
pub(crate) fn assemble(
    schema: Schema,
    input: Input,
    input_bytes: u64,
    wanted: Option<(f64, &QueryCounters)>,
) -> Result<BuiltShard> {
    let attributes = schema.attributes.len();
    let records = input.keys.len();
    let alphabet = Alphabet::new(attributes as u8, input.used, input.nulls);
    let Sampled { codes, dictionary, block_bytes } = sample(&input, attributes, input_bytes)?;
    let mut totals = vec![[0u64; 3]; attributes];
    for (total, distinct) in totals.iter_mut().zip(&input.distinct) {
        total[2] = distinct.estimate();
    }
    let mut longest = 0;
    let mut text = Vec::with_capacity(input.values.len() + records * attributes);
    input.for_each_record(attributes, |_, lengths, mut values| {
        let (begin, mut at) = (text.len(), 0);
        for (index, total) in totals.iter_mut().enumerate() {
            let from = text.len();
            let (length, next) = varint::read(lengths, at);
            at = next;
            text.push(alphabet.delimiter(index));
            match (length.checked_sub(1), alphabet.null) {
                (Some(length), _) => {
                    let (value, rest) = values.split_at(length as usize);
                    alphabet.encode(value, &mut text);
                    values = rest;
                    total[1] += length;
                }
                (None, null) => text.extend(null),
            }
            total[0] += (text.len() - from) as u64;
        }
        longest = longest.max(text.len() - begin);
    });
    let keys = match &input.keys {
        KeyList::Numbers(numbers) => keys::encode_numbers(numbers),
        strings @ KeyList::Strings { .. } => keys::encode_strings((0..records).map(|index| strings.string(index))),
    };
    drop(input);
    let symbols = text.len() as u64;
    let (rows, text) = match wanted {
        Some(_) => (sort_rows(&text, alphabet.symbols, alphabet.delimiter(0))?, text),
        None => (sort_lean(text, alphabet.symbols, alphabet.delimiter(0))?, Vec::new()),
    };
    let Rows { columns: _, counts, psi, starts, inverse } = rows;
    let numbers = Numbers {
        flat: 0,
        symbols,
        records: records as u64,
        input_bytes,
        longest: longest as u64,
        row_bits: u64::from(psi.row_bits),
        symbol_bits: u64::from(psi.symbol_bits),
        unit: u64::from(psi.unit),
        block_bytes,
    };
    let owners = owners_of(&starts);
    let most = (1u64 << record_bits(records as u64)) - 1;
    let counts: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    let totals: Vec<u8> = totals.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    let (mut schema_bytes, mut alphabet_bytes) = (Vec::new(), Vec::new());
    schema.write(&mut schema_bytes);
    alphabet.write(&mut alphabet_bytes);
    let starts = pack(checked(starts, &owners).into_iter().map(u64::from), most);
    let owners = pack(owners, most);
    let base = part::write(
        BASE_KIND,
        None,
        0,
        &[
            &numbers.write(),
            &schema_bytes,
            &alphabet_bytes,
            &counts,
            &totals,
            &psi.directory,
            &psi.payload,
            &starts,
            &owners,
            &dictionary,
            &keys[0],
            &keys[1],
            &keys[2],
            &keys[3],
            &keys[4],
            &codes,
        ],
    );
    drop(psi);
    let base = Bytes::from(base);
    let layers = match wanted {
        Some((ratio, counters)) => first_layers(Base::open(base.clone())?, ratio, counters, text, inverse)?,
        None => Vec::new(),
    };
    Ok(BuiltShard { base, layers })
}

/// The record that begins at each of these rows.
fn owners_of(starts: &[u32]) -> Vec<u64> {
    let mut owners = vec![0; starts.len()];
    for (record, row) in (0..).zip(starts) {
        owners[*row as usize] = record;
    }
    owners
}

/// Each record's row, which is that of no other one.
fn checked(starts: Vec<u32>, owners: &[u64]) -> Vec<u32> {
    assert_eq!(starts.len(), owners.len(), "each record begins once in the text");
    debug_assert!((0..).zip(&starts).all(|(record, row)| owners[*row as usize] == record), "no two records begin at a row");
    starts
}

/// The layers that bring a shard to `ratio` of its input, made while its text is at hand.
fn first_layers(
    base: Base,
    ratio: f64,
    counters: &QueryCounters,
    text: Vec<u8>,
    inverse: Vec<u32>,
) -> Result<Vec<(LayerId, Bytes)>> {
    let ids = plan::dial(&base, ratio, counters);
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let builder = LayerBuilder::new(std::sync::Arc::new(base), &ids)?;
    builder.run_from_text(&text, &inverse)?;
    // The parts are written in their room.
    drop((text, inverse));
    builder.finish()
}
