//! What a worker says of itself, for status and metrics.

use std::fmt;
use std::ops::Add;

use forebay_types::{MountId, MountName};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::{MOUNTS_MAX, WARNINGS_MAX, at_most};
use crate::version::{read_since, write_since};

/// What a worker knows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// DRAM tier: capacity, used, pinned (in place or kept), in bytes.
    pub dram: (u64, u64, u64),
    /// Disk tier: capacity, used, kept, in bytes.
    pub disk: (u64, u64, u64),
    /// Of the DRAM tier, bytes of columns in the table form.
    pub form_bytes: u64,
    /// Of the DRAM and of the disk tier, bytes of copies of shared storage that the administrator keeps.
    pub kept: (u64, u64),
    /// Of the two, bytes that are no copies of shared storage: temporary nodes, decoded columns, and on disk layers of shards.
    pub own: (u64, u64),
    /// Segments held.
    pub segments: u64,
    /// Reads answered since start.
    pub reads: u64,
    /// Bytes given to readers since start, those read in place among them.
    pub bytes_served: u64,
    /// Of these, bytes that were in a tier when asked for.
    pub bytes_hit: u64,
    /// Requests and bytes a mount.
    #[serde(deserialize_with = "at_most::<MOUNTS_MAX, _, _>")]
    pub storage: Vec<(MountId, StorageCounters)>,
    /// What is wrong; empty when all is well.
    #[serde(deserialize_with = "at_most::<WARNINGS_MAX, _, _>")]
    pub warnings: Vec<Warning>,
    /// How far it is with giving up its temporary data and such changes, when it does.
    pub drain: Option<DrainReport>,
    /// Of the disk tier, bytes of decoded columns.
    #[serde(with = "crate::version::since_9")]
    pub disk_form_bytes: u64,
    /// Of the disk tier, bytes that it lends to layers of shards.
    #[serde(with = "crate::version::since_9")]
    pub layer_bytes: u64,
    /// Reads since start that waited for shared storage.
    #[serde(with = "crate::version::since_9")]
    pub storage_reads: u64,
    /// What these took, in microseconds.
    #[serde(with = "crate::version::since_9")]
    pub storage_read_us: u64,
    /// What reads took that the tiers answered, in microseconds; those in place take none.
    #[serde(with = "crate::version::since_9")]
    pub tier_read_us: u64,
    /// What each mount has of all that is said of reads here.
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "reads_since_9")]
    pub mount_reads: Vec<(MountId, ReadCounters)>,
    /// Bytes that columns in the table form may take of the DRAM tier now; 0 where that is not said.
    #[serde(with = "crate::version::since_9")]
    pub form_room_bytes: u64,
    /// Picoseconds that each byte more of them would save in a second: by this and the next one the room is what it is.
    #[serde(with = "crate::version::since_9")]
    pub form_saves_ps: u64,
    /// The same of cached blocks in that tier.
    #[serde(with = "crate::version::since_9")]
    pub block_saves_ps: u64,
}

/// Of a worker of the version before nothing is known of single mounts.
fn reads_since_9<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(MountId, ReadCounters)>, D::Error> {
    read_since::<9, Reads, D>(deserializer).map(|Reads(reads)| reads)
}

#[derive(Default, Deserialize)]
struct Reads(#[serde(deserialize_with = "at_most::<MOUNTS_MAX, _, _>")] Vec<(MountId, ReadCounters)>);

impl WorkerReport {
    /// Takes out what is said of mounts that somebody may not see. What is said of all reads is that of the other mounts then.
    pub fn cut(&mut self, sees: impl Fn(MountId) -> bool) {
        self.storage.retain(|(mount, _)| sees(*mount));
        self.mount_reads.retain(|(mount, _)| sees(*mount));
        let seen = self.mount_reads.iter().fold(ReadCounters::default(), |sum, (_, reads)| sum + *reads);
        let ReadCounters { reads, bytes_served, bytes_hit, storage_reads, storage_read_us, tier_read_us } = seen;
        (self.reads, self.bytes_served, self.bytes_hit) = (reads, bytes_served, bytes_hit);
        (self.storage_reads, self.storage_read_us, self.tier_read_us) = (storage_reads, storage_read_us, tier_read_us);
    }
}

/// Reads since the worker started, as [`WorkerReport`] has them of all mounts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCounters {
    /// Reads answered.
    pub reads: u64,
    /// Bytes given to readers.
    pub bytes_served: u64,
    /// Of these, bytes that were in a tier.
    pub bytes_hit: u64,
    /// Reads that waited for shared storage.
    pub storage_reads: u64,
    /// What these took, in microseconds.
    pub storage_read_us: u64,
    /// What reads took that the tiers answered, in microseconds.
    pub tier_read_us: u64,
}

