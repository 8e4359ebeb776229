//! Texts and binary without views: twelve bytes a value less to send.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_schema::DataType;

/// The type of what [`plain`] makes.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

/// The same values, those behind views one after the other.
pub(super) fn plain(array: &ArrayRef) -> ArrayRef {
    let out: ArrayRef = match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().iter().collect::<StringArray>()),
        DataType::BinaryView => Arc::new(array.as_binary_view().iter().collect::<BinaryArray>()),
        _ => Arc::clone(array),
    };
    let is_as_said = *out.data_type() == plain_type(array.data_type()) && out.len() == array.len();
    assert!(is_as_said, "{} values of {} became {} of {}", array.len(), array.data_type(), out.len(), out.data_type());
    out
}
