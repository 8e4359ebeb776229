//! One cell: its bytes, and the values in them.

mod array;
mod nested;
mod plain_views;
mod primitive;
mod row;
mod row_cell;
mod rows;
mod starts;
mod transpose;
mod variable;

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use forebay_types::{Error, Result};

use crate::schema::{Kind, Leaf};
use array::{Parts, array};
use nested::decode_nested;

pub use row::{Row, Value};
pub use row_cell::RowCell;
pub(crate) use rows::transpose_bits;
pub(crate) use variable::Builder;

/// A cell of one column: the buffers that Arrow has.
#[derive(Clone, Debug)]
pub(crate) struct ColumnCell {
    rows: usize,
    slots: Vec<Bytes>,
}

impl ColumnCell {
    /// The number and the lengths of the slots have been checked against the rows.
    pub fn new(rows: usize, slots: Vec<Bytes>) -> Self {
        Self { rows, slots }
    }

    fn slot(&self, index: usize) -> Buffer {
        self.slots.get(index).map(|bytes| Buffer::from(bytes.clone())).unwrap_or_default()
    }

    fn validity(&self) -> Option<Buffer> {
        self.slots.first().filter(|bytes| !bytes.is_empty()).map(|bytes| Buffer::from(bytes.clone()))
    }

    /// The whole column; it points into the cell's bytes.
    pub fn decode(&self, leaf: &Leaf) -> Result<ArrayRef> {
        if leaf.kind().is_nested() {
            return decode_nested(leaf, self.rows, &self.slots);
        }
        let parts = match leaf.kind() {
            Kind::List { wide, item } => {
                let items = self.slot(3);
                let count = self.last_offset(leaf, wide)?;
                let fits = match item.width {
                    0 => items.len() == count.div_ceil(8),
                    width => count.checked_mul(width) == Some(items.len()),
                };
                let validity = Some(self.slot(2)).filter(|bits| !bits.is_empty());
                if !fits || validity.as_ref().is_some_and(|bits| bits.len() != count.div_ceil(8)) {
                    return Err(Error::corrupt(format!("column `{}`: its lists and their values do not match", leaf.path())));
                }
                Parts::List { offsets: self.slot(1), validity, items, count }
            }
            kind => Parts::plain(kind, &self.slots),
        };
        array(leaf, self.rows, self.validity(), parts)
    }

    /// Some rows of the column, copied; nothing else is looked at.
    pub fn gather(&self, leaf: &Leaf, picked: &[u32]) -> Result<ArrayRef> {
        if picked.iter().max().is_some_and(|&row| row as usize >= self.rows) {
            return Err(Error::invalid(format!("a row beyond the {} of its row group is asked for", self.rows)));
        }
        let validity = || self.validity().map(|bits| gather_bits(&bits, picked));
        let parts = match leaf.kind() {
            Kind::Nothing => Parts::Nothing,
            Kind::Bit => Parts::Bit(gather_bits(&self.slot(1), picked)),
            Kind::Fixed(width) => Parts::Fixed(gather_fixed(&self.slots[1], width, picked)),
            Kind::Bytes { .. } | Kind::View => return self.gather_bytes(leaf, picked),
            Kind::List { .. } | Kind::Nested { .. } => {
                let indices = arrow_array::UInt32Array::from(picked.to_vec());
                let taken = arrow_select::take::take(&self.decode(leaf)?, &indices, None);
                return taken.map_err(|error| Error::corrupt(format!("column `{}`: {error}", leaf.path())));
            }
        };
        array(leaf, picked.len(), validity(), parts)
    }

