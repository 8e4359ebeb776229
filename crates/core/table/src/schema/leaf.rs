//! Which Arrow types a table can hold, and how the values of each are kept.

use arrow_schema::{DataType, Field, IntervalUnit};
use forebay_types::{Error, Result};

/// Deepest nesting of structs, lists and maps.
pub(super) const DEPTH_MAX: usize = 32;
/// Buffers that a column of lists and maps may have over all of its levels.
const BUFFERS_MAX: usize = 4096;
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
    /// Lists of anything else, and maps: so many buffers, level by level. They are in no rows.
    Nested { buffers: usize },
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
    /// The kind of a type that has no other types below it; none for the others, and for what a table can't hold.
    pub fn plain(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Null => Self::Nothing,
            T::Boolean => Self::Bit,
            T::FixedSizeBinary(width) if (1..=WIDTH_MAX).contains(width) => Self::Fixed(*width as usize),
            T::Interval(IntervalUnit::DayTime) => Self::Fixed(8),
            T::Interval(IntervalUnit::MonthDayNano) => Self::Fixed(16),
            T::Utf8 | T::Binary => Self::Bytes { wide: false },
            T::LargeUtf8 | T::LargeBinary => Self::Bytes { wide: true },
            T::Utf8View | T::BinaryView => Self::View,
            other => Self::Fixed(other.primitive_width()?),
        })
    }

    /// The same for what lies below lists, maps and structs of a schema that was checked.
    pub fn of_plain(data_type: &DataType) -> Self {
        Self::plain(data_type).expect("a schema with other types below was refused")
    }

    /// Buffers of a column.
    pub fn slots(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bit | Self::Fixed(_) => 2,
            Self::Bytes { .. } | Self::View => 3,
            Self::List { .. } => 4,
            Self::Nested { buffers } => buffers,
        }
    }

    /// Whether a column's buffers, which are as many as its slots, have the lengths that so many values need. What offsets say is
    /// looked at when they are there.
    pub fn fits(self, bytes: &[usize], values: usize) -> bool {
        let bitmap = |bytes: usize| bytes == 0 || bytes == values.div_ceil(8);
        let each = |width: usize| values.checked_mul(width);
        match self {
            Self::Nothing => true,
            Self::Bit => bitmap(bytes[0]) && bytes[1] == values.div_ceil(8),
            Self::Fixed(width) => bitmap(bytes[0]) && Some(bytes[1]) == each(width),
            Self::Bytes { wide } | Self::List { wide, .. } => {
                let width = if wide { 8 } else { 4 };
                bitmap(bytes[0]) && Some(bytes[1]) == each(width).and_then(|offsets| offsets.checked_add(width))
            }
            Self::View => bitmap(bytes[0]) && Some(bytes[1]) == each(16),
            Self::Nested { .. } => bitmap(bytes[0]),
        }
    }

    /// Whether its columns stand alone: rows have no place for their values.
    pub fn is_nested(self) -> bool {
        matches!(self, Self::Nested { .. })
    }

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
    if let Some(kind) = Kind::plain(data_type) {
        return Ok(kind);
    }
    let list = |wide, item: &Field| {
        let width = match Kind::plain(item.data_type())? {
            Kind::Fixed(width) => width,
            Kind::Bit => 0,
            _ => return None,
        };
        Some(Kind::List { wide, item: Item { width, nullable: item.is_nullable() } })
    };
    let of_fixed = match data_type {
        T::List(item) => list(false, item),
        T::LargeList(item) => list(true, item),
        _ => None,
    };
    match of_fixed {
        Some(kind) => Ok(kind),
        None => match buffers(path, data_type, path.split('.').count())? {
            buffers @ ..=BUFFERS_MAX => Ok(Kind::Nested { buffers }),
            buffers => Err(Error::invalid(format!(
                "column `{path}`: its levels have {buffers} buffers, a table's column {BUFFERS_MAX} at most; leave some of it out"
            ))),
        },
    }
}

/// Buffers of a type's levels: of lists, maps and structs below them the validity, of what has offsets these, and all that is below.
/// `depth` counts the structs above as well: what is written must not be too deep for who reads the schema.
fn buffers(path: &str, data_type: &DataType, depth: usize) -> Result<usize> {
    use DataType as T;
    if depth > DEPTH_MAX {
        return Err(Error::invalid(format!("column `{path}`: lists, maps and structs are nested deeper than {DEPTH_MAX}")));
    }
    let below = |field: &Field| buffers(path, field.data_type(), depth + 1);
    match data_type {
        T::List(item) | T::LargeList(item) if has_bytes(item.data_type()) => Ok(2 + below(item)?),
        T::Map(entries, _) if are_entries(entries) && has_bytes(entries.data_type()) => Ok(2 + below(entries)?),
        T::Struct(fields) => fields.iter().try_fold(1, |sum, field| Ok(sum + below(field)?)),
        other => Kind::plain(other).map(Kind::slots).ok_or_else(|| unsupported(path, other)),
    }
}

/// Whether values of a type have bytes, so that an offset alone can't claim any number of them.
fn has_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => false,
        DataType::Struct(fields) => fields.iter().any(|field| has_bytes(field.data_type())),
        _ => true,
    }
}

/// Whether a map's entries are as Arrow wants them: a key and a value, of which the first is always there.
fn are_entries(entries: &Field) -> bool {
    match entries.data_type() {
        DataType::Struct(fields) => !entries.is_nullable() && fields.len() == 2 && !fields[0].is_nullable(),
        _ => false,
    }
}

fn unsupported(path: &str, data_type: &DataType) -> Error {
    Error::invalid(format!("column `{path}`: a table can't hold the type {data_type}; cast it or leave it out"))
}
