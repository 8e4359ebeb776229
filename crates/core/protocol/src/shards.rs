//! Datasets of shards, as clients and workers name them.

use crate::limits::{ATTRIBUTES_MAX, at_most};
use crate::version::{read_since, write_since};
use forebay_types::{Key, MountId, WorkerId};
use serde::{Deserialize, Serialize};

/// A dataset of shards, as one of its manifests has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DatasetId {
    /// The mount.
    pub mount: MountId,
    /// The folder in it.
    pub folder: Key,
    /// The manifest's number.
    pub manifest: u64,
    /// The hash of its bytes: a folder may be deleted, and made again with the same numbers.
    pub tag: u128,
}

/// Records of one shard of a dataset that are wanted; their keys come beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedRecords {
    /// The dataset.
    pub dataset: DatasetId,
    /// Which of its shards, from 0.
    pub shard: u32,
    /// How long the asker waits, in milliseconds: what can't begin within it is `Retry`.
    pub within_ms: u32,
    /// The places of the attributes that are wanted; empty for all.
    #[serde(deserialize_with = "at_most::<ATTRIBUTES_MAX, _, _>")]
    pub attributes: Vec<u16>,
    /// The version of each record is wanted too.
    pub versioned: bool,
}

/// How a worker has a shard that another one is to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardHeld {
    /// Bytes at the level that it is kept at: of two replicas of a shard the one with fewer has fewer layers.
    pub bytes: u64,
    /// Calls under way or waiting.
    pub queue: u32,
}

/// A shard that a worker serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardState {
    /// Which of the dataset's, from 0.
    pub shard: u32,
    /// Bytes of its files here, layers among them.
    pub bytes: u64,
    /// The size that it is kept at, in thousandths of the input; 0 for no more than it came with.
    pub size_milli: u32,
    /// Its layers are being made or dropped.
    pub is_changing: bool,
    /// Questions that were answered here.
    pub answered: u64,
    /// Calls under way or waiting.
    pub queue: u32,
    /// Why it is kept at this size.
    pub why: String,
    /// The claim under which the worker writes its log; none where it does not write it alone.
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
    pub claim: Option<ShardClaim>,
    /// Calls that came in a minute, by those of the last look at its queue.
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
    pub calls_per_min: u32,
}

/// How a claim stands of a shard's log: its writer has two workers' disks acknowledge changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardClaim {
    /// Who writes.
    pub writer: WorkerId,
    /// Who has the same.
    pub second: WorkerId,
    /// For how long, in milliseconds.
    pub held_ms: u64,
    /// Objects on their way to shared storage, which has them not.
    pub behind_objects: u32,
    /// Their bytes.
    pub behind_bytes: u64,
    /// How long the first of them is on its way, in milliseconds; 0 where there is none.
    pub behind_ms: u64,
}
