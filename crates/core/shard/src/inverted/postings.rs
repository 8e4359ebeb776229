//! Postings, the smaller layer for equalities: a value's records in a growing sequence, its first row by hash.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::Base;
use crate::bits::elias_fano::{self, EliasFano};
use crate::bits::prefetch::with_bit_instructions;
use crate::bits::word::{load, width_of};
use crate::bits::{Packed, pack};
use crate::model::alphabet::Meaning;
use crate::part::Part;
use crate::window::Window;

/// Bits of a value's hash that are kept beside its first row: of other values that come to the same place in the table, all
/// but so few are passed over without a look at them.
const MARK_BITS: u32 = 8;

/// The postings of one attribute, of which any slices may be there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postings {
    shift: u32,
    slices: Vec<Option<Arc<PostingsSlice>>>,
    /// Whether all of them are there.
    pub(crate) whole: bool,
}

impl Postings {
    /// Slices of `1 << shift` rows, none there yet.
    pub(crate) fn new(shift: u32, slices: usize) -> Self {
        Self { shift, slices: vec![None; slices], whole: false }
    }

    pub(crate) fn set(&mut self, slice: usize, postings: Option<PostingsSlice>) {
        assert!(slice < self.slices.len(), "slice {slice} of {} has a place", self.slices.len());
        if let Some(place) = self.slices.get_mut(slice) {
            *place = postings.map(Arc::new);
        }
        self.whole = !self.slices.is_empty() && self.slices.iter().all(Option::is_some);
    }

    /// How many slices are there.
    pub(crate) fn present(&self) -> usize {
        self.slices.iter().flatten().count()
    }

    /// Appends the records of a window that have a value, in order; `start` is the first row of the attribute's column.
    pub(crate) fn equal(&self, base: &Base, start: u32, value: &[u8], symbols: &[u8], window: Window, out: &mut Vec<u32>) {
        let hash = xxh3_64(value);
        let mut pieces = 0;
        for (at, slice) in self.slices.iter().enumerate() {
            let before = out.len();
            if let Some(slice) = slice {
                let first = start + ((at as u32) << self.shift);
                slice.find(base, first, hash, symbols).into_iter().for_each(|row| slice.group(row, window, out));
            }
            pieces += usize::from(out.len() > before);
        }
        if pieces > 1 {
            out.sort_unstable();
            out.truncate(window.count);
        }
    }

    /// Appends the records of rows of the column, from the first of one value to the last of another; false if slices that
    /// have them are not there.
    pub(crate) fn rows(&self, rows: Range<u32>, out: &mut Vec<u32>) -> bool {
        if rows.is_empty() || self.slices.is_empty() {
            return rows.is_empty();
        }
        let slices = (rows.start >> self.shift) as usize..=((rows.end - 1) >> self.shift) as usize;
        if !self.slices.get(slices.clone()).is_some_and(|slices| slices.iter().all(Option::is_some)) {
            return false;
        }
        for at in slices {
            let Some(slice) = &self.slices[at] else { return false };
            let first = (at as u32) << self.shift;
            slice.rows(rows.start.saturating_sub(first) as usize, (rows.end - first) as usize, out);
        }
        true
    }
}

/// For some rows of one attribute, whose values are in order, the records: those of one value in order, too, which makes them
/// one growing sequence of `value's number << record bits | record`, in Elias-Fano. A table finds a value's first row by hash.
#[derive(Debug)]
pub(crate) struct PostingsSlice {
    entries: EliasFano,
    count: usize,
    record_bits: u32,
    /// Row plus one, and a mark of the hash above it; 0 for none.
    table: Packed,
    slots: u64,
    row_bits: u32,
}

/// Groups of equal values on their way into a slice, in the order of rows.
#[derive(Default)]
pub(crate) struct PostingsWriter {
    groups: u64,
    entries: Vec<u64>,
    /// Hashes of values, and their first rows.
    places: Vec<(u64, u32)>,
}

impl PostingsWriter {
    /// Adds the records of one value, in order; null has no hash, for no one looks for it by hash.
    pub(crate) fn push(&mut self, hash: Option<u64>, records: &[u32], record_bits: u32) {
        let row = self.entries.len() as u32;
        self.places.extend(hash.map(|hash| (hash, row)));
        self.entries.extend(records.iter().map(|record| self.groups << record_bits | u64::from(*record)));
        self.groups += 1;
    }

