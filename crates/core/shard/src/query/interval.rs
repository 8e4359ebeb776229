//! From patterns to rows: backward search over psi.

use std::ops::Range;

use crate::base::Base;
use crate::model::alphabet::END;

/// The rows whose suffixes begin with `pattern` (symbols).
pub(crate) fn prefix(base: &Base, pattern: &[u8]) -> Range<u32> {
    let Some((last, before)) = pattern.split_last() else { return 0..0 };
    let column = base.psi.column(*last);
    backward(base, before, column.start..column.end())
}

/// Narrows `rows` by the symbols of `pattern` before them, last first.
fn backward(base: &Base, pattern: &[u8], mut rows: Range<u32>) -> Range<u32> {
    for symbol in pattern.iter().rev() {
        if rows.is_empty() {
            return 0..0;
        }
        let column = base.psi.column(*symbol);
        rows = base.psi.rank_range(column, rows);
    }
    rows
}

/// The first row at or above `pattern`, whether or not it occurs.
pub(crate) fn lower(base: &Base, pattern: &[u8]) -> u32 {
    let Some((last, before)) = pattern.split_last() else { return 0 };
    let start = base.psi.column(*last).start;
    before.iter().rev().fold(start, |row, symbol| base.psi.rank(base.psi.column(*symbol), row))
}

/// The first row above all that begins with `pattern`, whether or not it occurs.
pub(crate) fn upper(base: &Base, pattern: &[u8]) -> u32 {
    let Some((last, before)) = pattern.split_last() else { return 0 };
    let end = base.psi.column(*last).end();
    before.iter().rev().fold(end, |row, symbol| base.psi.rank(base.psi.column(*symbol), row))
}

/// The rows of values of `attribute` that are exactly `value` (symbols).
pub(crate) fn equal(base: &Base, attribute: usize, value: &[u8]) -> Range<u32> {
    let mut pattern = Vec::with_capacity(value.len() + 1);
    pattern.push(base.alphabet.delimiter(attribute));
    pattern.extend_from_slice(value);
    // A value ends at the next attribute; the last one at the next record, or at the end of the text, which is below.
    let ends = if attribute + 1 < base.schema.attributes.len() {
        let column = base.psi.column(base.alphabet.delimiter(attribute + 1));
        column.start..column.end()
    } else {
        base.psi.column(END).start..base.psi.column(base.alphabet.delimiter(0)).end()
    };
    backward(base, &pattern, ends)
}
