//! Scans of Parquet files that read decoded columns where a worker holds them, and the file's own bytes for the rest.
//!
//! A plan that is about to run gets its Parquet sources wrapped ([`apply`]). A row group is read in the table form when
//! every column that the scan needs of it is held so, of the version that the query has pinned; else the engine's own
//! reader reads it. Rows, their order and their types are the same either way.

mod apply;
mod cells;
mod filter;
mod opener;
mod raw;
mod row_group;
mod scan;
mod source;

pub(crate) use apply::apply;
pub(crate) use cells::Cells;
