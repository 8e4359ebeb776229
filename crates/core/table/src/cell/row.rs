//! One row read where it lies, value by value, with no Arrow array made of it.

use forebay_types::{Error, Result};

use crate::layout::RowLayout;
use crate::schema::Kind;

/// A row in place: typed getters on its bytes, nothing is copied or made.
///
/// Columns are named by their number in the group, see [`crate::RowCell::column`].
#[derive(Clone, Copy)]
pub struct Row<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

/// Values that a row keeps in its fixed area.
pub trait Value: Sized + sealed::Sealed {
    /// The value in the bytes of its width.
    fn read(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {
        const WIDTH: usize;
        const BIT: bool = false;
    }
}

macro_rules! values {
    ($($kind:ty),*) => {$(
        impl sealed::Sealed for $kind {
            const WIDTH: usize = size_of::<$kind>();
        }

        impl Value for $kind {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut out = [0; size_of::<$kind>()];
                out.copy_from_slice(bytes);
                Self::from_le_bytes(out)
            }
        }
    )*};
}

values!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, f32, f64);

impl sealed::Sealed for bool {
    const WIDTH: usize = 1;
    const BIT: bool = true;
}

impl Value for bool {
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

impl<'a> Row<'a> {
    pub(super) fn new(layout: &'a RowLayout, bytes: &'a [u8]) -> Self {
        Self { layout, bytes }
    }

    /// All of the row's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the column has no value here.
    ///
    /// # Panics
    /// If the group has no such column.
    #[inline]
    pub fn is_null(&self, column: usize) -> bool {
        assert!(column < self.layout.places.len(), "the group has {} columns", self.layout.places.len());
        self.bytes[column / 8] >> (column % 8) & 1 == 0
    }

    /// A value of fixed width: that of `T` must be the column's, a boolean is a `bool`, a timestamp an `i64` and so on.
    ///
    /// # Panics
    /// If the group has no such column, or the column's values are of another width.
    #[inline]
    pub fn value<T: Value>(&self, column: usize) -> Option<T> {
        let place = self.layout.places[column];
        let fits = if T::BIT { place.kind == Kind::Bit } else { place.kind == Kind::Fixed(T::WIDTH) };
        assert!(fits, "the column's values are not of this type");
        (!self.is_null(column)).then(|| T::read(&self.bytes[place.offset..place.offset + T::WIDTH]))
    }

    /// The bytes of a value: those of a string, of a list's values (after their bitmap if they may be null), or of
    /// anything of fixed width.
    /// `Corrupt` if the row points outside of itself.
    ///
    /// # Panics
    /// If the group has no such column.
    pub fn value_bytes(&self, column: usize) -> Result<Option<&'a [u8]>> {
        let place = self.layout.places[column];
        if self.is_null(column) {
            return Ok(None);
        }
        if !place.kind.is_variable() {
            return Ok(Some(&self.bytes[place.offset..place.offset + place.kind.row_width()]));
        }
        let value = pointed_to(self.bytes, place.offset);
        value.map(Some).ok_or_else(|| Error::corrupt(format!("column {column} of a row points outside of the row")))
    }

    /// A string.
    /// `Corrupt` if the row points outside of itself, or the bytes are not UTF-8.
    pub fn text(&self, column: usize) -> Result<Option<&'a str>> {
        let text = self.value_bytes(column)?.map(std::str::from_utf8).transpose();
        text.map_err(|error| Error::corrupt(format!("column {column} of a row: {error}")))
    }
}

/// What the pointer at `at` points to in its row.
#[inline]
pub(super) fn pointed_to(row: &[u8], at: usize) -> Option<&[u8]> {
    let pointer = row.get(at..at + 8)?;
    let word = |at: usize| u32::from_le_bytes([pointer[at], pointer[at + 1], pointer[at + 2], pointer[at + 3]]) as usize;
    row.get(word(0)..word(0).checked_add(word(4))?)
}
