//! One cell: its bytes, and the values in them.

mod array;
mod column;
mod gather;
mod nested;
mod plain_views;
mod primitive;
mod row;
mod row_cell;
mod rows;
mod starts;
mod transpose;
mod variable;

pub(crate) use column::ColumnCell;
pub use row::{Row, Value};
pub use row_cell::RowCell;
pub(crate) use rows::transpose_bits;
pub(crate) use variable::Builder;
