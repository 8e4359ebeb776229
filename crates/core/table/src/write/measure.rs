//! A column's nulls and bounds in one row group.

use arrow_arith::aggregate as agg;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowNumericType, ArrowPrimitiveType};
use arrow_buffer::ToByteSlice;
use arrow_schema::{DataType, TimeUnit};

use super::values::validity;
use crate::metadata::{BOUND_BYTES_MAX, Bound, LeafStatistics};

pub(super) fn statistics(array: &ArrayRef) -> LeafStatistics {
    let (min, max) = bounds(array);
    LeafStatistics { nulls: array.logical_null_count(), min, max }
}

type Bounds = (Option<Bound>, Option<Bound>);

fn bounds(array: &ArrayRef) -> Bounds {
    use DataType as T;
    match array.data_type() {
        T::Boolean => {
            let bits = array.as_boolean();
            exact(agg::min_boolean(bits).map(|bit| vec![bit.into()]), agg::max_boolean(bits).map(|bit| vec![bit.into()]))
        }
        T::Int8 => numbers::<Int8Type>(array),
        T::Int16 => numbers::<Int16Type>(array),
        T::Int32 => numbers::<Int32Type>(array),
        T::Int64 => numbers::<Int64Type>(array),
        T::UInt8 => numbers::<UInt8Type>(array),
        T::UInt16 => numbers::<UInt16Type>(array),
        T::UInt32 => numbers::<UInt32Type>(array),
        T::UInt64 => numbers::<UInt64Type>(array),
        T::Float16 => floats::<Float16Type>(array),
        T::Float32 => floats::<Float32Type>(array),
        T::Float64 => floats::<Float64Type>(array),
        T::Date32 => numbers::<Date32Type>(array),
        T::Date64 => numbers::<Date64Type>(array),
        T::Time32(TimeUnit::Second) => numbers::<Time32SecondType>(array),
        T::Time32(_) => numbers::<Time32MillisecondType>(array),
        T::Time64(TimeUnit::Microsecond) => numbers::<Time64MicrosecondType>(array),
        T::Time64(_) => numbers::<Time64NanosecondType>(array),
        T::Timestamp(TimeUnit::Second, _) => numbers::<TimestampSecondType>(array),
        T::Timestamp(TimeUnit::Millisecond, _) => numbers::<TimestampMillisecondType>(array),
        T::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType>(array),
        T::Timestamp(TimeUnit::Nanosecond, _) => numbers::<TimestampNanosecondType>(array),
        T::Duration(TimeUnit::Second) => numbers::<DurationSecondType>(array),
        T::Duration(TimeUnit::Millisecond) => numbers::<DurationMillisecondType>(array),
        T::Duration(TimeUnit::Microsecond) => numbers::<DurationMicrosecondType>(array),
        T::Duration(TimeUnit::Nanosecond) => numbers::<DurationNanosecondType>(array),
        T::Decimal32(..) => numbers::<Decimal32Type>(array),
        T::Decimal64(..) => numbers::<Decimal64Type>(array),
        T::Decimal128(..) => numbers::<Decimal128Type>(array),
        T::Decimal256(..) => numbers::<Decimal256Type>(array),
        T::Utf8 => text(agg::min_string(array.as_string::<i32>()), agg::max_string(array.as_string::<i32>())),
        T::LargeUtf8 => text(agg::min_string(array.as_string::<i64>()), agg::max_string(array.as_string::<i64>())),
        T::Utf8View => text(agg::min_string_view(array.as_string_view()), agg::max_string_view(array.as_string_view())),
        T::Binary => binary(agg::min_binary(array.as_binary::<i32>()), agg::max_binary(array.as_binary::<i32>())),
        T::LargeBinary => binary(agg::min_binary(array.as_binary::<i64>()), agg::max_binary(array.as_binary::<i64>())),
        T::BinaryView => binary(agg::min_binary_view(array.as_binary_view()), agg::max_binary_view(array.as_binary_view())),
        _ => (None, None),
    }
}

fn exact(min: Option<Vec<u8>>, max: Option<Vec<u8>>) -> Bounds {
    let bound = |bytes| Bound { bytes, exact: true };
    (min.map(bound), max.map(bound))
}

