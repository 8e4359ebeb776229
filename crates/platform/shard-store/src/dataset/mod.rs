//! A dataset: shards of one table as objects in shared storage, for workers that serve them.
//!
//! Objects are named by their content and never change; a manifest names those that belong together, and manifests are a
//! numbered sequence of which the last one counts. docs/specs/shard-dataset.md has the bytes.

mod manifest;
mod pack;

pub use manifest::{Dataset, DatasetFile, DatasetShard, data_key, manifest_key, manifest_number, manifest_tag};
pub use pack::{Packed, pack};
