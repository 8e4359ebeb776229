//! Runs a stage whose results go to nodes: pulls its plan, splits rows or passes them on whole, and reports its metrics.

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::protobuf::{ShuffleWritePartition, TaskColumnStats};
use ballista_core::utils;
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use forebay_runtime::time::timeout;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::outputs::{Outputs, SETTLE, Writer};
use super::split::Split;

/// A stage of a job whose results go to nodes.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) writer: Arc<Writer>,
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) route: Route,
    pub(super) metrics: ExecutionPlanMetricsSet,
    /// Of each column.
    pub(super) nulls: Mutex<Vec<u64>>,
}

/// Which rows are whose.
#[derive(Debug)]
pub(super) enum Route {
    /// By the hash of these keys, to so many reducers.
    Hash(Vec<Arc<dyn PhysicalExpr>>, usize),
    /// A partition each.
    Partitions(Vec<usize>),
}

struct Metrics {
    write: Time,
    rows: Count,
    bytes: Count,
}

impl Stage {
    fn metrics_of(&self, partition: usize) -> Metrics {
        let builder = || MetricBuilder::new(&self.metrics);
        Metrics {
            write: builder().subset_time("write_time", partition),
            rows: builder().output_rows(partition),
            bytes: builder().counter("written_bytes", partition),
        }
    }

    /// All partitions of the task, to all reducers.
    async fn by_hash(
        &self,
        keys: &[Arc<dyn PhysicalExpr>],
        reducers: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let metrics = self.metrics_of(0);
        let count = self.plan.output_partitioning().partition_count();
        let parts = (0..count).map(|partition| self.plan.execute(partition, Arc::clone(&context)));
        let mut rows = futures::stream::select_all(parts.collect::<Result<Vec<_>>>()?);
        let schema = self.plan.schema();
        let (mut nulls, mut given) = (vec![0; schema.fields().len()], 0);
        let all: Vec<usize> = (0..reducers).collect();
        let mut outputs = Outputs::new(Arc::clone(&self.writer), schema, &all)?;
        let mut split = Split::new(keys.to_vec(), reducers);
        let held = MemoryConsumer::new("shuffle").with_can_spill(true).register(&context.runtime_env().memory_pool);
        let batch_rows = context.session_config().batch_size();
        while let Some(batch) = next(&mut rows, &mut outputs, &metrics).await? {
            let timer = metrics.write.timer();
            for (count, column) in nulls.iter_mut().zip(batch.columns()) {
                *count += column.logical_null_count() as u64;
            }
            given += batch.num_rows() as u64;
            split.add(batch)?;
            // Without memory for more it goes on now.
            if held.try_resize(split.bytes).is_err() || split.is_full() {
                give(&mut split, &mut outputs, reducers, batch_rows).await?;
                outputs.settle_old().await?;
                held.free();
            }
            timer.done();
        }
        let timer = metrics.write.timer();
        give(&mut split, &mut outputs, reducers, batch_rows).await?;
        held.free();
        let written = outputs.finish().await?;
        timer.done();
        metrics.bytes.add(written.iter().map(|place| place.num_bytes as usize).sum());
        assert_eq!(written.iter().map(|place| place.num_rows).sum::<u64>(), given, "each row goes to one reducer");
        *self.nulls.lock() = nulls;
        Ok(written)
    }

    /// One partition of the task, as it comes.
    async fn whole(&self, partition: usize, reducer: usize, context: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
        let metrics = self.metrics_of(partition);
        let mut rows = self.plan.execute(partition, context)?;
        let mut outputs = Outputs::new(Arc::clone(&self.writer), self.plan.schema(), &[reducer])?;
        while let Some(batch) = next(&mut rows, &mut outputs, &metrics).await? {
            let timer = metrics.write.timer();
            outputs.add(0, &batch).await?;
            outputs.settle_old().await?;
            timer.done();
        }
        let timer = metrics.write.timer();
        let written = outputs.finish().await?;
        timer.done();
        metrics.bytes.add(written.iter().map(|place| place.num_bytes as usize).sum());
        Ok(written)
    }
}

/// The next rows. While they are long in coming, what was written before goes on to its readers.
async fn next(
    rows: &mut (impl Stream<Item = Result<RecordBatch>> + Unpin),
    outputs: &mut Outputs,
    metrics: &Metrics,
) -> Result<Option<RecordBatch>> {
    loop {
        if let Ok(batch) = timeout(SETTLE, rows.next()).await {
            let batch = batch.transpose()?;
            metrics.rows.add(batch.as_ref().map_or(0, RecordBatch::num_rows));
            return Ok(batch);
        }
        let timer = metrics.write.timer();
        outputs.settle_old().await?;
        timer.done();
    }
}

/// Gives what is held to the reducers.
async fn give(split: &mut Split, outputs: &mut Outputs, reducers: usize, batch_rows: usize) -> Result<()> {
    let rows = split.take();
    for reducer in 0..reducers {
        for batch in rows.of(reducer, batch_rows) {
            outputs.add(reducer, &batch?).await?;
        }
    }
    Ok(())
}

#[async_trait::async_trait]
impl QueryStageExecutor for Stage {
    async fn execute_query_stage(&self, _: usize, context: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
        match &self.route {
            Route::Hash(keys, reducers) => self.by_hash(keys, *reducers, context).await,
            Route::Partitions(reducers) => {
                // At the same time: what fans rows out to its partitions waits for the slowest of them.
                let count = self.plan.output_partitioning().partition_count();
                let parts = (0..count).map(|partition| {
                    let reducer = reducers.get(partition).copied().unwrap_or(partition);
                    self.whole(partition, reducer, Arc::clone(&context))
                });
                Ok(futures::future::try_join_all(parts).await?.into_iter().flatten().collect())
            }
        }
    }

    /// Of each operator in the order in which the scheduler has them, the writer first.
    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let mut all = vec![self.metrics.clone_inner()];
        all.extend(utils::collect_plan_metrics(self.plan.as_ref()));
        all
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        let of = |(column, nulls): (usize, &u64)| TaskColumnStats { column: column as u32, null_count: *nulls, sketches: vec![] };
        self.nulls.lock().iter().enumerate().map(of).collect()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = DisplayableExecutionPlan::with_metrics(self.plan.as_ref());
        write!(f, "shuffle to nodes: job={} stage={}\n{}", self.writer.job, self.writer.stage, plan.indent(false))
    }
}
