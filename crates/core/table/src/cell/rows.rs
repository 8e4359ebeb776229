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
    let mut values = vec![Buffer::default(); layout.places.len()];
    for (column, buffer) in transpose(&run, fixed.collect()) {
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
    wanted.iter().zip(bitmaps(&run, wanted)).map(one).collect()
}

/// The validity of the columns, which ascend, from the rows' bitmaps: eight rows and eight columns at a time.
fn bitmaps<S: Starts>(run: &Checked<'_, S>, wanted: &[usize]) -> Vec<Vec<u8>> {
    let rows = run.run().rows();
    let mut out = vec![vec![0; rows.div_ceil(8)]; wanted.len()];
    let mut done = 0;
    for columns in wanted.chunk_by(|a, b| a / 8 == b / 8) {
        let validity = &mut out[done..done + columns.len()];
        done += columns.len();
        for first in (0..rows).step_by(8) {
            let mut square = [0; 8];
            for (bits, row) in square.iter_mut().zip(first..rows) {
                *bits = run.byte(row, columns[0] / 8);
            }
            let square = transpose_bits(u64::from_le_bytes(square)).to_le_bytes();
            for (column, validity) in columns.iter().zip(validity.iter_mut()) {
                validity[first / 8] = square[column % 8];
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
