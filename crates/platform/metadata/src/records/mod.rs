//! What is kept, one file a kind.

mod checkpoints;
mod mounts;
mod pins;
mod tables;
mod tokens;

pub(crate) use checkpoints::CHECKPOINT_BYTES_MAX;
pub use tables::StoredTable;
