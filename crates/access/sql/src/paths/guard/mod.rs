//! Reading of Arrow, Avro and Parquet files that holds what the libraries don't. Their decoders allocate as a file says and go on where
//! a file is at odds with itself, so that what a file says is checked against its bytes before they see it.
//!
//! What is checked of an Arrow message stands in `arrow/layout.rs`, of an Avro block in `avro/shape.rs` and `avro/blocks.rs`, of a page of
//! Parquet in `forebay_table::ParquetColumn`.

mod arrow;
mod avro;
mod bounds;
mod fault;
mod format;
mod input;
mod parquet;
mod source;

pub(crate) use format::ArrowFormatFactory;
pub(super) use format::{guarded, schema};
pub(crate) use parquet::with_checked_pages;
pub use source::{bare_scan, guarded_scan};
