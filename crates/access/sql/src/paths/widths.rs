//! How much memory a value of a type takes by its type alone.

use datafusion::arrow::datatypes::{DataType, Schema};

/// Bytes that a row may take before it has any value. The engine makes nulls of all of its types while it plans, and a few bytes of a
/// file can say that a list always has 2^31 values.
const ROW_BYTES_MAX: u64 = 64 << 20;
/// What values without a fixed length are taken for.
const SOME_BYTES: u64 = 16;

/// Why rows of a schema are not read; none where nothing is wrong with them.
pub(super) fn fault(schema: &Schema) -> Option<String> {
    let mut row = 0_u64;
    for field in schema.fields() {
        row = row.saturating_add(width(field.data_type()));
        if row > ROW_BYTES_MAX {
            let name = field.name();
            return Some(format!("with '{name}' a row takes {row} bytes by its types alone, and {ROW_BYTES_MAX} are the most"));
        }
    }
    None
}

/// Bytes of a value. One of less than no bytes is not read, whatever else it is.
pub(super) fn width(kind: &DataType) -> u64 {
    let times = |count: i32| u64::try_from(count).unwrap_or(u64::MAX);
    match kind {
        DataType::FixedSizeBinary(bytes) => times(*bytes),
        DataType::FixedSizeList(item, count) => times(*count).saturating_mul(width(item.data_type())),
        DataType::Struct(fields) => fields.iter().fold(0, |sum: u64, field| sum.saturating_add(width(field.data_type()))),
        DataType::Union(fields, _) => {
            fields.iter().fold(SOME_BYTES, |sum, (_, field)| sum.saturating_add(width(field.data_type())))
        }
        DataType::RunEndEncoded(_, values) => width(values.data_type()).max(SOME_BYTES),
        _ => SOME_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{Field, UnionFields, UnionMode};

    use super::*;

    fn list(of: DataType, count: i32) -> DataType {
        DataType::FixedSizeList(Arc::new(Field::new("item", of, true)), count)
    }

    #[test]
    fn a_row_that_takes_all_memory_by_its_types_is_refused() {
        let of = |kind| fault(&Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("wide", kind, true)]));
        for right in [DataType::Utf8, list(DataType::Float32, 100_000), DataType::FixedSizeBinary(1 << 20)] {
            assert_eq!(of(right.clone()), None, "{right}");
        }
        let inner = list(DataType::Int8, 1 << 14);
        let either = UnionFields::from_fields([Field::new("a", list(inner.clone(), 1 << 14), true)]);
        for wrong in [
            list(DataType::Null, i32::MAX),
            list(inner, 1 << 14),
            DataType::FixedSizeBinary(-1),
            list(DataType::Int8, -1),
            DataType::Union(either, UnionMode::Sparse),
        ] {
            assert!(of(wrong.clone()).is_some_and(|why| why.contains("'wide'")), "{wrong}");
        }
    }
}
