//! The settings of Ballista and DataFusion that all sessions of the cluster share, at the scheduler, executors and clients.

use std::sync::Arc;

use ballista_core::ConfigProducer;
use ballista_core::config::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK;
use ballista_core::extension::SessionConfigExt;
use datafusion::prelude::SessionConfig;

use crate::ports::Ways;
use crate::travel::Travel;

/// Longest message between Ballista's processes in bytes: plans of thousands of files, with their versions.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// A session's settings as the cluster needs them.
pub(crate) fn of_cluster(config: SessionConfig) -> SessionConfig {
    config
        .upgrade_for_ballista()
        .with_option_extension(Travel::default())
        .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES_MAX)
        // A hash join passes a small table to everyone, where a sort-merge join sorts and passes both sides on. It takes memory
        // for one side, which is bounded; `SET datafusion.optimizer.prefer_hash_join = false` is for sides that don't fit.
        .set_bool("datafusion.optimizer.prefer_hash_join", true)
        // One partition a task, where Ballista binds it: what the schedule orders is what runs.
        .set_str(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, "1")
}

/// The settings that scheduler and executors start from; what a query brings is put over them.
pub(crate) fn producer(ways: &Ways) -> ConfigProducer {
    let ways = ways.clone();
    Arc::new(move || of_process(of_cluster(SessionConfig::new()), &ways))
}

/// The same with this process' ways to others.
pub(crate) fn of_process(config: SessionConfig, ways: &Ways) -> SessionConfig {
    config.with_ballista_override_create_grpc_client_endpoint(ways.overrides())
}
