//! Tasks as they run: all are counted, and those of queries that are traced have a span each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ballista_core::JobId;
use ballista_core::serde::protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport};
use ballista_executor::execution_engine::{ExecutionEngine, QueryStageExecutor};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use forebay_protocol::ExecutorNumbers;
use forebay_trace::{Kind, Span, TraceContext};
use forebay_types::Error;
use tokio::sync::Notify;

use crate::travel;

/// The tasks of an executor, counted.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    running: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
}

impl Tasks {
    fn begin(&self) -> Begun<'_> {
        self.running.fetch_add(1, Relaxed);
        Begun { tasks: self, is_done: false }
    }

    /// Of an executor with so many slots.
    pub(super) fn now(&self, slots: u64) -> ExecutorNumbers {
        let [tasks_running, tasks_done, tasks_failed] =
            [&self.running, &self.done, &self.failed].map(|count| count.load(Relaxed));
        ExecutorNumbers { slots, tasks_running, tasks_done, tasks_failed }
    }
}

/// A task that runs. One that is dropped before it is done has failed.
struct Begun<'a> {
    tasks: &'a Tasks,
    is_done: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let running = self.tasks.running.fetch_sub(1, Relaxed);
        debug_assert!(running > 0, "a task ends once");
        let over = if self.is_done { &self.tasks.done } else { &self.tasks.failed };
        over.fetch_add(1, Relaxed);
    }
}

/// Makes the executors of stages as another one does; their tasks are counted, and recorded where their query is traced.
pub(super) struct Traced<E> {
    pub(super) inner: E,
    pub(super) tasks: Arc<Tasks>,
    /// Told when a task is over, and what became of it is there to be told to the scheduler.
    pub(super) over: Arc<Notify>,
}

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
        let inner = self.inner.create_query_stage_exec(job, stage, task, outputs, plan, folder, config)?;
        // One that can't be read is told of where the task's surroundings are made.
        let query = travel::ticket(config).ok().flatten().and_then(|ticket| ticket.trace);
        let query = query.filter(|_| forebay_trace::is_on());
        let (tasks, over) = (Arc::clone(&self.tasks), Arc::clone(&self.over));
        Ok(Arc::new(TracedStage { inner, query, tasks, over, job: name, stage }))
    }
}

/// A stage, a task of which is counted, and recorded below its query.
#[derive(Debug)]
struct TracedStage {
    inner: Arc<dyn QueryStageExecutor>,
    /// Where it is traced.
    query: Option<TraceContext>,
    tasks: Arc<Tasks>,
    over: Arc<Notify>,
    job: String,
    stage: usize,
}

impl Drop for TracedStage {
    /// Whoever ran it lets go of it last, when its end has been noted.
    fn drop(&mut self) {
        self.over.notify_one();
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for TracedStage {
    async fn execute_query_stage(&self, task: usize, context: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
        let mut begun = self.tasks.begin();
        let mut span = Span::below(self.query, "task", Kind::Internal);
        span.set("forebay.job", || self.job.as_str());
        span.set("forebay.stage", || self.stage as u64);
        span.set("forebay.task", || task as u64);
        let done = span.around(self.inner.execute_query_stage(task, context)).await;
        begun.is_done = done.is_ok();
        if let Err(error) = &done {
            span.fail(&Error::internal(error.strip_backtrace()));
        }
        done
    }

    forebay_types::handed_on! {
        [inner]
        fn collect_plan_metrics(&self) -> Vec<MetricsSet>;
        fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport>;
        fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>>;
        fn collect_column_stats(&self) -> Vec<TaskColumnStats>;
    }
}

forebay_types::shown_as!(TracedStage: inner);

#[cfg(test)]
mod tests {
    use std::fmt;

    use futures::FutureExt;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl fmt::Display for Nothing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("nothing")
        }
    }

    #[async_trait::async_trait]
    impl QueryStageExecutor for Nothing {
        async fn execute_query_stage(&self, _: usize, _: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
            Ok(Vec::new())
        }

        fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn an_executor_asks_when_nobody_holds_a_task_any_more() {
        let (over, tasks) = (Arc::new(Notify::new()), Arc::default());
        let (inner, job) = (Arc::new(Nothing), "j".to_string());
        let stage = Arc::new(TracedStage { inner, query: None, tasks, over: Arc::clone(&over), job, stage: 1 });
        let held = Arc::clone(&stage);
        stage.execute_query_stage(0, Arc::default()).await.unwrap();
        drop(stage);
        assert!(over.notified().now_or_never().is_none(), "its end is not noted yet");
        drop(held);
        assert!(over.notified().now_or_never().is_some());
    }

    #[test]
    fn a_task_that_is_dropped_before_it_is_done_has_failed() {
        let tasks = Tasks::default();
        let (mut done, dropped) = (tasks.begin(), tasks.begin());
        assert_eq!(tasks.now(4), ExecutorNumbers { slots: 4, tasks_running: 2, ..ExecutorNumbers::default() });
        done.is_done = true;
        drop((done, dropped));
        assert_eq!(tasks.now(4), ExecutorNumbers { slots: 4, tasks_running: 0, tasks_done: 1, tasks_failed: 1 });
    }
}
