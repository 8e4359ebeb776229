//! Files that a statement writes, of which none is shown before all rows of the statement, or of its task, have come.

mod arrow;
mod whole;

pub(crate) use arrow::ArrowSink;
pub(crate) use whole::{Making, write_files};
