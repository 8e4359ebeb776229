//! What the engine's own readers will do for a scan, told from its plan: which files, rows and columns they read.

mod config;
mod extent;
mod parquet;

pub(crate) use config::{config, dynamic_filters, parquet_source};
pub(crate) use extent::Extent;
pub(crate) use parquet::{Footer, Reading};
