//! SQL over files: DataFusion, embedded over Forebay's client.
//!
//! Owns: tables that are paths, one snapshot of object versions a query, the caches of footers and statistics by
//! version, what a physical plan is about to read (prefetch), external tables, and the writing of results.
//! Never does: read shared storage when a mount covers the path, keep an old footer for a new version, or plan again
//! once a row was given out.
//!
//! Start with [`Engine::over_client`] and [`Engine::execute`]; [`Query`] gives batches, which [`output`] writes.

mod albis;
mod caches;
mod catalog;
mod copy;
mod distribute;
mod drafts;
mod engine;
mod error;
mod functions;
mod held;
mod hot;
mod location;
mod memory;
mod namespace;
mod null_fields;
mod panics;
mod parsed;
mod paths;
mod plan_nodes;
mod prefetch;
mod reach;
mod repeated;
mod rules;
mod scans;
mod settings;
mod shards;
mod sinks;
mod slow;
mod statement;
mod steps;
mod stores;

pub mod output;

pub use albis::{TableScan, table_scan, table_source};
pub use catalog::TableName;
pub use datafusion::arrow;
pub use datafusion::common::ParamValues;
pub use datafusion::scalar::ScalarValue;
pub use distribute::{Distribute, DistributedQuery, DistributedRun, Progress};
pub use drafts::{DraftsTo, SinkOptions, drafts_of, drafts_to_send};
pub use engine::{Conversion, ConversionProgress, Description, Engine, Query, SessionSettings, TableFile};
pub use functions::{CallMemory, mend as mend_functions};
pub use memory::{QueryMemory, QueryMemorySettings};
pub use paths::{NULL_PARTITION, bare_scan, guarded_scan};
pub use plan_nodes::only_child;
pub use prefetch::{Ranges, inputs, scanned_folder};
pub use reach::{LocalFiles, Reach};
pub use settings::{EngineMemory, EngineSettings};
pub use shards::{ShardBatches, shard_scan_of, shard_scan_to_bytes};
pub use slow::{SLOW_QUERY, Slow, sql_told, tell_slow};
pub use statement::is_complete;
