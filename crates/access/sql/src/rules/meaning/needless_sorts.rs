//! Orders of what stands in `from`, which nobody sees: left out, but for those by which a limit takes its rows.
//!
//! The engine does so by itself (`optimize_subquery_sort`), and there an order above the limit takes the one below it along.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

/// What stands in `from`, without orders that make no difference.
pub(in crate::rules) fn left_out(plan: LogicalPlan) -> Result<LogicalPlan> {
    let without = |node: LogicalPlan| -> Result<Transformed<LogicalPlan>> {
        let (mut node, mut was_ordered) = (node, false);
        let node = loop {
            match node {
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => (node, was_ordered) = (Arc::unwrap_or_clone(sort.input), true),
                other => break other,
            }
        };
        let next = if matches!(node, LogicalPlan::Limit(_)) { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue };
        Ok(Transformed::new(node, was_ordered, next))
    };
    plan.transform_down(without).data()
}
