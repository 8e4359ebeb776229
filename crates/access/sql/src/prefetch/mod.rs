//! What a query is about to read, told from its physical plan before it runs.

mod dynamic;
mod order;
mod parquet;
mod run;
mod scan;

pub(crate) use parquet::{Footer, Reading};
pub(crate) use run::{Fetcher, Prefetching};
pub(crate) use scan::{config, parquet_source};