    fn gather_bytes(&self, leaf: &Leaf, picked: &[u32]) -> Result<ArrayRef> {
        let mut out = Builder::new(leaf, picked.len());
        for &row in picked {
            let row = row as usize;
            let validity = &self.slots[0];
            if !validity.is_empty() && validity[row / 8] >> (row % 8) & 1 == 0 {
                out.push(None)?;
                continue;
            }
            let value = self.value(leaf.kind(), row);
            let at =
                |_| Error::corrupt(format!("column `{}`: row {row} of its row group points outside of the cell", leaf.path()));
            out.push(Some(value.ok_or(()).map_err(at)?))?;
        }
        out.finish()
    }

    /// A string's bytes, if they are where the cell says.
    fn value(&self, kind: Kind, row: usize) -> Option<&[u8]> {
        let data = &self.slots[2];
        match kind {
            Kind::Bytes { wide } => {
                let offset = |index| self.offset(wide, index).and_then(|offset| usize::try_from(offset).ok());
                data.get(offset(row)?..offset(row + 1)?)
            }
            _ => {
                let view = self.slots[1].get(row * 16..row * 16 + 16)?;
                let word = |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]) as usize;
                match word(0) {
                    length @ 0..=12 => view.get(4..4 + length),
                    length => data.get(word(12)..word(12).checked_add(length)?),
                }
            }
        }
    }

    fn offset(&self, wide: bool, index: usize) -> Option<i64> {
        let offsets = &self.slots[1];
        if wide {
            offsets.get(index * 8..index * 8 + 8)?.try_into().ok().map(i64::from_le_bytes)
        } else {
            offsets.get(index * 4..index * 4 + 4)?.try_into().ok().map(|bytes| i32::from_le_bytes(bytes).into())
        }
    }

    fn last_offset(&self, leaf: &Leaf, wide: bool) -> Result<usize> {
        let last = self.offset(wide, self.rows).and_then(|last| usize::try_from(last).ok());
        last.ok_or_else(|| Error::corrupt(format!("column `{}`: its last offset is none", leaf.path())))
    }
}

/// The values of rows, all of one width. Callers have checked that the rows are there.
fn gather_fixed(values: &[u8], width: usize, picked: &[u32]) -> Buffer {
    // Aligned for every type of Arrow, which a vector of bytes is not.
    let mut out = MutableBuffer::from_len_zeroed(picked.len() * width);
    match width {
        1 => chunks::<1>(values, picked, &mut out),
        2 => chunks::<2>(values, picked, &mut out),
        4 => chunks::<4>(values, picked, &mut out),
        8 => chunks::<8>(values, picked, &mut out),
        16 => chunks::<16>(values, picked, &mut out),
        32 => chunks::<32>(values, picked, &mut out),
        _ => {
            for (to, &row) in out.chunks_exact_mut(width).zip(picked) {
                to.copy_from_slice(&values[row as usize * width..][..width]);
            }
        }
    }
    out.into()
}

/// A plain loop: what iterators would call for each value is not inlined across codegen units.
#[allow(clippy::needless_range_loop, reason = "the inner loop")]
fn chunks<const W: usize>(values: &[u8], picked: &[u32], out: &mut [u8]) {
    let (values, _) = values.as_chunks::<W>();
    let (out, _) = out.as_chunks_mut::<W>();
    assert_eq!(out.len(), picked.len());
    for at in 0..picked.len() {
        out[at] = values[picked[at] as usize];
    }
}

#[allow(clippy::needless_range_loop, reason = "the inner loop, as above")]
fn gather_bits(bits: &[u8], picked: &[u32]) -> Buffer {
    let mut out = vec![0u8; picked.len().div_ceil(8)];
    let (whole, rest) = picked.as_chunks::<8>();
    for at in 0..whole.len() {
        let mut byte = 0;
        for bit in 0..8 {
            let row = whole[at][bit];
            byte |= (bits[row as usize / 8] >> (row % 8) & 1) << bit;
        }
        out[at] = byte;
    }
    for (bit, &row) in rest.iter().enumerate() {
        out[whole.len()] |= (bits[row as usize / 8] >> (row % 8) & 1) << bit;
    }
    Buffer::from_vec(out)
}
