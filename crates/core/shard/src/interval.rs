//! From patterns to rows: suffixes in order, whatever keeps them.

use std::ops::Range;

use crate::base::Base;
use crate::bits::prefetch::with_bit_instructions;
use crate::model::alphabet::{Alphabet, END};
use crate::model::schema::Schema;
use crate::psi::Column;

/// The suffixes of a text of records, in order. Rows are their ranks; those of one first symbol are a column.
pub(crate) trait Suffixes {
    /// What the records look like.
    fn schema(&self) -> &Schema;

    /// What the symbols mean.
    fn alphabet(&self) -> &Alphabet;

    /// The rows whose suffixes begin with a symbol.
    fn column(&self, symbol: u8) -> Column;

    /// The rows whose suffixes begin with `pattern` (symbols).
    fn prefix(&self, pattern: &[u8]) -> Range<u32>;

    /// The first row at or above `pattern`, whether or not it occurs.
    fn lower(&self, pattern: &[u8]) -> u32;

    /// The first row above all that begins with `pattern`, whether or not it occurs.
    fn upper(&self, pattern: &[u8]) -> u32;

    /// The rows of values of `attribute` that are exactly `value` (symbols).
    fn equal(&self, attribute: usize, value: &[u8]) -> Range<u32>;

    /// The rows where the last symbols of values of `attribute` are `end`, which has some: one for each such value.
    fn ending(&self, attribute: usize, end: &[u8]) -> Range<u32>;
}

impl Suffixes for Base {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    fn column(&self, symbol: u8) -> Column {
        self.psi.column(symbol)
    }

    fn prefix(&self, pattern: &[u8]) -> Range<u32> {
        let Some((last, before)) = pattern.split_last() else { return 0..0 };
        let column = self.psi.column(*last);
        backward(self, before, column.start..column.end())
    }

    fn lower(&self, pattern: &[u8]) -> u32 {
        let Some((last, before)) = pattern.split_last() else { return 0 };
        let start = self.psi.column(*last).start;
        before.iter().rev().fold(start, |row, symbol| self.psi.rank(self.psi.column(*symbol), row))
    }

    fn upper(&self, pattern: &[u8]) -> u32 {
        let Some((last, before)) = pattern.split_last() else { return 0 };
        let end = self.psi.column(*last).end();
        before.iter().rev().fold(end, |row, symbol| self.psi.rank(self.psi.column(*symbol), row))
    }

    fn equal(&self, attribute: usize, value: &[u8]) -> Range<u32> {
        let mut pattern = Vec::with_capacity(value.len() + 1);
        pattern.push(self.alphabet.delimiter(attribute));
        pattern.extend_from_slice(value);
        backward(self, &pattern, behind(self, attribute))
    }

    fn ending(&self, attribute: usize, end: &[u8]) -> Range<u32> {
        debug_assert!(!end.is_empty(), "all values end with nothing");
        backward(self, end, behind(self, attribute))
    }
}

/// The rows of what stands behind a value: the next attribute; behind the last one the next record, or the end of the text,
/// which is below.
fn behind(base: &Base, attribute: usize) -> Range<u32> {
    if attribute + 1 < base.schema.attributes.len() {
        let column = base.psi.column(base.alphabet.delimiter(attribute + 1));
        return column.start..column.end();
    }
    base.psi.column(END).start..base.psi.column(base.alphabet.delimiter(0)).end()
}

/// The rows that begin with these bytes, in whatever attribute.
pub(crate) fn rows_with(base: &impl Suffixes, bytes: &[u8]) -> Range<u32> {
    let mut symbols = Vec::with_capacity(bytes.len());
    if base.alphabet().encode(bytes, &mut symbols) { base.prefix(&symbols) } else { 0..0 }
}

/// The rows where the last bytes of values of `attribute` are these.
pub(crate) fn rows_ending(base: &impl Suffixes, attribute: usize, bytes: &[u8]) -> Range<u32> {
    let mut symbols = Vec::with_capacity(bytes.len());
    if base.alphabet().encode(bytes, &mut symbols) { base.ending(attribute, &symbols) } else { 0..0 }
}

/// The first row of the attribute's column that is null, or the column's end.
pub(crate) fn nulls(base: &impl Suffixes, attribute: usize) -> u32 {
    match base.alphabet().null {
        Some(null) => base.lower(&[base.alphabet().delimiter(attribute), null]),
        None => base.column(base.alphabet().delimiter(attribute)).end(),
    }
}

with_bit_instructions! {
    /// Narrows `rows` by the symbols of `pattern` before them, last first.
    fn backward(base: &Base, pattern: &[u8], rows: Range<u32>) -> Range<u32> {
        let mut rows = rows;
        for symbol in pattern.iter().rev() {
            if rows.is_empty() {
                return 0..0;
            }
            let column = base.psi.column(*symbol);
            rows = base.psi.rank_range(column, rows);
        }
        rows
    }
}
