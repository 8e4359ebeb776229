//! Ballista's hook for running a stage: decides whether its rows go to temporary nodes, and puts our readers into its plan.

use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::execution_plans::{
    OrderedRangeRepartitionExec, PartitionedBoundedWindowAggExec, RangeShuffleReaderExec, RangeShuffleWriterExec,
    ShuffleReaderExec, ShuffleWriterExec, SortShuffleWriterExec, UnorderedRangeRepartitionExec,
};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::not_impl_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion::prelude::SessionConfig;
use forebay_sql::Engine as SqlEngine;
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
    /// Reads what scans read.
    sql: SqlEngine,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, sql: SqlEngine) -> Self {
        Self { own: DefaultExecutionEngine::new(), shared, sql }
    }

    /// The plan with scans that look for decoded columns first, as the worker beside may have some.
    fn with_decoded(&self, plan: Arc<dyn ExecutionPlan>, config: &SessionConfig) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.sql.has_decoded() {
            return Ok(plan);
        }
        let Some(ticket) = travel::ticket(config).map_err(failed)? else { return Ok(plan) };
        self.sql.with_decoded(plan, ticket.operation, ticket.pins).map_err(failed)
    }

    /// The plan with its readers ready to read.
    fn with_readers(&self, plan: Arc<dyn ExecutionPlan>, folder: &str) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform(|node| {
            let Some(reader) = node.downcast_ref::<ShuffleReaderExec>() else { return Ok(Transformed::no(node)) };
            let reader = Reader::new(reader.with_work_dir(folder.to_string()), Arc::clone(&self.shared));
            Ok(Transformed::yes(Arc::new(reader) as Arc<dyn ExecutionPlan>))
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
        check(&plan)?;
        let plan = self.sql.with_checked_pages(self.with_readers(plan, folder)?).map_err(failed)?;
        let plan = self.sql.ready(self.with_decoded(plan, config)?, None).map_err(failed)?;
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

/// Refuses stages that pass on by ranges of values: Ballista reads those itself, and unchecked. It makes them of logical plans only,
/// which the scheduler does not take. And those that write files past who asked: what an executor may write not everyone may whose plans
/// it runs.
fn check(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let by_ranges = |node: &Arc<dyn ExecutionPlan>| node.is::<RangeShuffleReaderExec>() || node.is::<RangeShuffleWriterExec>();
    if plan.exists(|node| Ok(by_ranges(node)))? {
        return not_impl_err!("stages that pass on by ranges of values");
    }
    match plan.exists(|node| Ok(node.is::<DataSinkExec>()))? {
        true => not_impl_err!("files that an executor makes visible: it writes drafts for who may write there"),
        false => Ok(()),
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
    use datafusion::physical_plan::sorts::sort::SortExec;

    use super::*;

    #[test]
    fn what_ballista_would_read_unchecked_does_not_run() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let order = LexOrdering::new([PhysicalSortExpr::new_default(col("n", &schema).unwrap())]).unwrap();
        let by_range = RangeShuffleReaderExec::try_new(1, vec![Vec::new()], Arc::clone(&schema), order.clone()).unwrap();
        let as_it_comes = ShuffleReaderExec::try_new(1, vec![Vec::new()], schema, Partitioning::UnknownPartitioning(1)).unwrap();
        let written = |read: Arc<dyn ExecutionPlan>| {
            let sorted = Arc::new(SortExec::new(order.clone(), read)) as Arc<dyn ExecutionPlan>;
            let plain = ShuffleWriterExec::try_new(JobId::from("j".to_string()), 2, Arc::clone(&sorted), String::new()).unwrap();
            let by_range = RangeShuffleWriterExec::try_new(JobId::from("j".to_string()), 2, sorted, String::new()).unwrap();
            [check(&(Arc::new(plain) as _)).is_ok(), check(&(Arc::new(by_range) as _)).is_ok()]
        };
        assert_eq!(written(Arc::new(as_it_comes)), [true, false]);
        assert_eq!(written(Arc::new(by_range)), [false, false]);
    }
}
