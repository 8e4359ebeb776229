//! The order in which a plan's scans will be read, without those that a LIMIT ends before they have read much.

use std::sync::Arc;

use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// The scans of a plan in the order in which they will be read: what a join builds from comes before what it probes
/// with. Left out are scans below a LIMIT that ends them early with nothing between that reads to the end: what they
/// will read can't be told, and is little.
pub(crate) fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let mut found = Vec::new();
    walk(plan, false, &mut found);
    found
}

fn walk(plan: &Arc<dyn ExecutionPlan>, ends_early: bool, found: &mut Vec<Arc<dyn ExecutionPlan>>) {
    if plan.downcast_ref::<DataSourceExec>().is_some() {
        if !ends_early && plan.fetch().is_none() {
            found.push(Arc::clone(plan));
        }
        return;
    }
    // A sort with a fetch reads all of its input; any other operator with one stops.
    let reads_all = plan.downcast_ref::<SortExec>().is_some() || plan.downcast_ref::<AggregateExec>().is_some();
    let ends_early = !reads_all && (ends_early || plan.fetch().is_some());
    let builds_first = plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<CrossJoinExec>().is_some()
        || plan.downcast_ref::<NestedLoopJoinExec>().is_some();
    for (at, child) in plan.children().into_iter().enumerate() {
        walk(child, ends_early && !(builds_first && at == 0), found);
    }
}

/// In how many streams a scan is read at once.
pub(crate) fn streams(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.output_partitioning().partition_count().max(1)
}
