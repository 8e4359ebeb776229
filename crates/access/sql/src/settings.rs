//! An engine's settings with their defaults, and the configuration of DataFusion that follows from them.

use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;
use forebay_runtime::Computing;
use forebay_types::Result;

use crate::functions::CallMemory;
use crate::memory::{QueryMemory, QueryMemorySettings};
use crate::reach::Reach;

/// How an engine runs its queries.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Partitions that a query is split into; the machine's cores when not set.
    pub target_partitions: Option<usize>,
    /// Memory and disk for what queries hold (joins, sorts, aggregates, windows).
    pub memory: EngineMemory,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// What the plan will read is fetched ahead, within the client's window ([`forebay_client::ClientSettings::prefetch_bytes`]).
    pub prefetch: bool,
    /// What is fetched ahead for queries of a higher priority comes first, whichever process they run in.
    pub priority: i32,
    /// Decoded columns of Parquet, CSV and JSON files are read where workers hold them, if the mount allows it.
    pub hot_form: bool,
    /// Where no worker is on this host, rows of decoded columns are selected by those of others, if they are fewer bytes to send than the
    /// file's own.
    pub rows_from_afar: bool,
    /// What statements may name beside mounts: everything, as in a process that is its user's own.
    pub reach: Reach,
    /// A query whose scans read less than so many bytes, as planned, runs in this process though there is a cluster.
    pub distribute_from_bytes: u64,
    /// A statement that its caller waits for so long, or longer, is told to the log ([`crate::SLOW_QUERY`]); none for no statement.
    pub slow_query: Option<Duration>,
    /// Whose statements these are, as the audit log names them.
    pub who: Arc<str>,
    /// The threads that statements are planned and run by, where who asks for them answers others as well; none for who asks.
    pub computing: Option<Computing>,
}

/// Memory and disk of an engine.
#[derive(Clone, Debug)]
pub enum EngineMemory {
    /// Its own, made at the first query.
    Own(QueryMemorySettings),
    /// What others use too.
    Shared(QueryMemory),
}

impl Default for EngineMemory {
    fn default() -> Self {
        Self::Own(QueryMemorySettings::default())
    }
}

impl EngineMemory {
    /// Its own, of so many bytes.
    pub fn of_bytes(memory_bytes: Option<u64>) -> Self {
        Self::Own(QueryMemorySettings { memory_bytes, ..QueryMemorySettings::default() })
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            target_partitions: None,
            memory: EngineMemory::default(),
            batch_rows: 8192,
            prefetch: true,
            priority: 0,
            hot_form: true,
            rows_from_afar: true,
            reach: Reach::of_process(),
            distribute_from_bytes: 0,
            slow_query: None,
            who: Arc::default(),
            computing: None,
        }
    }
}

/// Bytes read from a Parquet file's end in its first request. A footer of a file of some hundred MB with its page index
/// is 20 to 100 KB; the engine's own 512 KiB would fetch small files twice over and shows in a cold run's bytes.
pub(crate) const FOOTER_HINT_BYTES: usize = 64 << 10;

/// Memory for the listing that one query keeps; enough for some hundred thousand files.
pub(crate) const LISTING_BYTES_MAX: usize = 256 << 20;

/// The zone of a session that sets none.
const TIME_ZONE: &str = "UTC";

impl EngineSettings {
    /// The session's configuration: the same over Forebay and without it, so that runs can be compared.
    pub(crate) fn session_config(&self) -> SessionConfig {
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_batch_size(self.batch_rows.max(1))
            .with_create_default_catalog_and_schema(false);
        if let Some(partitions) = self.target_partitions {
            config = config.with_target_partitions(partitions.max(1));
        }
        let options = config.options_mut();
        options.execution.parquet.metadata_size_hint = Some(FOOTER_HINT_BYTES);
        // Times of 12 bytes, as Spark and Hive write them, reach further than nanoseconds in 8: those wrap around, unseen.
        options.execution.parquet.coerce_int96 = Some("us".to_string());
        // `TIMESTAMP WITH TIME ZONE` is an instant. Without a zone of the session the engine takes it for a time of no zone, and
        // drops the one that values have.
        options.execution.time_zone = Some(TIME_ZONE.to_string());
        // The check refuses queries for what the engine's own planner says of nulls: `x is not false` has none by one part of it.
        options.execution.skip_physical_aggregate_schema_check = true;
        // What `min` and `max` have found so far is asked of the files, and with several of them of one alone where another has found no
        // value yet, or is of more than a column: rows that the other needs are left out.
        options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        // Orders in `from` are left out by a rule of this crate: the engine's leaves out those, too, by which a limit takes its rows.
        options.sql_parser.enable_subquery_sort_elimination = false;
        // Folders are listed by this crate, which also decides about subfolders.
        options.execution.listing_table_ignore_subdirectory = false;
        config
    }

    /// What calls of functions may make: beside the memory that is shared, or the engine's own.
    pub fn call_memory(&self) -> CallMemory {
        match &self.memory {
            EngineMemory::Shared(memory) => memory.1.clone(),
            EngineMemory::Own(settings) => CallMemory::beside(settings.bytes()),
        }
    }

    /// Memory, spilling and temporary files, shared by all queries of an engine.
    pub(crate) fn runtime(&self) -> Result<Arc<RuntimeEnv>> {
        match &self.memory {
            EngineMemory::Shared(memory) => Ok(Arc::clone(&memory.0)),
            EngineMemory::Own(settings) => QueryMemory::new(settings).map(|memory| memory.0),
        }
    }
}
