//! Columns as they were in the input: names and types, to and from JSON and what people write.

mod column;
mod json;
mod kind;
mod text;

pub use column::{Column, Columns, key_of_value};
pub use json::{JsonKinds, JsonRecords};
pub use kind::ColumnKind;
