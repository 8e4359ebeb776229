//! Which Arrow types a table can hold, and how the values of each are kept.

use arrow_schema::{DataType, IntervalUnit};
use forebay_types::{Error, Result};

/// Widest value of fixed width that a column may have, in bytes.
const WIDTH_MAX: i32 = 1 << 20;

/// How a leaf's values are kept; many Arrow types share a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No values at all: Arrow's null type.
    Nothing,
    /// Booleans: bits in columns, bytes in rows.
    Bit,
    /// Values of that many bytes.
    Fixed(usize),
    /// Strings or binary; `wide` offsets have 8 bytes.
    Bytes { wide: bool },
    /// Strings or binary behind Arrow's 16-byte views.
    View,
    /// Lists of fixed-width values.
    List { wide: bool, item: Item },
}

/// The values in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Bytes of a value; 0 for booleans (bits in columns, bytes in rows).
    pub width: usize,
    pub nullable: bool,
}

impl Item {
    /// Bytes of a value in a row.
    pub fn row_width(self) -> usize {
        self.width.max(1)
    }
}

impl Kind {
    /// Whether a row keeps values of this kind behind a pointer.
    pub fn is_variable(self) -> bool {
        matches!(self, Self::Bytes { .. } | Self::View | Self::List { .. })
    }

    /// Bytes in the fixed area of a row: the value, or 4 of offset and 4 of length.
    pub fn row_width(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bit => 1,
            Self::Fixed(width) => width,
            _ => 8,
        }
    }
}

/// A column after flattening.
#[derive(Clone, Debug)]
pub struct Leaf {
    path: String,
    data_type: DataType,
    kind: Kind,
}

impl Leaf {
    pub(crate) fn new(path: String, data_type: &DataType) -> Result<Self> {
        let kind = kind(&path, data_type)?;
        Ok(Self { path, data_type: data_type.clone(), kind })
    }

    /// The names from the top down, joined by dots.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The Arrow type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

fn kind(path: &str, data_type: &DataType) -> Result<Kind> {
    use DataType as T;
    let list = |wide, item: &DataType, nullable| {
        let width = match kind(path, item)? {
            Kind::Fixed(width) => width,
            Kind::Bit => 0,
            _ => return Err(unsupported(path, data_type)),
        };
        Ok(Kind::List { wide, item: Item { width, nullable } })
    };
    Ok(match data_type {
        T::Null => Kind::Nothing,
        T::Boolean => Kind::Bit,
        T::FixedSizeBinary(width) if (1..=WIDTH_MAX).contains(width) => Kind::Fixed(*width as usize),
        T::Interval(IntervalUnit::DayTime) => Kind::Fixed(8),
        T::Interval(IntervalUnit::MonthDayNano) => Kind::Fixed(16),
        T::Utf8 | T::Binary => Kind::Bytes { wide: false },
        T::LargeUtf8 | T::LargeBinary => Kind::Bytes { wide: true },
        T::Utf8View | T::BinaryView => Kind::View,
        T::List(item) => list(false, item.data_type(), item.is_nullable())?,
        T::LargeList(item) => list(true, item.data_type(), item.is_nullable())?,
        other => Kind::Fixed(other.primitive_width().ok_or_else(|| unsupported(path, other))?),
    })
}

fn unsupported(path: &str, data_type: &DataType) -> Error {
    Error::invalid(format!(
        "column `{path}`: a table can't hold the type {data_type}; cast it or leave it out (lists are of fixed-width values only)"
    ))
}
