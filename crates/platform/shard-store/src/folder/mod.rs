//! A shard's folder: its manifest, its files, and how changes to them become visible at once or not at all.

mod counters;
mod crash;
mod lock;
mod manifest;
mod map;
mod names;
mod part_writer;
mod publish;
mod shares;
mod stamp;

pub(crate) use counters::{CountersFile, read_counters};
pub(crate) use crash::step;
#[cfg(test)]
pub(crate) use crash::tests::STEPS_LEFT;
pub(crate) use lock::FolderLock;
pub(crate) use manifest::{ColdEntry, FileEntry, MANIFEST, Manifest, ShardFiles};
pub(crate) use map::{map, map_part};
pub(crate) use names::Names;
pub(crate) use part_writer::PartWriter;
pub(crate) use publish::{explain, sync_folder};
pub use shares::AskedShares;
pub(crate) use stamp::{Held, Stamp};
