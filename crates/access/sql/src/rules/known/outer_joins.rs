//! Outer joins give rows in which the columns of one side are null: what was constant on that side is not so any more.
//!
//! The engine takes it for constant all the same: `order by` of such a column was left out, and windows by it ran over other rows. Behind
//! a union with nothing it knows nothing of the columns, as below grouping sets.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

use super::grouping::of_nothing_known;

type Plan = Arc<dyn ExecutionPlan>;

/// Comes first: what others do follows from what is known.
pub(in crate::rules) fn outer_joins(node: Plan) -> Result<Transformed<Plan>> {
    let of_nulls = match kind(&node) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return Ok(Transformed::no(node)),
    };
    let (mut sides, mut is_changed) = (Vec::new(), false);
    for (side, of_nulls) in node.children().into_iter().zip(of_nulls) {
        let forgets = of_nulls && !side.equivalence_properties().constants().is_empty();
        sides.push(if forgets { of_nothing_known(Arc::clone(side))? } else { Arc::clone(side) });
        is_changed |= forgets;
    }
    assert_eq!(sides.len(), 2, "a join has two sides");
    match is_changed {
        true => replace_children_if_necessary(node, sides).map(Transformed::yes),
        false => Ok(Transformed::no(node)),
    }
}

fn kind(node: &Plan) -> Option<JoinType> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return Some(*join.join_type());
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        return Some(*join.join_type());
    }
    node.downcast_ref::<SortMergeJoinExec>().map(SortMergeJoinExec::join_type)
}
