//! Discrete-event models of a cluster that run the decision code as it is.
//!
//! Owns: a model of workers, links, clients and time, and workloads to put on it. Never does: a decision. What is
//! replicated, placed, routed and collected comes from `forebay-placement`, by the same functions that the coordinator
//! and the client call, so that what is measured here is what a cluster does. A run is a function of its arguments.

mod bars;
mod budget;
mod cluster;
mod compare;
mod decide;
mod events;
mod figures;
mod metrics;
mod mixapart;
mod program;
mod random;
mod run;
mod scenario;
mod shards;
mod workload;

pub use bars::{BARS, Bar, bars};
pub use budget::{BudgetFigures, budget};
pub use cluster::{ClusterSettings, Knowledge, Routing, Straggler};
pub use compare::{NAMES, Row, WAYS, chart, compare, csv, named, way};
pub use decide::Leading;
pub use figures::{FIGURES, figure, skew_of_trace};
pub use metrics::Outcome;
pub use mixapart::{
    FACEBOOK_BINS, MIXAPART_BARS, MIXAPART_FIGURES, MixApartBar, MixApartBatch, MixApartJob, MixApartOutcome, MixApartReplay,
    MixApartRow, MixApartSettings, Sustained, capacity_chart, mixapart, mixapart_bars, mixapart_batch, mixapart_chart,
    mixapart_csv, mixapart_figure, mixapart_jobs, mixapart_replays, mixapart_rows, mixapart_tier_rows, sustained,
};
pub use program::{Picture, pictures, program};
pub use run::{Fact, Observer, Unobserved};
pub use scenario::{Scenario, Way, Workload};
pub use shards::{
    RepairHost, RepairWay, SHARD_FIGURES, SHARD_SCENARIOS, ShardCurve, ShardMove, ShardPlanned, ShardReplica, ShardRise,
    ShardRisen, ShardRouting, ShardSample, ShardsRun, SkewRow, SkewWay, repair_chart, repair_csv, repair_table, shard_figure,
    shards, shards_chart, shards_csv, shards_planned, shards_planned_table, shards_repair, shards_risen, shards_skew,
    shards_table, skew_chart, skew_csv, skew_table,
};
pub use workload::{Access, AccessKind, Conversion, Converted, Micros, Published, Query, Recorded, Synthetic, accesses, convert};
