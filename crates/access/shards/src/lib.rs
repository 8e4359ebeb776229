//! Datasets of shards, as a program asks them: compressed tables in shared storage that workers search and read.
//!
//! Owns: which shard a question or a change is about, which of its replicas is asked, and one answer from those of several shards.
//!
//! Never does: keep anything but a manifest, or give a part of an answer: all of it, or an error that says why.
//!
//! Start with [`Shards::open`], or with [`create`] to make a dataset of built shards.

#![warn(unreachable_pub)]

mod ask;
mod change;
mod choose;
mod follow;
mod forgo;
mod making;
mod open;
mod operations;
mod orders;
mod questions;
mod records;
mod refresh;
mod scratch;
mod seal;
mod status;

pub use change::Versioned;
pub use making::{Creating, Cut, ReshardStep, ReshardTo, Resharded, create, reshard};
pub use open::{OpenShards, Shards, latest_manifest};
pub use refresh::refresh;
pub use refresh::{
    Follows, ReadRecords, Records, RefreshState, Refreshed, RefusedObject, check_followed, is_visible, objects_followed,
    objects_like,
};
pub use scratch::Scratch;
pub use status::{ClaimStatus, RangeStatus, ReplicaStatus, ShardStatus};
