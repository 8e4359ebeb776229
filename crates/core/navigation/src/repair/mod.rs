//! Copies that bring back what a lost worker held.
//!
//! A copy is the base alone: it serves at once, slowly, and [`plan()`](crate::plan()) brings it back to its start in one pass. So
//! a lost replica costs one transfer of the lowest dial's bytes, whatever the lost one had (BlowFish, section 5.1).
//!
//! [`repair()`] decides for a whole cluster, [`sources`] and [`urgency`] for a worker that is one of its holders by rank and knows
//! no others' plans.

mod damage;
mod draft;
mod postconditions;
mod source;

use forebay_types::{Result, WorkerId};

pub use damage::{Damage, Damaged, RepairRoom, Survivor};
pub use source::{sources, urgency};

use crate::shard::ShardId;

/// Where a copy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySource {
    /// A replica that is left.
    Worker(WorkerId),
    /// Shared storage: no replica is left.
    SharedStorage,
}

/// A copy to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Of which shard.
    pub shard: ShardId,
    /// From where.
    pub from: CopySource,
    /// To whom.
    pub to: WorkerId,
    /// How much.
    pub bytes: u64,
}

/// Why a shard is not copied now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Postponed {
    /// As many bytes as may are on their way.
    Bandwidth,
    /// No worker that doesn't have it has room.
    NoRoom,
}

/// What is to be done, and what has to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Copies to start now, the most urgent first.
    pub copies: Vec<Copy>,
    /// Shards that still miss replicas after that, and why.
    pub postponed: Vec<(ShardId, Postponed)>,
}

/// Which copies to start now. Called when a worker is lost and when a copy ended; the same damage gives the same copies. O(s
/// log s + c·w) for s shards, c copies and w workers.
/// `Invalid`: damage that can't be.
pub fn repair(damage: &Damage) -> Result<Repair> {
    damage.validate()?;
    let repair = draft::Draft::new(damage).copies();
    postconditions::of_repair(damage, &repair);
    Ok(repair)
}
