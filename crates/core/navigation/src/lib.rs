//! How much a shard's replica keeps beside its base, which replica a request goes to, and what a lost worker's shards need.
//!
//! Owns: the decision which layers each replica has in the next period ([`plan()`]), the choice among the replicas of a shard
//! ([`choose`], [`join_shortest`]), the copies after a loss ([`repair()`], [`sources`]), whether a shard is brought to a worker at
//! all ([`residence()`]), which shard's changes are merged into its files next ([`merge_next`]), what is there of changes that two
//! workers' disks have ([`Kept`], [`ending`]), what becomes of an object of a log that comes with the word of it ([`told`]) and of a call that is
//! asked for again ([`Calls`]), how much may wait for a shard ([`StepQueue`]), how a dataset comes to have more or
//! fewer shards ([`recut`], [`pieces`], [`start`], [`switch`]), and how room is divided among all that saves time with it ([`divide`], [`lend`]). Never does: I/O, clocks and randomness (time is counted in periods,
//! chance is an argument), and building or dropping a layer, which is its worker's.
//!
//! Follows "BlowFish: Dynamic Storage-Performance Tradeoff in Data Stores" (A. Khandelwal, R. Agarwal and I. Stoica, NSDI
//! 2016), sections 3 and 4, and goes past it where a queue's length alone would mislead. Start with `README.md`, which has the
//! goals and the rules, then [`Snapshot`] and [`plan()`].

#![warn(unreachable_pub)]

mod budget;
mod choose;
mod claims;
mod curve;
mod lending;
mod merging;
mod plan;
mod queue;
mod repair;
mod repeats;
mod reshard;
mod residence;
mod settings;
mod shard;
mod snapshot;
mod telling;

pub use budget::{Division, Ladder, Step, divide};
pub use choose::{Candidate, choose, join_shortest};
pub use claims::{CLAIM_LIMITS, ClaimLimits, Claimed, Ending, Kept, Take, Turn, Word, ending, turn};
pub use curve::{Curve, Level};
pub use lending::{Lending, layers, lend, margin};
pub use merging::{MERGE_LIMITS, MergeLimits, Unmerged, merge_next, merge_part_bytes};
pub use plan::{Decision, Memory, Plan, Reason, plan};
pub use queue::{QUEUE_LIMITS, QueueLimits, StepQueue};
pub use repair::{Copy, CopySource, Damage, Damaged, Postponed, Repair, RepairRoom, Survivor, repair, sources, urgency};
pub use repeats::{Calls, Made};
pub use reshard::{
    KeptAt, LogState, Piece, SHARDS_MAX, SWITCH_LIMITS, Share, SwitchLimits, SwitchStep, TAIL_BYTES_MAX, hashes, may_switch,
    merged, pieces, recut, shards_for, split, start, switch, tails_fit,
};
pub use residence::{FarCost, Residence, residence};
pub use settings::Settings;
pub use shard::ShardId;
pub use snapshot::{Replica, Snapshot};
pub use telling::{LogRead, Telling, told};
