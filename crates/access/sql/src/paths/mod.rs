//! Tables that are paths: from what stands in `FROM '...'` to files with a format, a schema and partition columns.

mod format;
mod guard;
mod headers;
mod json_array;
mod json_kinds;
mod listing;
mod members;
mod nulls;
mod resolve;
mod table;
mod widths;

pub(crate) use format::Format;
pub(crate) use guard::{ArrowFormatFactory, with_checked_pages};
pub use guard::{bare_scan, guarded_scan};
pub(crate) use listing::{HAS_OLD_ROWS, list};
pub(crate) use members::with_all_members;
pub use nulls::NULL as NULL_PARTITION;
pub(crate) use resolve::{Declared, Resolver, looks_like_path};
pub(crate) use table::PathTable;
