//! From sorted records to the bytes of a base and its first layers: the order in which a shard comes to be.

use bytes::Bytes;
use forebay_types::Result;

use super::builder::{BuiltShard, KeyList, record_extent};
use super::dictionary::{Sampled, sample};
use super::distinct::Distinct;
use super::rows::sort_rows;
use crate::base::{BASE_KIND, Base, Numbers, record_bits};
use crate::bits::packed::pack;
use crate::keys;
use crate::layers::build::LayerBuilder;
use crate::layers::id::LayerId;
use crate::layers::plan;
use crate::model::alphabet::Alphabet;
use crate::model::schema::Schema;
use crate::part;
use crate::record::varint;
use crate::sampling::QueryCounters;

/// Records as they came: all values back to back, and their lengths plus one (0 for null).
pub(crate) struct Input {
    pub(crate) keys: KeyList,
    pub(crate) values: Vec<u8>,
    pub(crate) lengths: Vec<u8>,
    pub(crate) lengths_mark: usize,
    distinct: Vec<Distinct>,
    used: [bool; 256],
    nulls: bool,
}

impl Input {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            keys: KeyList::new(schema.key_type),
            values: Vec::new(),
            lengths: Vec::new(),
            lengths_mark: 0,
            distinct: schema.attributes.iter().map(|_| Distinct::new()).collect(),
            used: [false; 256],
            nulls: false,
        }
    }

    /// Ends the value whose bytes begin at `from`, or null.
    pub(crate) fn end_value(&mut self, attribute: usize, from: Option<usize>) {
        match from {
            Some(from) => {
                let value = &self.values[from..];
                self.distinct[attribute].add(value);
                value.iter().for_each(|byte| self.used[*byte as usize] = true);
                varint::write(value.len() as u64 + 1, &mut self.lengths);
            }
            None => {
                self.nulls = true;
                self.lengths.push(0);
            }
        }
    }

    /// Takes back the values of a record that was refused.
    pub(crate) fn forget(&mut self, mark: usize) {
        self.values.truncate(mark);
        self.lengths.truncate(self.lengths_mark);
    }

    /// Puts the records in the order of their keys. Returns the bytes of those that a later one replaced.
    pub(crate) fn sort(&mut self, attributes: usize) -> u64 {
        let mut places = Vec::with_capacity(self.keys.len());
        let (mut at, mut from) = (0, 0);
        for _ in 0..self.keys.len() {
            let (next, bytes) = record_extent(&self.lengths, at, attributes);
            places.push((at, next - at, from, bytes));
            (at, from) = (next, from + bytes);
        }
        let order = self.keys.order();
        let before = self.keys.bytes() + self.values.len() as u64 + (self.keys.len() * attributes) as u64;
        let (mut values, mut lengths) = (Vec::with_capacity(self.values.len()), Vec::with_capacity(self.lengths.len()));
        for index in &order {
            let (at, length, from, bytes) = places[*index as usize];
            lengths.extend_from_slice(&self.lengths[at..at + length]);
            values.extend_from_slice(&self.values[from..from + bytes]);
        }
        (self.values, self.lengths) = (values, lengths);
        self.keys = self.keys.select(&order);
        before - (self.keys.bytes() + self.values.len() as u64 + (self.keys.len() * attributes) as u64)
    }

    /// How many distinct values an attribute has, about.
    pub(crate) fn distinct(&self, attribute: usize) -> u64 {
        self.distinct[attribute].estimate()
    }

    /// Calls with each record's bytes of `lengths` and of the values.
    pub(crate) fn for_each_record(&self, attributes: usize, mut call: impl FnMut(usize, &[u8], &[u8])) {
        let (mut at, mut from) = (0, 0);
        for record in 0..self.keys.len() {
            let (next, bytes) = record_extent(&self.lengths, at, attributes);
            call(record, &self.lengths[at..next], &self.values[from..from + bytes]);
            (at, from) = (next, from + bytes);
        }
    }
}

/// Makes the base and the first layers.
pub(crate) fn assemble(
    schema: Schema,
    input: Input,
    input_bytes: u64,
    ratio: f64,
    counters: &QueryCounters,
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
            match (length.checked_sub(1), alphabet.null()) {
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
    let rows = sort_rows(&text, alphabet.symbols())?;
    let numbers = Numbers {
        flat: 0,
        symbols: text.len() as u64,
        records: records as u64,
        input_bytes,
        longest: longest as u64,
        row_bits: u64::from(rows.psi.row_bits),
        symbol_bits: u64::from(rows.psi.symbol_bits),
        unit: u64::from(rows.psi.unit),
        block_bytes,
    };
    let first = rows.columns.get(alphabet.delimiter(0) as usize).copied().unwrap_or_default();
    let starts: Vec<u32> = (0..text.len())
        .filter(|position| text[*position] == alphabet.delimiter(0))
        .map(|position| rows.inverse[position] - first.start)
        .collect();
    let mut owners = vec![0u64; records];
    for (record, row) in starts.iter().enumerate() {
        owners[*row as usize] = record as u64;
    }
    let most = (1u64 << record_bits(records as u64)) - 1;
    let counts: Vec<u8> = rows.counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    let totals: Vec<u8> = totals.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    let (mut schema_bytes, mut alphabet_bytes) = (Vec::new(), Vec::new());
    schema.write(&mut schema_bytes);
    alphabet.write(&mut alphabet_bytes);
    let starts = pack(starts.into_iter().map(u64::from), most);
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
            &rows.psi.directory,
            &rows.psi.payload,
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
    let inverse = rows.inverse;
    drop(rows.psi);
    let base = Bytes::from(base);
    let layers = first_layers(Base::open(base.clone())?, ratio, counters, text, inverse)?;
    Ok(BuiltShard { base, layers })
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
