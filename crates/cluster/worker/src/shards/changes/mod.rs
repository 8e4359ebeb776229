//! Changes of records: a log beside each shard's files, in shared storage.
//!
//! Owns: following it, so that what is answered has every change that was acknowledged before; adding to it; merging it into the
//! shard's files, and ending it where a dataset comes to have other shards.
//!
//! Never does: acknowledge what shared storage has not, or what some worker could answer without.
//!
//! Start with [`Shards::catch_up`](super::Shards::catch_up) and [`Shards::change`](super::Shards::change). docs/decisions/0009
//! has the reasons.

mod came;
mod catch_up;
mod commit;
mod merge;
mod moving;
mod repeated;
mod tails;

pub(super) use commit::PARSED_AT_ONCE;
pub(super) use moving::{Move, moved};