    /// The sections: numbers, head, high and low parts of the entries, a sample of places in the high part, table.
    pub(crate) fn finish(self) -> [Vec<u8>; 6] {
        let row_bits = width_of(self.entries.len() as u64);
        let slots = self.places.len() as u64 * 5 / 4 + 1;
        assert!(slots > self.places.len() as u64, "a look-up ends at a free slot");
        let mut table = vec![0u64; slots as usize];
        for (hash, row) in self.places {
            let mut at = slot(hash, slots);
            while table[at] != 0 {
                at = next(at, slots);
            }
            table[at] = mark(hash) << row_bits | (u64::from(row) + 1);
        }
        let numbers = [self.entries.len() as u64, slots].iter().flat_map(|number| number.to_le_bytes()).collect();
        let table = pack(table, (1 << (row_bits + MARK_BITS)) - 1);
        let [head, high, low, ones, _] = elias_fano::encode(&self.entries);
        [numbers, head, high, low, ones, table]
    }
}

#[inline(always)]
fn slot(hash: u64, slots: u64) -> usize {
    ((u128::from(hash) * u128::from(slots)) >> 64) as usize
}

#[inline(always)]
fn next(at: usize, slots: u64) -> usize {
    if at as u64 + 1 == slots { 0 } else { at + 1 }
}

/// The lowest bits: the highest ones say the slot.
#[inline(always)]
fn mark(hash: u64) -> u64 {
    hash & ((1 << MARK_BITS) - 1)
}

impl PostingsSlice {
    pub(crate) fn open(part: &Part, record_bits: u32) -> Self {
        let numbers = part.section(0);
        let (high, table) = (part.section(2), part.section(5));
        // Each entry has a bit of its own there: a bound for damage that checksums did not see, as that of the slots.
        let count = (load(&numbers, 0) as usize).min(high.len() * 8);
        let row_bits = width_of(count as u64).min(40);
        let slots_max = table.len() as u64 * 8 / u64::from(row_bits + MARK_BITS);
        let sections = [part.section(1), high, part.section(3), part.section(4), Bytes::new()];
        Self {
            entries: EliasFano::new(sections, count),
            count,
            record_bits,
            table: Packed::new(table, row_bits + MARK_BITS),
            slots: load(&numbers, 8).clamp(1, slots_max.max(1)),
            row_bits,
        }
    }

    /// The first row of the value of these symbols and this hash; `first` is the row that the slice begins at.
    fn find(&self, base: &Base, first: u32, hash: u64, symbols: &[u8]) -> Option<usize> {
        let mut at = slot(hash, self.slots);
        for _ in 0..self.slots {
            let entry = self.table.get(at);
            let row = (entry & ((1 << self.row_bits) - 1)).checked_sub(1)?;
            if entry >> self.row_bits == mark(hash) && spells(base, first + row as u32, symbols) {
                return Some(row as usize);
            }
            at = next(at, self.slots);
        }
        None
    }

    /// Appends the records of a window that have the value whose first row is `row` of the slice.
    fn group(&self, row: usize, window: Window, out: &mut Vec<u32>) {
        if row >= self.count {
            return;
        }
        let (mask, group) = ((1 << self.record_bits) - 1, self.entries.get(row) >> self.record_bits);
        let first = match window.from {
            0 => row,
            from => self.first_from(row, group << self.record_bits | u64::from(from)),
        };
        let entries = self.entries.from(first).take_while(|entry| entry >> self.record_bits == group);
        out.extend(entries.take(window.count).map(|entry| (entry & mask) as u32));
    }

    /// The first row from `row` on whose entry is not below `lowest`.
    fn first_from(&self, row: usize, lowest: u64) -> usize {
        let (mut low, mut high) = (row, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entries.get(middle) < lowest { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Appends the records of rows `from..to` of the slice, both at the ends of values.
    fn rows(&self, from: usize, to: usize, out: &mut Vec<u32>) {
        let mask = (1 << self.record_bits) - 1;
        let to = to.min(self.count);
        out.extend(self.entries.from(from).take(to.saturating_sub(from)).map(|entry| (entry & mask) as u32));
    }
}

with_bit_instructions! {
    /// Whether the value that begins at the delimiter of `row` is the one of these symbols.
    fn spells(base: &Base, row: u32, symbols: &[u8]) -> bool {
        let mut row = row;
        let mut place = base.psi.place(row);
        for symbol in symbols {
            row = base.psi.next(place, row);
            place = base.psi.place(row);
            if place.symbol != *symbol {
                return false;
            }
        }
        let after = base.psi.place(base.psi.next(place, row)).symbol;
        matches!(base.alphabet.meaning(after), Meaning::Delimiter(_) | Meaning::End)
    }
}
