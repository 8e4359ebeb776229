//! An aggregate without groups gives its one row also where a condition above it is never true.
//!
//! `push_down_filter` moves a condition below an aggregate when all of its columns are groups. One that became a constant on its way, as of
//! the columns of a union, has no columns: below an aggregate without groups it took the rows away, and the row that the aggregate gives
//! over nothing passed.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Moves conditions down, but not below an aggregate without groups.
pub(super) fn above_aggregates(
    rule: &Arc<dyn OptimizerRule + Send + Sync>,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Filter(filter) if has_no_groups(&filter.input) => Ok(Transformed::no(plan)),
        _ => rule.rewrite(plan, config),
    }
}

fn has_no_groups(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}
