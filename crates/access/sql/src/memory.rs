//! The memory and disk that joins, sorts and aggregates may take, bounded once for all engines that share them.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryLimit};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use forebay_types::Result;

use crate::error::from_engine;
use crate::functions::CallMemory;

/// Bytes on disk for each byte of memory, unless said otherwise.
const SPILL_FACTOR: u64 = 4;

/// Memory and disk for what queries hold: joins, sorts, aggregates, windows; and beside it what functions make. Engines that are given clones
/// of it share it.
#[derive(Clone, Debug)]
pub struct QueryMemory(pub(crate) Arc<RuntimeEnv>, pub(crate) CallMemory);

/// How much of both, and where.
#[derive(Clone, Debug, Default)]
pub struct QueryMemorySettings {
    /// Memory in bytes, shared fairly by queries; beyond it they spill to disk, and what can't spill fails. A quarter of what the
    /// process may use when not set.
    pub memory_bytes: Option<u64>,
    /// Disk in bytes; a query that would go beyond it fails. Four times the memory when not set.
    pub spill_bytes: Option<u64>,
    /// Where queries spill to; the system's temporary folder when not set.
    pub spill_folder: Option<PathBuf>,
}

impl QueryMemorySettings {
    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or_else(forebay_data_folder::default_dram_bytes)
    }
}

impl QueryMemory {
    /// Makes the spill folder.
    ///
    /// # Errors
    /// Those of making it.
    pub fn new(settings: &QueryMemorySettings) -> Result<Self> {
        let memory = settings.bytes();
        let spill = settings.spill_bytes.unwrap_or_else(|| memory.saturating_mul(SPILL_FACTOR));
        let mode = match &settings.spill_folder {
            Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
            None => DiskManagerMode::OsTmpDirectory,
        };
        let disk = DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(spill);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(usize::try_from(memory).unwrap_or(usize::MAX))))
            .with_disk_manager_builder(disk)
            .build_arc();
        runtime.map(|runtime| Self(runtime, CallMemory::beside(memory))).map_err(from_engine)
    }

    /// Bytes of memory that all queries may hold together; none where nothing bounds them.
    pub fn bytes(&self) -> Option<u64> {
        match self.0.memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => Some(bytes as u64),
            MemoryLimit::Infinite | MemoryLimit::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_where_nobody_says_so() {
        let memory = QueryMemory::new(&QueryMemorySettings::default()).unwrap();
        assert_eq!(memory.bytes(), Some(forebay_data_folder::default_dram_bytes()));
        let settings = QueryMemorySettings { memory_bytes: Some(1000), ..QueryMemorySettings::default() };
        assert_eq!(QueryMemory::new(&settings).unwrap().bytes(), Some(1000));
    }
}
