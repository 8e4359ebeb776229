//! The operator that stands for Ballista's shuffle reader: puts rows from nodes, files and broadcasts together in batches.

use std::fmt;
use std::sync::Arc;

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::Shared;
use super::fetch::{Counts, rows};
use super::files::{Told, all};
use super::place::MapNumber;

/// The leaf of a stage that reads what another one has left, in nodes and in files, and not less of it than the other one told.
#[derive(Debug)]
pub(super) struct Reader {
    own: ShuffleReaderExec,
    shared: Arc<Shared>,
    metrics: ExecutionPlanMetricsSet,
}

/// Outputs in files that a reader reads at a time.
const FILES_AT_ONCE: usize = 16;

impl Reader {
    pub(super) fn new(own: ShuffleReaderExec, shared: Arc<Shared>) -> Self {
        Self { own, shared, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// All rows of these outputs: what is in nodes first, since the rest of an output in a file comes after it.
    fn rows(&self, locations: Vec<PartitionLocation>, counts: Counts) -> BoxStream<'static, Result<RecordBatch>> {
        let told = Told::of(&locations);
        let (in_nodes, in_files): (Vec<_>, Vec<_>) =
            locations.into_iter().partition(|location| MapNumber::of_output(location.file_id).is_some());
        let found = rows(&self.shared, in_nodes, counts, &self.schema(), in_files.is_empty());
        if in_files.is_empty() {
            return found;
        }
        let each: Vec<_> = in_files.into_iter().map(|location| self.shared.files.rows(location)).collect();
        all(found.chain(stream::iter(each).flatten_unordered(FILES_AT_ONCE)), told)
    }
}

/// Small batches put together; large ones stay where they lie.
fn coalesced(
    rows: BoxStream<'static, Result<RecordBatch>>,
    schema: SchemaRef,
    batch_rows: usize,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    let together = BatchCoalescer::new(schema, batch_rows).with_biggest_coalesce_batch_size(Some(batch_rows / 2));
    stream::try_unfold((rows, together, false), |(mut rows, mut together, mut at_end)| async move {
        loop {
            if let Some(batch) = together.next_completed_batch() {
                return Ok(Some((batch, (rows, together, at_end))));
            }
            if at_end {
                return Ok(None);
            }
            match rows.try_next().await? {
                Some(batch) => together.push_batch(batch)?,
                None => {
                    together.finish_buffered_batch()?;
                    at_end = true;
                }
            }
        }
    })
}

impl DisplayAs for Reader {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShuffleReader: stage {}, partitioning: {}", self.own.stage_id, self.own.properties().partitioning)
    }
}

impl ExecutionPlan for Reader {
    fn name(&self) -> &str {
        "ShuffleReader"
    }

    forebay_types::handed_on! {
        [own]
        fn schema(&self) -> SchemaRef;
        fn properties(&self) -> &Arc<PlanProperties>;
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    forebay_sql::no_expressions!();

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("what reads another stage's results has no children") }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partition = if self.own.broadcast { 0 } else { partition };
        let builder = || MetricBuilder::new(&self.metrics);
        let counts =
            Counts { time: builder().subset_time("fetch_time", partition), bytes: builder().counter("fetched_bytes", partition) };
        let output = builder().output_rows(partition);
        let mut locations = self.own.partition[partition].clone();
        if !locations.is_empty() {
            // Not all reducers begin with the same worker.
            let first = partition % locations.len();
            locations.rotate_left(first);
        }
        let batch_rows = context.session_config().batch_size();
        let found = match self.own.broadcast {
            true => {
                let key = super::broadcast::Key::of(&locations);
                let time = counts.time.clone();
                // Its time is that of the first task, which waits for it.
                let all = self.rows(locations, Counts { time: Time::new(), ..counts });
                let shared = Arc::clone(&self.shared);
                let schema = self.schema();
                let kept = async move {
                    let timer = time.timer();
                    let once = coalesced(all, schema, batch_rows).try_collect::<Vec<_>>();
                    let kept = shared.broadcasts.get(key, once).await;
                    timer.done();
                    kept.map(|batches| stream::iter(batches.as_ref().clone().into_iter().map(Ok::<_, DataFusionError>)))
                };
                stream::once(kept).try_flatten().boxed()
            }
            false => coalesced(self.rows(locations, counts), self.schema(), batch_rows).boxed(),
        };
        let counted = found.inspect_ok(move |batch| output.add(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
