use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::execution_plans::{
    OrderedRangeRepartitionExec, PartitionedBoundedWindowAggExec, RangeShuffleReaderExec, ShuffleReaderExec, ShuffleWriterExec,
    SortShuffleWriterExec, UnorderedRangeRepartitionExec,
};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

use super::outputs::Writer;
use super::place::MapNumber;
use super::read::Reader;
use super::stage::{Route, Stage};
use super::{Shared, failed};
use crate::travel;

/// Runs stages: their results go to nodes where the scheduler says so, else to files as Ballista's own; what they read is
/// where its stage has left it.
pub(crate) struct Engine {
    own: DefaultExecutionEngine,
    shared: Arc<Shared>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { own: DefaultExecutionEngine::new(), shared }
    }

    /// The plan with its readers ready to read.
    fn with_readers(&self, plan: Arc<dyn ExecutionPlan>, folder: &str) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform(|node| {
            let own: Arc<dyn ExecutionPlan> = if let Some(reader) = node.downcast_ref::<ShuffleReaderExec>() {
                Arc::new(Reader::new(reader.with_work_dir(folder.to_string()), Arc::clone(&self.shared)))
            } else if let Some(reader) = node.downcast_ref::<RangeShuffleReaderExec>() {
                Arc::new(reader.with_work_dir(folder.to_string()))
            } else {
                return Ok(Transformed::no(node));
            };
            Ok(Transformed::yes(own))
        })
        .data()
    }
}

impl ExecutionEngine for Engine {
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
        let plan = self.with_readers(plan, folder)?;
        let class = travel::shuffle(config).map_err(failed)?;
        let route = class.and_then(|class| Some((class, route(&plan, &outputs)?)));
        let rows = plan.children().first().map(|rows| Arc::clone(rows));
        let (Some((class, route)), Some(rows)) = (route, rows) else {
            return self.own.create_query_stage_exec(job, stage, task, outputs, plan, folder, config);
        };
        let writer = Writer { shared: Arc::clone(&self.shared), job, stage, number: MapNumber::of_task(task), class };
        Ok(Arc::new(Stage {
            writer: Arc::new(writer),
            plan: rows,
            route,
            metrics: ExecutionPlanMetricsSet::new(),
            nulls: Mutex::default(),
        }))
    }
}

/// How a stage's rows find their reducers; none when Ballista's own writers are to write them: those that say more of their
/// rows than where they are, and columns of dictionaries, which are written once for all of an output.
fn route(plan: &Arc<dyn ExecutionPlan>, outputs: &[usize]) -> Option<Route> {
    let says_more = |node: &Arc<dyn ExecutionPlan>| {
        node.name() == "RuntimeStatsExec"
            || node.is::<PartitionedBoundedWindowAggExec>()
            || node.is::<OrderedRangeRepartitionExec>()
            || node.is::<UnorderedRangeRepartitionExec>()
    };
    let schema = plan.children().first()?.schema();
    if plan.exists(|node| Ok(says_more(node))).unwrap_or(true) || schema.fields().iter().any(|field| has_dictionary(field)) {
        return None;
    }
    if let Some(writer) = plan.downcast_ref::<SortShuffleWriterExec>() {
        let Partitioning::Hash(keys, reducers) = writer.shuffle_output_partitioning() else { return None };
        return Some(Route::Hash(keys.clone(), *reducers));
    }
    plan.is::<ShuffleWriterExec>().then(|| Route::Partitions(outputs.to_vec()))
}

fn has_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..) => true,
        DataType::List(inner)
        | DataType::LargeList(inner)
        | DataType::ListView(inner)
        | DataType::LargeListView(inner)
        | DataType::FixedSizeList(inner, _)
        | DataType::Map(inner, _) => has_dictionary(inner),
        DataType::Struct(inner) => inner.iter().any(|field| has_dictionary(field)),
        _ => false,
    }
}
