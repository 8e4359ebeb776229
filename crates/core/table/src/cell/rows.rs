//! Rows to columns: a tile of rows at a time, so that their bytes are in the first cache for all columns.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use forebay_types::{Error, Result};

use super::array::{Parts, array};
use super::row::pointed_to;
use super::starts::{Checked, Starts};
use super::transpose::{FixedColumn, transpose};
use super::variable::Builder;
use crate::layout::Group;
use crate::schema::{Kind, Leaf, TableSchema};

/// The columns `wanted` (numbers in the group) of the run's rows.
pub(super) fn columns<S: Starts>(
    schema: &TableSchema,
    group: &Group,
    bytes: &[u8],
    run: S,
    wanted: &[usize],
) -> Result<Vec<ArrayRef>> {
    let layout = group.rows().expect("a cell of rows has a layout of rows");
    let rows = run.rows();
    let checked = Checked::new(bytes, run, layout.fixed_bytes);
    let run = checked.map_err(|row| Error::corrupt(format!("row {row} of a row group is not in its cell")))?;
    let fixed = wanted.iter().filter_map(|&column| match layout.places[column].kind {
        Kind::Fixed(width) => Some(FixedColumn { column, offset: layout.places[column].offset, width }),
        _ => None,
    });
    let mut validity = vec![vec![0; rows.div_ceil(8)]; wanted.len()];
    let mut values = vec![Buffer::default(); layout.places.len()];
    for (column, buffer) in transpose(&run, fixed.collect(), |tile| read_bitmaps(&run, tile, wanted, &mut validity)) {
        values[column] = buffer;
    }
    let one = |(&column, validity): (&usize, Vec<u8>)| {
        let (place, leaf) = (layout.places[column], &schema.leaves()[group.leaves()[column]]);
        let parts = match place.kind {
            Kind::Nothing => Parts::Nothing,
            Kind::Bit => Parts::Bit(bits(&run, place.offset)),
            Kind::Fixed(_) => Parts::Fixed(std::mem::take(&mut values[column])),
            _ => return variable(leaf, &run, column, place.offset),
        };
        array(leaf, rows, Some(Buffer::from_vec(validity)), parts)
    };
    wanted.iter().zip(validity).map(one).collect()
}

/// The validity of the columns, which ascend, from the rows' bitmaps: eight rows and eight columns at a time.
#[expect(clippy::needless_range_loop, reason = "a zip would not be inlined across codegen units, and this is the inner loop")]
fn read_bitmaps<S: Starts>(run: &Checked<'_, S>, tile: Range<usize>, wanted: &[usize], mut out: &mut [Vec<u8>]) {
    for columns in wanted.chunk_by(|a, b| a / 8 == b / 8) {
        let (validity, rest) = out.split_at_mut(columns.len());
        out = rest;
        for first in tile.clone().step_by(8) {
            let mut square = [0; 8];
            for at in 0..(tile.end - first).min(8) {
                square[at] = run.byte(first + at, columns[0] / 8);
            }
            let square = transpose_bits(u64::from_le_bytes(square)).to_le_bytes();
            for (at, column) in columns.iter().enumerate() {
                validity[at][first / 8] = square[column % 8];
            }
        }
    }
}

fn bits<S: Starts>(run: &Checked<'_, S>, offset: usize) -> Buffer {
    let mut out = vec![0; run.run.rows().div_ceil(8)];
    for row in 0..run.run.rows() {
        out[row / 8] |= u8::from(run.byte(row, offset) != 0) << (row % 8);
    }
    Buffer::from_vec(out)
}

fn variable<S: Starts>(leaf: &Leaf, run: &Checked<'_, S>, column: usize, offset: usize) -> Result<ArrayRef> {
    let mut out = Builder::new(leaf, run.run.rows());
    for row in 0..run.run.rows() {
        let bytes = run.row(row);
        if bytes[column / 8] >> (column % 8) & 1 == 0 {
            out.push(None)?;
            continue;
        }
        let value = pointed_to(bytes, offset).ok_or_else(|| {
            Error::corrupt(format!(
                "column `{}`: row {} of its row group points outside of the row",
                leaf.path(),
                run.run.number(row)
            ))
        })?;
        out.push(Some(value))?;
    }
    out.finish()
}

/// Turns 8x8 bits about their diagonal: bit `j` of byte `i` becomes bit `i` of byte `j` (Hacker's Delight, 7-3).
#[inline]
pub(crate) fn transpose_bits(mut square: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swapped = (square ^ (square >> shift)) & mask;
        square ^= swapped ^ (swapped << shift);
    }
    square
}

#[cfg(test)]
mod tests {
    use super::transpose_bits;

    #[test]
    fn rows_become_columns() {
        for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
            assert_eq!(transpose_bits(1 << (8 * i + j)), 1 << (8 * j + i));
        }
    }
}