impl Add for ReadCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads.saturating_add(other.reads),
            bytes_served: self.bytes_served.saturating_add(other.bytes_served),
            bytes_hit: self.bytes_hit.saturating_add(other.bytes_hit),
            storage_reads: self.storage_reads.saturating_add(other.storage_reads),
            storage_read_us: self.storage_read_us.saturating_add(other.storage_read_us),
            tier_read_us: self.tier_read_us.saturating_add(other.tier_read_us),
        }
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// In words, as in "disk tier off: input/output error".
    pub text: String,
    /// What it is about.
    #[serde(with = "crate::version::since_9")]
    pub about: About,
}

/// What a warning is about, which decides who sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum About {
    /// A worker of the version before does not say: a mount perhaps.
    #[default]
    Unsaid,
    /// The worker itself.
    Worker,
    /// The shared storage of one mount.
    Mount(MountName),
}

impl Warning {
    /// Of the worker itself.
    pub fn of_worker(text: String) -> Self {
        Self { text, about: About::Worker }
    }

    /// Of the shared storage of one mount.
    pub fn of_mount(mount: &MountName, what: &str) -> Self {
        Self { text: format!("mount {mount}: {what}"), about: About::Mount(mount.clone()) }
    }

    /// Whether somebody is shown it whose right ends at the mounts that he `sees`.
    pub fn is_for(&self, sees: impl FnOnce(&MountName) -> bool) -> bool {
        match &self.about {
            About::Unsaid => false,
            About::Worker => true,
            About::Mount(mount) => sees(mount),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a draining worker still has of temporary data, and of changes of shards that shared storage may not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainReport {
    /// Containers.
    pub containers: u64,
    /// Bytes of their names and small values, of blocks, and of these changes.
    pub bytes: u64,
    /// Of these, bytes that no other worker has room for now, and those of containers that a quota ties to this one.
    pub stuck_bytes: u64,
    /// Nothing is left: stopping it loses nothing.
    pub done: bool,
}

/// Requests to shared storage and bytes from it, since the workers started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Counters")]
pub struct StorageCounters {
    /// GET requests, or opened files.
    pub gets: u64,
    /// HEAD requests.
    pub heads: u64,
    /// List requests.
    pub lists: u64,
    /// PUT, POST and part requests.
    pub puts: u64,
    /// DELETE requests.
    pub deletes: u64,
    /// Requests that were tried again.
    pub retries: u64,
    /// Bytes of object data received.
    pub bytes_in: u64,
    /// Bytes of object data sent.
    pub bytes_out: u64,
    /// Bytes read from sockets, headers and all; 0 for file systems.
    pub socket_bytes_in: u64,
}

impl Add for StorageCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            gets: self.gets.saturating_add(other.gets),
            heads: self.heads.saturating_add(other.heads),
            lists: self.lists.saturating_add(other.lists),
            puts: self.puts.saturating_add(other.puts),
            deletes: self.deletes.saturating_add(other.deletes),
            retries: self.retries.saturating_add(other.retries),
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
            socket_bytes_in: self.socket_bytes_in.saturating_add(other.socket_bytes_in),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_a_worker_reports_add_up_however_large_they_are() {
        let storage = StorageCounters { gets: u64::MAX, bytes_in: 7, ..StorageCounters::default() };
        let reads = ReadCounters { reads: u64::MAX, bytes_hit: 7, ..ReadCounters::default() };
        assert_eq!(storage + storage, StorageCounters { bytes_in: 14, ..storage });
        assert_eq!(reads + reads, ReadCounters { bytes_hit: 14, ..reads });
    }
}
