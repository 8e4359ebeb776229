//! Cells of lists, maps and structs below them, level by level: what one level says of the next is checked before that is looked at.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use forebay_types::{Error, Result};

use super::array::{Parts, array};
use crate::schema::{Kind, Leaf};

/// The whole of a nested column; it points into the cell's bytes.
pub(super) fn decode_nested(leaf: &Leaf, rows: usize, slots: &[Bytes]) -> Result<ArrayRef> {
    let mut levels = Levels { path: leaf.path(), slots: slots.iter() };
    let array = levels.array(leaf.data_type(), rows)?;
    if levels.slots.next().is_some() { Err(levels.corrupt(&"it has more buffers than its levels")) } else { Ok(array) }
}

/// The buffers that are left of a column.
struct Levels<'a> {
    path: &'a str,
    slots: std::slice::Iter<'a, Bytes>,
}

impl Levels<'_> {
    /// The next level, of so many values, and all that is below it.
    fn array(&mut self, data_type: &DataType, values: usize) -> Result<ArrayRef> {
        if let Some(kind) = Kind::plain(data_type) {
            return self.plain(kind, data_type, values);
        }
        let validity = self.slot()?;
        if !validity.is_empty() && validity.len() != values.div_ceil(8) {
            return Err(self.corrupt(&"the validity of a level has the wrong number of bytes"));
        }
        let validity = Some(validity).filter(|bits| !bits.is_empty()).map(Buffer::from);
        let level = ArrayData::builder(data_type.clone()).len(values).null_bit_buffer(validity);
        let level = match data_type {
            DataType::List(below) | DataType::Map(below, _) => {
                let (offsets, count) = self.offsets::<4>(values)?;
                level.add_buffer(offsets).add_child_data(self.array(below.data_type(), count)?.to_data())
            }
            DataType::LargeList(below) => {
                let (offsets, count) = self.offsets::<8>(values)?;
                level.add_buffer(offsets).add_child_data(self.array(below.data_type(), count)?.to_data())
            }
            DataType::Struct(fields) => {
                let below = fields.iter().map(|field| Ok(self.array(field.data_type(), values)?.to_data()));
                level.child_data(below.collect::<Result<_>>()?)
            }
            other => return Err(Error::internal(format!("column `{}`: no level of the type {other}", self.path))),
        };
        level.align_buffers(true).build().map(make_array).map_err(|error| self.corrupt(&error))
    }

    /// Values that have no others below them.
    fn plain(&mut self, kind: Kind, data_type: &DataType, values: usize) -> Result<ArrayRef> {
        let slots = (0..kind.slots()).map(|_| self.slot()).collect::<Result<Vec<_>>>()?;
        let bytes = slots.iter().map(Bytes::len).collect::<Vec<_>>();
        if !kind.fits(&bytes, values) {
            return Err(self.corrupt(&"a level and what is below it do not match"));
        }
        let validity = slots.first().filter(|bits| !bits.is_empty()).map(|bits| Buffer::from(bits.clone()));
        array(&Leaf::new(self.path.to_owned(), data_type)?, values, validity, Parts::plain(kind, &slots))
    }

    /// Where the values of a level begin, by offsets of `WIDTH` bytes, and how many there are below.
    fn offsets<const WIDTH: usize>(&mut self, values: usize) -> Result<(Buffer, usize)> {
        let offsets = self.slot()?;
        let bytes = values.checked_add(1).and_then(|count| count.checked_mul(WIDTH));
        if Some(offsets.len()) != bytes {
            return Err(self.corrupt(&"the offsets of a level have the wrong number of bytes"));
        }
        let last = offsets.last_chunk::<WIDTH>().map_or([0; 8], |last| {
            let mut wide = [if last[WIDTH - 1] < 0x80 { 0 } else { 0xff }; 8];
            wide[..WIDTH].copy_from_slice(last);
            wide
        });
        // What is below has bytes for so many values, or is refused.
        match usize::try_from(i64::from_le_bytes(last)) {
            Ok(count) => Ok((Buffer::from(offsets), count)),
            Err(_) => Err(self.corrupt(&"the last offset of a level can't be")),
        }
    }

    fn slot(&mut self) -> Result<Bytes> {
        let next = self.slots.next().cloned();
        next.ok_or_else(|| self.corrupt(&"it has fewer buffers than its levels"))
    }

    fn corrupt(&self, what: &dyn std::fmt::Display) -> Error {
        Error::corrupt(format!("column `{}`: {what}", self.path))
    }
}
