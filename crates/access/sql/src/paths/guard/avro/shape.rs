//! How many bytes a value of a schema takes, found value by value without making any. A pure decision.

use std::sync::Arc;

use super::varint::{take, take_bits, take_count};

/// How the bytes of a type's values are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// No bytes.
    Nothing,
    Boolean,
    Int,
    Long,
    Fixed(usize),
    /// Bytes or text.
    Bytes,
    /// One of so many symbols.
    Enum(usize),
    Array(Arc<Shape>),
    Map(Arc<Shape>),
    Record(Arc<[Shape]>),
    Union(Arc<[Shape]>),
}

type Fits = Result<(), &'static str>;

impl Shape {
    /// Whether its values take no bytes at all.
    pub(super) fn is_without_bytes(&self) -> bool {
        match self {
            Self::Nothing | Self::Fixed(0) => true,
            Self::Record(fields) => fields.iter().all(Self::is_without_bytes),
            _ => false,
        }
    }

    /// Takes a value. Of those in it that take no bytes there may be so many yet.
    pub(super) fn take(&self, bytes: &mut &[u8], without_bytes: &mut u64) -> Fits {
        match self {
            Self::Nothing => Ok(()),
            Self::Boolean => skip(bytes, 1),
            Self::Int => match take_bits(bytes) {
                Some(bits) if u32::try_from(bits).is_ok() => Ok(()),
                _ => Err("a number is none"),
            },
            Self::Long => take_bits(bytes).map(drop).ok_or("a number is none"),
            Self::Fixed(width) => skip(bytes, *width),
            Self::Bytes => {
                let length = take_count(bytes).and_then(|length| usize::try_from(length).ok());
                skip(bytes, length.ok_or("a length is none")?)
            }
            Self::Enum(symbols) => match take(bytes) {
                Some(at) if usize::try_from(at).is_ok_and(|at| at < *symbols) => Ok(()),
                _ => Err("a symbol is none of the schema's"),
            },
            Self::Array(item) => items(bytes, without_bytes, item.is_without_bytes(), |bytes, without| item.take(bytes, without)),
            Self::Map(value) => items(bytes, without_bytes, false, |bytes, without| {
                Self::Bytes.take(bytes, without)?;
                value.take(bytes, without)
            }),
            Self::Record(fields) => fields.iter().try_for_each(|field| field.take(bytes, without_bytes)),
            Self::Union(branches) => {
                let at = take(bytes).and_then(|at| usize::try_from(at).ok());
                let branch = at.and_then(|at| branches.get(at)).ok_or("a union has none of its types")?;
                branch.take(bytes, without_bytes)
            }
        }
    }
}

fn skip(bytes: &mut &[u8], length: usize) -> Fits {
    *bytes = bytes.get(length..).ok_or("a value is longer than its block")?;
    Ok(())
}

/// Takes the items of an array or a map, which come in parts.
fn items(
    bytes: &mut &[u8],
    without_bytes: &mut u64,
    is_without_bytes: bool,
    mut item: impl FnMut(&mut &[u8], &mut u64) -> Fits,
) -> Fits {
    loop {
        let count = take(bytes).ok_or("a list doesn't say how long it is")?;
        if count == 0 {
            return Ok(());
        }
        // A count below none has the part's bytes after it.
        let part = if count < 0 { Some(take_count(bytes).ok_or("a list doesn't say how long it is")?) } else { None };
        let before = bytes.len();
        let count = count.unsigned_abs();
        if is_without_bytes {
            *without_bytes = without_bytes.checked_sub(count).ok_or("too many values stand in it without any bytes")?;
        } else {
            // Each takes a byte or more, so that the bytes end a count that lies.
            (0..count).try_for_each(|_| item(bytes, without_bytes))?;
        }
        if part.is_some_and(|part| part != (before - bytes.len()) as u64) {
            return Err("a part of a list has another length than it says");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(shape: &Shape, bytes: &[u8]) -> Result<usize, &'static str> {
        let (mut left, mut without_bytes) = (bytes, 100);
        shape.take(&mut left, &mut without_bytes).map(|()| bytes.len() - left.len())
    }

    #[test]
    fn values_take_what_their_types_say() {
        let nothing = || Arc::new(Shape::Nothing);
        let long = || Arc::new(Shape::Long);
        assert_eq!(taken(&Shape::Bytes, &[4, b'a', b'b', b'c']), Ok(3));
        assert_eq!(taken(&Shape::Record([Shape::Boolean, Shape::Fixed(4), Shape::Nothing].into()), &[0; 9]), Ok(5));
        assert_eq!(taken(&Shape::Union([Shape::Nothing, Shape::Long].into()), &[2, 0x80, 1]), Ok(3));
        assert_eq!(taken(&Shape::Array(long()), &[4, 1, 2, 0]), Ok(4));
        assert_eq!(taken(&Shape::Array(long()), &[3, 4, 1, 2, 0]), Ok(5), "a part with its bytes");
        assert_eq!(taken(&Shape::Map(long()), &[2, 2, b'k', 8, 0, 9]), Ok(5));
        assert_eq!(taken(&Shape::Array(nothing()), &[20, 0]), Ok(2));
    }

    #[test]
    fn values_that_lie_are_refused() {
        let nothing = Arc::new(Shape::Nothing);
        assert!(taken(&Shape::Bytes, &[4, b'a']).is_err());
        assert!(taken(&Shape::Bytes, &[3]).is_err(), "less than no bytes");
        assert!(taken(&Shape::Int, &[0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
        assert!(taken(&Shape::Enum(2), &[4]).is_err());
        assert!(taken(&Shape::Union([Shape::Nothing, Shape::Long].into()), &[4]).is_err());
        assert!(taken(&Shape::Array(Arc::new(Shape::Long)), &[3, 6, 1, 2, 0]).is_err(), "a part of another length");
        let many = [&[0xfe; 9][..], &[1, 0]].concat();
        assert!(taken(&Shape::Array(Arc::clone(&nothing)), &many).is_err());
        assert!(taken(&Shape::Array(Arc::new(Shape::Record([Shape::Nothing].into()))), &many).is_err());
        assert!(taken(&Shape::Array(Arc::new(Shape::Long)), &many).is_err());
    }
}
