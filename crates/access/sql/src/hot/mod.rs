//! Scans of Parquet and text files that read decoded columns where a worker holds them, and the file's own bytes for the rest.
//!
//! A plan that is about to run gets its sources wrapped ([`apply`]). A row group of Parquet, or a chunk of text, is read in the
//! table form when every column that the scan needs of it is held so, of the version that the query has pinned, and for text
//! made with the query's own schema and options; else the engine's own reader reads it ([`walk`]). Rows, their order and their
//! types are the same either way. Where no worker is on this host, one of another is asked for the rows that may be wanted
//! ([`far`]), if these are fewer bytes to send than the file's own, and there sooner.

mod apply;
mod cells;
mod far;
mod filter;
mod parquet;
mod raw;
mod row_group;
mod scan;
mod source;
mod text_opener;
mod text_scan;
mod timed;
mod walk;

pub(crate) use apply::{apply, apply_to_part, at_chunks};
pub(crate) use cells::Cells;
pub(crate) use text_scan::TextScan;
