//! Tasks of queries that are traced: a span for each.

use std::fmt;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::serde::protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport};
use ballista_executor::execution_engine::{ExecutionEngine, QueryStageExecutor};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use forebay_trace::{Kind, Span, TraceContext};
use forebay_types::Error;

use crate::travel;

/// Makes the executors of stages as another one does; those of queries that are traced record their tasks.
pub(super) struct Traced<E>(pub(super) E);

impl<E: ExecutionEngine> ExecutionEngine for Traced<E> {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        outputs: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        folder: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let name = job.to_string();
        let inner = self.0.create_query_stage_exec(job, stage, task, outputs, plan, folder, config)?;
        // One that can't be read is told of where the task's surroundings are made.
        let query = travel::ticket(config).ok().flatten().and_then(|ticket| ticket.trace);
        Ok(match query.filter(|_| forebay_trace::is_on()) {
            Some(query) => Arc::new(TracedStage { inner, query, job: name, stage }),
            None => inner,
        })
    }
}

/// A stage, a task of which is recorded below its query.
#[derive(Debug)]
struct TracedStage {
    inner: Arc<dyn QueryStageExecutor>,
    query: TraceContext,
    job: String,
    stage: usize,
}

#[async_trait::async_trait]
impl QueryStageExecutor for TracedStage {
    async fn execute_query_stage(&self, task: usize, context: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
        let mut span = Span::below(Some(self.query), "task", Kind::Internal);
        span.set("forebay.job", || self.job.as_str());
        span.set("forebay.stage", || self.stage as u64);
        span.set("forebay.task", || task as u64);
        let done = span.around(self.inner.execute_query_stage(task, context)).await;
        if let Err(error) = &done {
            span.fail(&Error::internal(error.strip_backtrace()));
        }
        done
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.inner.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}

impl fmt::Display for TracedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}
