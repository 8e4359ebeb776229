//! Bytes to Arrow: what a query touches, and the batches that come of it.

mod chunk;
mod plan;
mod selection;
mod source;
mod statistics;
mod table;
mod take;
mod verified;

pub use chunk::{Batches, Chunk};
pub use plan::Plan;
pub use selection::Selection;
pub use source::Source;
pub use statistics::ColumnStatistics;
pub use table::Table;
pub use take::take;
pub use verified::Verified;
