//! The operator that writes a statement's rows to files which nobody sees yet: a task writes those of its own.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::config::ConfigNonZeroUsize;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, Partitioning,
    PlanProperties, execute_input_stream,
};
use forebay_client::{Client, DraftStore};
use forebay_types::{OperationId, WorkerId};
use futures::stream;
use object_store::ObjectStore;
use url::Url;

use super::rows;
use super::sink::{config_of, is_single, keeps};
use crate::plan_nodes::only_child;

/// Writes each partition of its input to files of its own; gives a row for each of them.
pub(super) struct DraftExec {
    input: Arc<dyn ExecutionPlan>,
    /// A [`DataSinkExec`] over nothing: what is written, and how.
    sink: Arc<dyn ExecutionPlan>,
    /// Whose drafts they are.
    pub(super) operation: OperationId,
    /// Workers at which they may begin.
    pub(super) open_at: Vec<WorkerId>,
    /// All rows go to one file, whose name is given.
    single: bool,
    /// Who writes, and the worker beside; none where the plan does not run.
    runs: Option<(Client, Option<WorkerId>)>,
    properties: Arc<PlanProperties>,
}

impl DraftExec {
    /// # Errors
    /// Where the sink is none of those that executors write, or of other columns.
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        sink: Arc<dyn ExecutionPlan>,
        operation: OperationId,
        open_at: Vec<WorkerId>,
        runs: Option<(Client, Option<WorkerId>)>,
    ) -> Result<Self> {
        if let Some(why) = keeps(&sink) {
            return internal_err!("drafts of this are written by nobody: {why}");
        }
        let Some(writes) = sink.downcast_ref::<DataSinkExec>() else { return internal_err!("a sink is expected") };
        if writes.sink().schema().fields().len() != input.schema().fields().len() {
            return internal_err!("files of other columns than those of their rows");
        }
        let single = config_of(writes.sink()).is_some_and(is_single);
        let partitions = Partitioning::UnknownPartitioning(input.output_partitioning().partition_count());
        let equivalences = EquivalenceProperties::new(rows::schema());
        let properties = PlanProperties::new(equivalences, partitions, EmissionType::Final, Boundedness::Bounded);
        Ok(Self { input, sink, operation, open_at, single, runs, properties: Arc::new(properties) })
    }

    /// The same over other rows.
    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        Self::new(input, Arc::clone(&self.sink), self.operation, self.open_at.clone(), self.runs.clone())
    }

    pub(super) fn sink(&self) -> &Arc<dyn ExecutionPlan> {
        &self.sink
    }
}

forebay_types::shown!(DraftExec: sink, operation);

impl DisplayAs for DraftExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DraftExec: sink=")?;
        if let Some(writes) = self.sink.downcast_ref::<DataSinkExec>() { writes.sink().fmt_as(kind, f) } else { Ok(()) }
    }
}

impl ExecutionPlan for DraftExec {
    fn name(&self) -> &str {
        "DraftExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// Where the plan is cut into stages it may be planned again, and several tasks would write the one file.
    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let wanted = if self.single { Distribution::SinglePartition } else { Distribution::UnspecifiedDistribution };
        InputDistributionRequirements::new(vec![wanted])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    crate::no_expressions!();

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.over(only_child(children)?)?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some((client, near)) = &self.runs else { return internal_err!("drafts are written by executors") };
        let sink = Arc::clone(&self.sink);
        let Some(writes) = sink.downcast_ref::<DataSinkExec>() else { return internal_err!("a sink is expected") };
        let columns = Arc::clone(writes.sink().schema());
        let data = execute_input_stream(Arc::clone(&self.input), columns, partition, Arc::clone(&context))?;
        let near = near.filter(|_| !self.single);
        let store = client.draft_store(self.operation, self.open_at.clone(), near);
        let context = Arc::new(writing(&context, store.clone())?);
        let written = async move {
            let Some(writes) = sink.downcast_ref::<DataSinkExec>() else { return internal_err!("a sink is expected") };
            let count = writes.sink().write_all(data, &context).await?;
            rows::told(&store.take(), count)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(rows::schema(), stream::once(written))))
    }

    fn schema(&self) -> SchemaRef {
        rows::schema()
    }
}

/// What the sink of a task runs in: whatever it writes becomes drafts, and it reads nothing.
fn writing(context: &TaskContext, store: DraftStore) -> Result<TaskContext> {
    let runtime = RuntimeEnvBuilder::from_runtime_env(&context.runtime_env())
        .with_object_store_registry(Arc::new(OnlyDrafts(Arc::new(store))))
        .build_arc()?;
    let mut config = context.session_config().clone();
    // There are as many as there are tasks.
    config.options_mut().execution.minimum_parallel_output_files = ConfigNonZeroUsize::try_new(1)?;
    Ok(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        runtime,
    ))
}

/// The one store that the sink of a task finds.
#[derive(Debug)]
struct OnlyDrafts(Arc<DraftStore>);

impl ObjectStoreRegistry for OnlyDrafts {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _: &Url) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::clone(&self.0) as Arc<dyn ObjectStore>)
    }
}
