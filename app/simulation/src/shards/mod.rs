//! Shards under load, led by `forebay_navigation::plan` as it is: queues that grow, layers that come and go.
//!
//! Owns: a model of workers with a queue a replica, clients that choose among replicas, and the loads that BlowFish (NSDI 2016,
//! sections 4 and 5) puts on them. Never does: a decision. Start with [`shards`].

mod arrivals;
mod client;
mod curves;
mod engine;
mod figures;
mod outcome;
mod planned;
mod predict;
mod repair;
mod replica;
mod report;
mod scenarios;
mod setup;
mod skew;
#[cfg(test)]
mod tests;
mod waits;

pub use curves::ShardCurve;
pub use figures::{SHARD_FIGURES, shard_figure};
pub use outcome::{ShardMove, ShardReplica, ShardSample, ShardsRun};
pub use planned::{ShardPlanned, shards_planned, shards_planned_table};
pub use predict::{ShardRise, ShardRisen, shards_risen};
pub use repair::{RepairHost, RepairWay, repair_chart, repair_csv, repair_table, shards_repair};
pub use report::{shards_chart, shards_csv, shards_table, skew_chart, skew_csv, skew_table};
pub use scenarios::{SHARD_SCENARIOS, shards};
pub use setup::ShardRouting;
pub use skew::{SkewRow, SkewWay, shards_skew};
