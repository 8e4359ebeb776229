use std::path::PathBuf;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;

/// How an engine runs its queries.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Partitions that a query is split into; the machine's cores when not set.
    pub target_partitions: Option<usize>,
    /// Memory for what queries hold (joins, sorts, aggregates), in bytes, shared fairly; beyond it they spill to disk.
    /// Unbounded when not set.
    pub memory_bytes: Option<u64>,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// Where queries spill to; the system's temporary folder when not set.
    pub spill_folder: Option<PathBuf>,
    /// What the plan will read is fetched ahead, within the client's window ([`forebay_client::ClientSettings::prefetch_bytes`]).
    pub prefetch: bool,
    /// Decoded columns of Parquet, CSV and JSON files are read where workers hold them, if the mount allows it.
    pub hot_form: bool,
    /// How often a query is planned again when an object was overwritten between planning and its first row.
    pub retries_on_conflict: u32,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            target_partitions: None,
            memory_bytes: None,
            batch_rows: 8192,
            spill_folder: None,
            prefetch: true,
            hot_form: true,
            retries_on_conflict: 1,
        }
    }
}

/// Bytes read from a Parquet file's end in its first request. A footer of a file of some hundred MB with its page index
/// is 20 to 100 KB; the engine's own 512 KiB would fetch small files twice over and shows in a cold run's bytes.
pub(crate) const FOOTER_HINT_BYTES: usize = 64 << 10;

/// Memory for the listing that one query keeps; enough for some hundred thousand files.
pub(crate) const LISTING_BYTES_MAX: usize = 256 << 20;

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
        // Folders are listed by this crate, which also decides about subfolders.
        options.execution.listing_table_ignore_subdirectory = false;
        config
    }

    /// Memory, spilling and temporary files, shared by all queries of an engine.
    pub(crate) fn runtime(&self) -> Result<Arc<RuntimeEnv>> {
        let pool: Arc<dyn MemoryPool> = match self.memory_bytes {
            Some(bytes) => Arc::new(FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX))),
            None => Arc::new(UnboundedMemoryPool::default()),
        };
        let mode = match &self.spill_folder {
            Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
            None => DiskManagerMode::OsTmpDirectory,
        };
        RuntimeEnvBuilder::new()
            .with_memory_pool(pool)
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
            .build_arc()
    }
}
