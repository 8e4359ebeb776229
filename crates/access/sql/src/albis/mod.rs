//! Table files (`.albis`) as a format of the engine: read by row group and column, pruned by their cells' statistics, filtered
//! before they are materialised, and written by `COPY` and `INSERT`.

mod adapt;
mod ahead;
mod format;
mod metadata;
mod open;
mod options;
mod pruning;
mod rows;
mod scan;
mod sink;
mod source;
mod statistics;
mod travel;

pub(crate) use ahead::TableInput;
pub(crate) use format::{TableFormat, TableFormatFactory};
pub(crate) use metadata::Tables;
pub(crate) use rows::{is_number, numbered, with_number};
pub(crate) use sink::{TableFiles, TableSink};
pub use travel::{TableScan, table_scan, table_source};