/// The least and the greatest value; nothing if there is none, or if one is not a number.
fn extremes<P: ArrowPrimitiveType>(array: &ArrayRef) -> Option<(P::Native, P::Native)> {
    let values = array.as_primitive::<P>().values();
    let validity = validity(array);
    let first = *values.get(array.nulls().map_or(Some(0), |nulls| nulls.valid_indices().next())?)?;
    let is_valid = |row: usize| validity.as_ref().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
    // Eight lanes and no branches, so that the compiler keeps them in vectors; what is null counts as the first value.
    let (mut least, mut most, mut odd) = ([first; 8], [first; 8], false);
    let (blocks, rest) = values.as_chunks::<8>();
    for at in 0..blocks.len() {
        let byte = validity.as_ref().map_or(0xff, |bits| bits[at]);
        for lane in 0..8 {
            let value = if byte >> lane & 1 == 1 { blocks[at][lane] } else { first };
            least[lane] = if value < least[lane] { value } else { least[lane] };
            most[lane] = if value > most[lane] { value } else { most[lane] };
            odd |= !is_number(value);
        }
    }
    let valid = rest.iter().enumerate().filter(|(at, _)| is_valid(blocks.len() * 8 + at)).map(|(_, value)| value);
    let (mut min, mut max) = (first, first);
    for &value in least.iter().chain(&most).chain(valid) {
        min = if value < min { value } else { min };
        max = if value > max { value } else { max };
        odd |= !is_number(value);
    }
    (!odd).then_some((min, max))
}

/// What is not a number is not equal to itself.
#[expect(clippy::eq_op, reason = "the test for it")]
fn is_number<T: PartialEq + Copy>(value: T) -> bool {
    value == value
}

fn numbers<P: ArrowPrimitiveType>(array: &ArrayRef) -> Bounds {
    match extremes::<P>(array) {
        Some((min, max)) => exact(Some(min.to_byte_slice().to_vec()), Some(max.to_byte_slice().to_vec())),
        None => (None, None),
    }
}

/// Bounds that hold whatever an engine thinks of zeros' signs.
fn floats<P: ArrowNumericType>(array: &ArrayRef) -> Bounds {
    let Some((min, max)) = extremes::<P>(array) else { return (None, None) };
    let zero = P::Native::ZERO;
    let min = if min.is_zero() { zero.neg_wrapping() } else { min };
    let max = if max.is_zero() { zero } else { max };
    exact(Some(min.to_byte_slice().to_vec()), Some(max.to_byte_slice().to_vec()))
}

fn text(min: Option<&str>, max: Option<&str>) -> Bounds {
    let min = min.map(|min| bound(min.as_bytes(), min.floor_char_boundary(BOUND_BYTES_MAX)));
    let max = max.and_then(|max| {
        if max.len() <= BOUND_BYTES_MAX {
            return Some(bound(max.as_bytes(), max.len()));
        }
        // The shortest way up: the last character that has a next one, raised.
        let mut prefix = max[..max.floor_char_boundary(BOUND_BYTES_MAX - 4)].to_owned();
        while let Some(last) = prefix.pop() {
            if let Some(next) = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32) {
                prefix.push(next);
                return Some(Bound { bytes: prefix.into_bytes(), exact: false });
            }
        }
        None
    });
    (min, max)
}

fn binary(min: Option<&[u8]>, max: Option<&[u8]>) -> Bounds {
    let min = min.map(|min| bound(min, min.len().min(BOUND_BYTES_MAX)));
    let max = max.and_then(|max| {
        if max.len() <= BOUND_BYTES_MAX {
            return Some(bound(max, max.len()));
        }
        let mut prefix = max[..BOUND_BYTES_MAX].to_vec();
        while let Some(last) = prefix.pop() {
            if let Some(next) = last.checked_add(1) {
                prefix.push(next);
                return Some(Bound { bytes: prefix, exact: false });
            }
        }
        None
    });
    (min, max)
}

/// The value's first bytes: no value that has more of them is below.
fn bound(value: &[u8], bytes: usize) -> Bound {
    assert!(bytes <= BOUND_BYTES_MAX, "a bound of {bytes} bytes");
    Bound { bytes: value[..bytes].to_vec(), exact: bytes == value.len() }
}
