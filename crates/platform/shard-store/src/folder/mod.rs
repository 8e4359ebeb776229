//! A shard's folder: its manifest, its files, and how changes to them become visible at once or not at all.

mod crash;
mod lock;
mod manifest;
mod map;
mod publish;

pub(crate) use crash::step;
#[cfg(test)]
pub(crate) use crash::tests::STEPS_LEFT;
pub(crate) use lock::FolderLock;
pub(crate) use manifest::{FileEntry, MANIFEST, Manifest, ShardFiles};
pub(crate) use map::map;
pub(crate) use publish::{explain, sync_folder, write_file};
