//! A column built value by value from rows, where no loop of fixed width can do it.

use arrow_array::{ArrayRef, new_null_array};
use arrow_buffer::Buffer;
use forebay_types::{Error, Result};

use super::array::{Parts, array};
use crate::schema::{Item, Kind, Leaf};

/// Makes a column of any kind from its values' bytes, as rows keep them, one by one.
pub(crate) struct Builder<'a> {
    leaf: &'a Leaf,
    rows: usize,
    validity: Vec<u8>,
    /// Where values end, from 0 on; the views where the kind has those.
    ends: Vec<usize>,
    views: Vec<u128>,
    data: Vec<u8>,
    items: Bits,
    item_validity: Bits,
}

/// Bits that are added to one by one.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes[self.count / 8] |= u8::from(bit) << (self.count % 8);
        self.count += 1;
    }
}

impl<'a> Builder<'a> {
    /// A column of about that many rows.
    pub fn new(leaf: &'a Leaf, rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Self {
            leaf,
            rows: 0,
            validity: Vec::with_capacity(rows.div_ceil(8)),
            ends,
            views: Vec::new(),
            data: Vec::new(),
            items: Bits::default(),
            item_validity: Bits::default(),
        }
    }

    /// Adds a value; a fixed-width one has the kind's width (a boolean one byte). Of nested columns only nulls are added: what stands for
    /// the bounds that they do not have.
    pub fn push(&mut self, value: Option<&[u8]>) -> Result<()> {
        if self.rows.is_multiple_of(8) {
            self.validity.push(0);
        }
        self.validity[self.rows / 8] |= u8::from(value.is_some()) << (self.rows % 8);
        self.rows += 1;
        let value = value.unwrap_or_default();
        match self.leaf.kind() {
            Kind::Nothing => {}
            Kind::Bit => self.items.push(value.first().is_some_and(|byte| *byte != 0)),
            Kind::Fixed(width) => {
                let end = self.data.len() + width;
                self.data.extend_from_slice(&value[..value.len().min(width)]);
                self.data.resize(end, 0);
            }
            Kind::Bytes { .. } => {
                self.data.extend_from_slice(value);
                self.ends.push(self.data.len());
            }
            Kind::View => {
                let at = u32::try_from(self.data.len()).map_err(|_| self.too_large())?;
                self.views.push(arrow_array::builder::make_view(value, 0, at));
                if value.len() > 12 {
                    self.data.extend_from_slice(value);
                }
            }
            Kind::List { item, .. } => self.push_list(value, item)?,
            Kind::Nested { .. } => debug_assert!(value.is_empty(), "no row has them, and they have no bounds"),
        }
        Ok(())
    }

    /// A list: the bitmap of its values if they may be null, then the values.
    fn push_list(&mut self, value: &[u8], item: Item) -> Result<()> {
        let width = item.row_width();
        let count = if item.nullable { 8 * value.len() / (8 * width + 1) } else { value.len() / width };
        let bitmap = if item.nullable { count.div_ceil(8) } else { 0 };
        if bitmap + count * width != value.len() {
            let path = self.leaf.path();
            return Err(Error::corrupt(format!("column `{path}`: a list of {} bytes is no whole number of values", value.len())));
        }
        let (validity, values) = value.split_at(bitmap);
        if item.nullable {
            (0..count).for_each(|at| self.item_validity.push(validity[at / 8] >> (at % 8) & 1 == 1));
        }
        if item.width == 0 {
            values.iter().for_each(|byte| self.items.push(*byte != 0));
        } else {
            self.data.extend_from_slice(values);
        }
        let last = self.ends.last().copied().unwrap_or_default();
        self.ends.push(last + count);
        Ok(())
    }

    fn too_large(&self) -> Error {
        Error::invalid(format!(
            "column `{}`: more bytes than its type's offsets can count; read fewer rows at once",
            self.leaf.path()
        ))
    }

    fn offsets(&self, wide: bool) -> Result<Buffer> {
        if wide {
            return Ok(Buffer::from_vec(self.ends.iter().map(|&end| end as i64).collect::<Vec<_>>()));
        }
        match i32::try_from(self.ends.last().copied().unwrap_or_default()) {
            Ok(_) => Ok(Buffer::from_vec(self.ends.iter().map(|&end| end as i32).collect::<Vec<_>>())),
            Err(_) => Err(self.too_large()),
        }
    }

    /// The column.
    pub fn finish(mut self) -> Result<ArrayRef> {
        let is_whole = match self.leaf.kind() {
            Kind::Nothing | Kind::Nested { .. } => true,
            Kind::Bit => self.items.count == self.rows,
            Kind::Fixed(width) => self.data.len() == self.rows * width,
            Kind::Bytes { .. } | Kind::List { .. } => self.ends.len() == self.rows + 1,
            Kind::View => self.views.len() == self.rows,
        };
        assert!(is_whole, "column `{}` has a value for each of {} rows", self.leaf.path(), self.rows);
        let validity = Some(Buffer::from_vec(std::mem::take(&mut self.validity)));
        // Copied into memory that is aligned for every type.
        let data = Buffer::from_slice_ref(&self.data);
        let parts = match self.leaf.kind() {
            Kind::Nothing => Parts::Nothing,
            Kind::Bit => Parts::Bit(Buffer::from_vec(std::mem::take(&mut self.items.bytes))),
            Kind::Fixed(_) => Parts::Fixed(data),
            Kind::Bytes { wide } => Parts::Bytes { offsets: self.offsets(wide)?, data },
            Kind::View => Parts::View { views: Buffer::from_vec(std::mem::take(&mut self.views)), data: Some(data) },
            Kind::List { wide, item } => {
                let offsets = self.offsets(wide)?;
                let count = self.ends.last().copied().unwrap_or_default();
                let validity = item.nullable.then(|| Buffer::from_vec(std::mem::take(&mut self.item_validity.bytes)));
                let items = if item.width == 0 { Buffer::from_vec(std::mem::take(&mut self.items.bytes)) } else { data };
                Parts::List { offsets, validity, items, count }
            }
            Kind::Nested { .. } => return Ok(new_null_array(self.leaf.data_type(), self.rows)),
        };
        array(self.leaf, self.rows, validity, parts)
    }
}
