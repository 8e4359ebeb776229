//! A shard's folder: its manifest, its files, and how changes to them become visible at once or not at all.

mod counters;
mod lock;
mod manifest;
mod map;
mod names;
mod part_writer;
mod publish;
mod shares;
mod stamp;

pub(crate) use counters::{CountersFile, read_counters};
pub(crate) use lock::FolderLock;
pub(crate) use manifest::{ColdEntry, FileEntry, MANIFEST, Manifest, ShardFiles};
pub(crate) use map::{map, map_part};
pub(crate) use names::Names;
pub(crate) use part_writer::PartWriter;
pub(crate) use publish::{explain, sync_folder};
pub use shares::AskedShares;
pub(crate) use stamp::{Held, Stamp};
#[cfg(test)]
pub(crate) use tests::STEPS_LEFT;

/// Stands between two steps of a change on disk. Tests end the process here, at any one of them.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    tests::step();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    /// How many steps are left until the process ends; below zero it never does.
    pub(crate) static STEPS_LEFT: AtomicI64 = AtomicI64::new(-1);

    pub(super) fn step() {
        if STEPS_LEFT.load(Ordering::Relaxed) >= 0 && STEPS_LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
            std::process::abort();
        }
    }
}
