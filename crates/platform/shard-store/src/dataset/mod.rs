//! A dataset: shards of one table as objects in shared storage, for workers that serve them.
//!
//! Objects are named by their content and never change; a manifest names those that belong together, and manifests are a
//! numbered sequence of which the last one counts. What was changed since is in a log beside them; where records came from that follow
//! objects is in one that is overwritten. docs/specs/shard-dataset.md has the bytes.

mod bounds;
mod following;
mod garbage;
mod log;
mod manifest;
mod merge;
mod names;
mod next;
mod orders;
mod pack;
mod recut;
mod shard;
mod sources;
mod splits;

pub use bounds::DatasetBounds;
pub use following::{DatasetFollowing, KEY_BYTES_MAX, KEYS_MAX, decode_keys, encode_keys};
pub use garbage::{GARBAGE_AFTER, Stored, garbage, needed};
pub use log::{LogClaim, LogObject, LogPlace, LoggedCall};
pub use manifest::Dataset;
pub use merge::merge;
pub use names::{data_key, manifest_key, manifest_number, manifest_tag};
pub use next::{NextShards, Tail, moved_call};
pub use orders::{Acknowledged, DatasetOrders, DatasetPin};
pub use pack::{Packed, pack};
pub use recut::recut;
pub use shard::{DatasetCold, DatasetFile, DatasetShard};
pub use sources::{
    DatasetSource, SOURCES_BYTES_MAX, SOURCES_MAX, decode_sources, encode_sources, has_keys, keys_name, too_many_sources,
};
