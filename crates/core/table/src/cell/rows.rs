//! Rows to columns: a tile of rows at a time, so that their bytes are in the first cache for all columns.

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use forebay_types::{Error, Result};

use super::array::{Parts, array};
use super::bits::transpose_bits;
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
    let mut fixed = transpose(&run, fixed.collect());
    let mut bitmaps = bitmaps(&run, wanted);
    let leaf = |column: usize| &schema.leaves()[group.leaves()[column]];
    let one = |&column: &usize| {
        let place = layout.places[column];
        let parts = match place.kind {
            Kind::Nothing => Parts::Nothing,
            Kind::Bit => Parts::Bit(bits(&run, place.offset)),
            Kind::Fixed(_) => {
                let at = fixed.iter().position(|(of, _)| *of == column).expect("each fixed column is transposed");
                Parts::Fixed(fixed.swap_remove(at).1)
            }
            _ => return variable(leaf(column), &run, column, place.offset),
        };
        let at = bitmaps.iter().position(|(of, _)| *of == column).expect("each column has a bitmap");
        array(leaf(column), rows, Some(Buffer::from_vec(bitmaps.swap_remove(at).1)), parts)
    };
    wanted.iter().map(one).collect()
}

/// The validity of columns from the rows' bitmaps, eight rows and eight columns at a time.
fn bitmaps<S: Starts>(run: &Checked<'_, S>, wanted: &[usize]) -> Vec<(usize, Vec<u8>)> {
    let rows = run.run().rows();
    let mut out = wanted.iter().map(|&column| (column, vec![0; rows.div_ceil(8)])).collect::<Vec<_>>();
    out.sort_by_key(|(column, _)| *column);
    for columns in out.chunk_by_mut(|(a, _), (b, _)| a / 8 == b / 8) {
        let byte = columns[0].0 / 8;
        for first in (0..rows).step_by(8) {
            let mut square = [0; 8];
            for (bits, row) in square.iter_mut().zip(first..rows) {
                *bits = run.byte(row, byte);
            }
            let square = transpose_bits(u64::from_le_bytes(square)).to_le_bytes();
            for (column, validity) in columns.iter_mut() {
                validity[first / 8] = square[*column % 8];
            }
        }
    }
    out
}

fn bits<S: Starts>(run: &Checked<'_, S>, offset: usize) -> Buffer {
    let mut out = vec![0; run.run().rows().div_ceil(8)];
    for row in 0..run.run().rows() {
        out[row / 8] |= u8::from(run.byte(row, offset) != 0) << (row % 8);
    }
    Buffer::from_vec(out)
}

fn variable<S: Starts>(leaf: &Leaf, run: &Checked<'_, S>, column: usize, offset: usize) -> Result<ArrayRef> {
    let mut out = Builder::new(leaf, run.run().rows());
    for row in 0..run.run().rows() {
        let bytes = run.row(row);
        if bytes[column / 8] >> (column % 8) & 1 == 0 {
            out.push(None)?;
            continue;
        }
        let value = pointed_to(bytes, offset).ok_or_else(|| {
            Error::corrupt(format!(
                "column `{}`: row {} of its row group points outside of the row",
                leaf.path(),
                run.run().number(row)
            ))
        })?;
        out.push(Some(value))?;
    }
    out.finish()
}
