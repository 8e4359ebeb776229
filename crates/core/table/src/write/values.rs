//! The bytes of a leaf's array, as rows and columns take them.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;

use crate::schema::{Item, Kind};

/// A leaf's values without their Arrow type.
pub(super) enum Values {
    Nothing,
    Bit(BooleanBuffer),
    Fixed { bytes: Buffer, width: usize },
    Bytes { starts: Starts, data: Buffer },
    View(ArrayRef),
    List { starts: Starts, items: Box<Values>, nulls: Option<NullBuffer>, item: Item },
}

/// Where values begin, by offsets of 4 or 8 bytes.
pub(super) enum Starts {
    Narrow(OffsetBuffer<i32>),
    Wide(OffsetBuffer<i64>),
}

impl Starts {
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Narrow(offsets) => offsets[row].as_usize()..offsets[row + 1].as_usize(),
            Self::Wide(offsets) => offsets[row].as_usize()..offsets[row + 1].as_usize(),
        }
    }

    pub fn span(&self) -> std::ops::Range<usize> {
        match self {
            Self::Narrow(offsets) => span(offsets),
            Self::Wide(offsets) => span(offsets),
        }
    }

    /// The offsets counted from the first one.
    pub fn rebased(&self) -> Buffer {
        match self {
            Self::Narrow(offsets) => rebased(offsets),
            Self::Wide(offsets) => rebased(offsets),
        }
    }
}

fn span<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> std::ops::Range<usize> {
    offsets[0].as_usize()..offsets[offsets.len() - 1].as_usize()
}

fn rebased<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Buffer {
    match offsets[0] {
        first if first == O::zero() => offsets.inner().inner().clone(),
        first => Buffer::from_vec(offsets.iter().map(|&offset| offset - first).collect::<Vec<O>>()),
    }
}

impl Values {
    pub fn of(array: &ArrayRef, kind: Kind) -> Self {
        match kind {
            Kind::Nothing => Self::Nothing,
            Kind::Bit => Self::Bit(array.as_boolean().values().clone()),
            Kind::Fixed(width) => {
                let data = array.to_data();
                let bytes = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
                Self::Fixed { bytes, width }
            }
            Kind::Bytes { wide } => Self::bytes(array, wide),
            Kind::View => Self::View(array.clone()),
            Kind::List { wide, item } => {
                let (starts, items) = if wide {
                    let list = array.as_list::<i64>();
                    (Starts::Wide(list.offsets().clone()), list.values())
                } else {
                    let list = array.as_list::<i32>();
                    (Starts::Narrow(list.offsets().clone()), list.values())
                };
                let kind = if item.width == 0 { Kind::Bit } else { Kind::Fixed(item.width) };
                let nulls = items.nulls().filter(|_| item.nullable).cloned();
                Self::List { starts, items: Box::new(Self::of(items, kind)), nulls, item }
            }
            Kind::Nested { .. } => unreachable!("levels are taken one by one, and no row has them"),
        }
    }

    fn bytes(array: &ArrayRef, wide: bool) -> Self {
        let text = matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8);
        let (starts, data) = match (wide, text) {
            (false, true) => parts(array.as_string::<i32>(), Starts::Narrow),
            (true, true) => parts(array.as_string::<i64>(), Starts::Wide),
            (false, false) => parts(array.as_binary::<i32>(), Starts::Narrow),
            (true, false) => parts(array.as_binary::<i64>(), Starts::Wide),
        };
        Self::Bytes { starts, data }
    }
}

fn parts<T: ByteArrayType>(array: &GenericByteArray<T>, make: fn(OffsetBuffer<T::Offset>) -> Starts) -> (Starts, Buffer) {
    (make(array.offsets().clone()), array.values().clone())
}

/// The bits of a column's validity, unless all of its values are there.
pub(super) fn validity(array: &ArrayRef) -> Option<Vec<u8>> {
    array.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| bitmap(nulls.inner()))
}

/// The bits from the first on, those after the last zero.
pub(super) fn bitmap(bits: &BooleanBuffer) -> Vec<u8> {
    let mut out = bits.sliced().as_slice()[..bits.len().div_ceil(8)].to_vec();
    if let (Some(last), used @ 1..) = (out.last_mut(), bits.len() % 8) {
        *last &= (1 << used) - 1;
    }
    out
}

/// The bytes of a view's value.
pub(super) fn view(array: &ArrayRef, row: usize) -> &[u8] {
    if let Some(text) = array.as_string_view_opt() { text.value(row).as_bytes() } else { array.as_binary_view().value(row) }
}
