//! Logs: what is known of what was changed in shards since their files were made.
//!
//! Owns: how far a shard has read its log, what other workers say of logs, which calls may be made, and those that wait.
//!
//! Never does: ask shared storage or anyone else, which `changes` does.
//!
//! Start with [`Follower`].

#[cfg(test)]
mod arrivals;
mod decide;
mod follower;
mod merging;
mod queue;
mod told;

pub(super) use decide::{Standing, Verdict, decide};
pub(super) use follower::{Follower, Looked, Read};
pub(super) use merging::Merging;
pub(super) use queue::{Call, Queue};
pub(super) use told::{COMING_FOR, Name, Told};
