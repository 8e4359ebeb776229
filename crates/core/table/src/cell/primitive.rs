//! A shortcut for numbers, times and decimals: any bits are values of theirs, so that only length and address are looked at.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, PrimitiveArray, downcast_primitive};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

/// The array of a column of numbers, times or decimals: all bits are values of it, so there is nothing to look through. None
/// for other types, and for buffers that are too short or lie at odd addresses.
pub(super) fn primitive(kind: &DataType, rows: usize, values: &Buffer, nulls: Option<&NullBuffer>) -> Option<ArrayRef> {
    macro_rules! of {
        ($type:ty, $kind:ident, $rows:ident, $values:ident, $nulls:ident) => {
            of::<$type>($kind, $rows, $values, $nulls)
        };
    }
    downcast_primitive! {
        kind => (of, kind, rows, values, nulls),
        _ => None
    }
}

fn of<T: ArrowPrimitiveType>(kind: &DataType, rows: usize, values: &Buffer, nulls: Option<&NullBuffer>) -> Option<ArrayRef> {
    let is_whole = rows.checked_mul(size_of::<T::Native>()).is_some_and(|bytes| bytes <= values.len());
    let is_aligned = values.as_ptr().cast::<T::Native>().is_aligned();
    if !is_whole || !is_aligned || nulls.is_some_and(|nulls| nulls.len() != rows) {
        return None;
    }
    let values = ScalarBuffer::<T::Native>::new(values.clone(), 0, rows);
    Some(Arc::new(PrimitiveArray::<T>::new(values, nulls.cloned()).with_data_type(kind.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, TimestampMicrosecondType};
    use arrow_schema::TimeUnit;

    #[test]
    fn types_with_parameters_keep_them() {
        let nulls = NullBuffer::from(vec![true, false]);
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+02:00".into()));
        let times = primitive(&zoned, 2, &Buffer::from_vec(vec![7i64, 0]), Some(&nulls)).unwrap();
        assert_eq!((times.data_type(), times.null_count()), (&zoned, 1));
        assert_eq!(times.as_primitive::<TimestampMicrosecondType>().value(0), 7);
        let money = DataType::Decimal128(15, 2);
        let sums = primitive(&money, 2, &Buffer::from_vec(vec![123i128, -5]), None).unwrap();
        assert_eq!((sums.data_type(), sums.as_primitive::<Decimal128Type>().value(1)), (&money, -5));
    }

    #[test]
    fn what_does_not_fit_is_left_to_others() {
        let values = Buffer::from_vec(vec![1i64, 2]);
        let of = |kind: &DataType, rows, values: &Buffer| primitive(kind, rows, values, None).is_some();
        assert!(of(&DataType::Int64, 2, &values));
        assert!(!of(&DataType::Int64, 3, &values), "too short");
        assert!(!of(&DataType::Int64, 1, &values.slice(4)), "odd");
        assert!(!of(&DataType::FixedSizeBinary(8), 2, &values) && !of(&DataType::Utf8, 2, &values));
        assert!(primitive(&DataType::Int64, 2, &values, Some(&NullBuffer::new_valid(1))).is_none());
    }
}
