//! Files that a statement writes, of which none is shown before all rows of the statement, or of its task, have come.

mod arrow;
mod sink;
mod whole;

pub(crate) use arrow::{ArrowFiles, ArrowSink};
pub(crate) use sink::{Files, WholeSink};
pub(crate) use whole::Making;
