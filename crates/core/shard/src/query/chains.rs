//! Reading values along psi: several chains of one record step together, so that their cache misses overlap.

use crate::base::Base;
use crate::bits::prefetch::with_bit_instructions;
use crate::layers::LayerSet;
use crate::model::alphabet::Meaning;
use crate::psi::Place;
use crate::record::Record;

/// Chains of one record at most; more gain nothing.
const CHAINS_MAX: usize = 16;

/// Where one chain is.
#[derive(Clone, Debug)]
struct Chain {
    row: u32,
    place: Place,
    /// The attribute whose value is being read, and the one where the chain ends.
    attribute: u32,
    stop: u32,
    first: Option<u8>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    nulls: u128,
}

/// The buffers of chains, used again from one record to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainScratch {
    chains: Vec<Chain>,
}

/// Reads the values of `record`: all attributes, or `columns`.
pub(crate) fn read(
    base: &Base,
    set: &LayerSet,
    scratch: &mut ChainScratch,
    record: u32,
    columns: Option<&[usize]>,
    out: &mut Record,
) {
    out.clear();
    let attributes = base.schema.attributes.len();
    let mut count = 0;
    match columns {
        None => count = begin(base, set, scratch, record, 0, attributes, count),
        Some(columns) => {
            let mut wanted = columns.iter().fold(0u128, |wanted, column| wanted | 1 << column);
            while wanted != 0 {
                let from = wanted.trailing_zeros() as usize;
                let to = from + (wanted >> from).trailing_ones() as usize;
                wanted &= !(u128::MAX >> (128 - to));
                // Without a sample at its start the chain comes from the nearest one before.
                let start = (0..=from).rev().find(|at| set.isa[*at].get(record as usize).is_some()).unwrap_or(0);
                let overlap =
                    scratch.chains[..count].iter().find(|chain| chain.attribute as usize <= start && start < chain.stop as usize);
                if overlap.is_some() {
                    let last = &mut scratch.chains[count - 1];
                    last.stop = last.stop.max(to as u32);
                } else {
                    count = begin(base, set, scratch, record, start, to, count);
                }
            }
        }
    }
    run(base, set, &mut scratch.chains[..count], record);
    match columns {
        None => {
            for chain in &scratch.chains[..count] {
                let shift = out.bytes.len() as u32;
                out.nulls |= chain.nulls << out.ends.len();
                out.ends.extend(chain.ends.iter().map(|end| end + shift));
                out.bytes.extend_from_slice(&chain.bytes);
            }
            // Damage that checksums did not see could have cut a chain short.
            out.ends.resize(attributes, out.bytes.len() as u32);
        }
        Some(columns) => {
            for column in columns {
                let chain = scratch.chains[..count].iter().find(|chain| {
                    let first = chain.stop as usize - chain.ends.len().min(chain.stop as usize);
                    (first..chain.stop as usize).contains(column)
                });
                let Some(chain) = chain else {
                    out.end_value(true);
                    continue;
                };
                let index = *column - (chain.stop as usize - chain.ends.len());
                let from = if index == 0 { 0 } else { chain.ends[index - 1] as usize };
                out.bytes.extend_from_slice(&chain.bytes[from..chain.ends[index] as usize]);
                out.end_value(chain.nulls >> index & 1 == 1);
            }
        }
    }
}

/// Begins chains at the samples of `from..to`; `from` must have one. Returns how many chains there are then.
fn begin(
    base: &Base,
    set: &LayerSet,
    scratch: &mut ChainScratch,
    record: u32,
    from: usize,
    to: usize,
    mut count: usize,
) -> usize {
    let mut previous = None;
    for attribute in from..to {
        if previous.is_some() && count >= CHAINS_MAX {
            break;
        }
        let Some(index) = set.isa[attribute].get(record as usize) else { continue };
        if let Some(previous) = previous {
            let chain: &mut Chain = &mut scratch.chains[previous];
            chain.stop = attribute as u32;
        }
        let row = base.delimiter_column(attribute).start + index;
        let place = base.psi.place(row);
        base.psi.prefetch_payload(place);
        if scratch.chains.len() <= count {
            scratch.chains.push(Chain {
                row,
                place,
                attribute: 0,
                stop: 0,
                first: None,
                bytes: Vec::with_capacity(64),
                ends: Vec::new(),
                nulls: 0,
            });
        }
        let chain = &mut scratch.chains[count];
        (chain.row, chain.place, chain.attribute, chain.stop) = (row, place, attribute as u32, to as u32);
        (chain.first, chain.nulls) = (None, 0);
        chain.bytes.clear();
        chain.ends.clear();
        previous = Some(count);
        count += 1;
    }
    count
}

with_bit_instructions! {
    /// Steps all chains until each is at its end.
    fn run(base: &Base, set: &LayerSet, chains: &mut [Chain], record: u32) {
        let mut active: [u8; 128] = std::array::from_fn(|index| index as u8);
        let mut count = chains.len();
        // No chain is longer than the longest record; a bound for damage that checksums did not see.
        for _ in 0..=base.numbers.longest {
            if count == 0 {
                return;
            }
            let mut kept = 0;
            for at in 0..count {
                let chain = &mut chains[active[at] as usize];
                if chain.step(base, set, record) {
                    active[kept] = active[at];
                    kept += 1;
                }
            }
            count = kept;
        }
    }
}

impl Chain {
    /// One symbol on; false at the end.
    #[inline(always)]
    fn step(&mut self, base: &Base, set: &LayerSet, record: u32) -> bool {
        self.row = base.psi.next(self.place, self.row);
        self.place = base.psi.place(self.row);
        match base.alphabet.meaning(self.place.symbol) {
            Meaning::Byte(byte) => self.bytes.push(byte),
            Meaning::First(first) => self.first = Some(first),
            Meaning::Second(second) => self.bytes.push(base.alphabet.pair(self.first.take().unwrap_or_default(), second)),
            Meaning::Null => self.nulls |= 1 << self.ends.len(),
            Meaning::Delimiter(attribute) => {
                self.ends.push(self.bytes.len() as u32);
                self.attribute += 1;
                if u32::from(attribute) == self.attribute && set.filling {
                    keep(base, set, record, attribute as usize, self.row);
                }
                return u32::from(attribute) == self.attribute && self.attribute < self.stop;
            }
            Meaning::End => {
                self.ends.push(self.bytes.len() as u32);
                return false;
            }
        }
        true
    }
}

/// Stores what a walk passed, where a layer is being filled.
pub(crate) fn keep(base: &Base, set: &LayerSet, record: u32, attribute: usize, row: u32) {
    let index = row - base.delimiter_column(attribute).start;
    set.isa[attribute].store(record as usize, index);
    set.sa[attribute].store(index as usize, record);
}

/// The row of the start of `attribute` of `record`: a sample, or a walk from the nearest one before.
pub(crate) fn row_of(base: &Base, set: &LayerSet, record: u32, attribute: usize) -> u32 {
    let sample = (0..=attribute).rev().find_map(|at| Some((at, set.isa[at].get(record as usize)?)));
    let (mut at, index) = sample.unwrap_or_default();
    let mut row = base.delimiter_column(at).start + index;
    for _ in 0..base.numbers.longest {
        if at >= attribute {
            break;
        }
        row = base.psi.next(base.psi.place(row), row);
        if let Meaning::Delimiter(next) = base.alphabet.meaning(base.psi.place(row).symbol) {
            at = next as usize;
            if set.filling && at <= attribute {
                keep(base, set, record, at, row);
            }
        }
    }
    row
}
