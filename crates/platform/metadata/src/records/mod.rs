//! What is kept, one file a kind.

mod checkpoints;
mod mounts;
mod pins;
mod tables;
mod tokens;

pub use tables::StoredTable;
