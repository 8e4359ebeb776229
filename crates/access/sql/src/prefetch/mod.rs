//! What a query is about to read, told from its physical plan before it runs.

mod dynamic;
mod inputs;
mod order;
mod parquet;
mod run;
mod scan;

pub(crate) use inputs::all_inputs;
pub use inputs::{inputs, scanned_folder};
pub(crate) use run::{Fetcher, Prefetching};
pub use scan::Ranges;
