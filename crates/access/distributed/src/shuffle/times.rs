//! What an executor spent on writing and fetching between stages, summed from its operators' metrics for benchmarks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ballista_core::JobId;
use ballista_executor::execution_engine::QueryStageExecutor;
use ballista_executor::metrics::ExecutorMetricsCollector;

/// What an executor's tasks took for what passes between stages, since its start, as their operators say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShuffleTimes {
    /// Sorting rows by reducers and writing them. Ballista's own leaves out the making of messages and their compression where
    /// rows are sorted by reducers.
    pub write: Duration,
    /// Waiting for them and reading them.
    pub fetch: Duration,
}

/// Sums them up.
#[derive(Default)]
pub(crate) struct Times {
    write_nanos: AtomicU64,
    fetch_nanos: AtomicU64,
}

impl Times {
    pub(crate) fn now(&self) -> ShuffleTimes {
        let of = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Relaxed));
        ShuffleTimes { write: of(&self.write_nanos), fetch: of(&self.fetch_nanos) }
    }
}

/// Names of metrics of Ballista's operators, and of ours. A reader's own time is that of reading what was fetched.
pub(crate) const WRITE_TIMES: [&str; 3] = ["write_time", "repart_time", "spill_time"];
const FETCH: [&str; 2] = ["fetch_time", "local_read_time"];

impl ExecutorMetricsCollector for Times {
    fn record_stage(&self, job: &JobId, stage: usize, task: usize, plan: Arc<dyn QueryStageExecutor>) {
        tracing::debug!(%job, stage, task, "task ran");
        for metrics in plan.collect_plan_metrics() {
            let sum = |names: &[&str]| {
                let found = names.iter().filter_map(|name| metrics.sum_by_name(name));
                found.map(|value| value.as_usize() as u64).sum::<u64>()
            };
            self.write_nanos.fetch_add(sum(&WRITE_TIMES), Relaxed);
            let fetch = sum(&FETCH);
            // Only readers have one.
            let is_reader = metrics.sum_by_name("fetch_time").is_some();
            let read = metrics.elapsed_compute().filter(|_| is_reader).unwrap_or(0) as u64;
            self.fetch_nanos.fetch_add(fetch + read, Relaxed);
        }
    }
}
