//! Columns and values of a predicate as a worker knows them.

use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, InListExpr, Literal};
use forebay_types::RowTest;

/// Longer lists are left to the engine: those of joins have their bounds beside them.
pub(super) const VALUES_MAX: usize = 64;

/// A list of values, of which one is to be there, or none.
pub(super) fn one_of(list: &InListExpr, stream: &Schema) -> Option<Vec<RowTest>> {
    let (column, data_type) = column(list.expr(), stream)?;
    if list.len() > VALUES_MAX {
        return None;
    }
    let mut values = Vec::with_capacity(list.len());
    for literal in list.list() {
        let value = literal.downcast_ref::<Literal>()?.value();
        match value.is_null() {
            // Of no row it is known then that it is in none of them.
            true if list.negated() => return None,
            true => {}
            false => values.push(bytes(value, data_type)?),
        }
    }
    Some(vec![RowTest::OneOf { column, values, negated: list.negated() }])
}

/// A column of the scan by its place, with its type.
pub(super) fn column<'a>(expr: &Arc<dyn PhysicalExpr>, stream: &'a Schema) -> Option<(u32, &'a DataType)> {
    let index = expr.downcast_ref::<Column>()?.index();
    Some((u32::try_from(index).ok()?, stream.fields().get(index)?.data_type()))
}

/// A value as a worker compares with it. None for one of another type than the column's, for nulls, and for numbers with a point that are
/// neither above nor below 0, of which there are two.
pub(super) fn bytes(value: &ScalarValue, data_type: &DataType) -> Option<Vec<u8>> {
    use DataType as T;
    use ScalarValue as V;
    match (value, data_type) {
        (V::Utf8(text) | V::LargeUtf8(text) | V::Utf8View(text), T::Utf8 | T::LargeUtf8 | T::Utf8View) => {
            text.as_ref().map(|text| text.as_bytes().to_vec())
        }
        (V::Binary(bytes) | V::LargeBinary(bytes) | V::BinaryView(bytes), T::Binary | T::LargeBinary | T::BinaryView) => {
            bytes.clone()
        }
        (V::Boolean(truth), T::Boolean) => truth.map(|truth| vec![truth.into()]),
        (V::Float32(Some(number)), T::Float32) if *number == 0.0 || number.is_nan() => None,
        (V::Float64(Some(number)), T::Float64) if *number == 0.0 || number.is_nan() => None,
        (_, T::Float16 | T::Interval(_)) => None,
        (value, data_type) if value.data_type() == *data_type && !value.is_null() => {
            let width = data_type.primitive_width()?;
            let data = value.to_array().ok()?.to_data();
            data.buffers().first()?.as_slice().get(..width).map(<[u8]>::to_vec)
        }
        _ => None,
    }
}
