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
        // A value ends at the next attribute; the last one at the next record, or at the end of the text, which is below.
        let ends = if attribute + 1 < self.schema.attributes.len() {
            let column = self.psi.column(self.alphabet.delimiter(attribute + 1));
            column.start..column.end()
        } else {
            self.psi.column(END).start..self.psi.column(self.alphabet.delimiter(0)).end()
        };
        backward(self, &pattern, ends)
    }
}

/// The first row of the attribute's column that is null, or the column's end.
pub(crate) fn nulls(base: &impl Suffixes, attribute: usize) -> u32 {
    match base.alphabet().null() {
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
