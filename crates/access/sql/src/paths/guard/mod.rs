//! Reading of Arrow, Avro and Parquet files that holds what the libraries don't. Their decoders allocate as a file says and go on where
//! a file is at odds with itself, so that what a file says is checked against its bytes before they see it.
//!
//! What is checked of an Arrow message stands in `arrow/layout.rs`, of an Avro block in `avro/shape.rs` and `avro/blocks.rs`, of a page of
//! Parquet in `forebay_table::ParquetColumn`.

mod arrow;
mod avro;
mod fault;
mod format;
mod input;
mod names;
mod parquet;
mod source;

pub(crate) use format::ArrowFormatFactory;
pub(super) use format::{guarded, schema, with_required};
pub(crate) use parquet::with_checked_pages;
pub use source::{bare_scan, guarded_scan};

use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;

/// Values that a file may have without any byte for them, such as nulls without a type: a few bytes can say that there are 2^60.
const WITHOUT_BYTES_MAX: u64 = 1 << 24;

/// Bytes that one message or block may take when it is decoded: what SQL may use.
fn decoded_bytes_max(runtime: &RuntimeEnv) -> u64 {
    match runtime.memory_pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes as u64,
        _ => forebay_data_folder::default_dram_bytes(),
    }
}
