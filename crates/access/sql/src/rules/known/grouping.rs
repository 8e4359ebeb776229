//! Grouping sets give rows in which a group's column is null: what was known of that column does not hold for it any more.
//!
//! The engine takes a column that is constant below `cube`, `rollup` or `grouping sets` for constant above, columns that are equal for
//! equal and rows in the order of one for in that order, though its rows come once with the column and once without: orders were left out, and a group could
//! come twice. Behind a union with nothing it knows nothing of the columns.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

type Plan = Arc<dyn ExecutionPlan>;

/// Comes first: what others do follows from what is known.
pub(in crate::rules) fn grouping_sets(node: Plan) -> Result<Transformed<Plan>> {
    let expands = node.downcast_ref::<AggregateExec>().is_some_and(|node| expands(node) && knows(node.input()));
    if !expands {
        return Ok(Transformed::no(node));
    }
    let either = of_nothing_known(Arc::clone(node.children()[0]))?;
    replace_children_if_necessary(node, vec![either]).map(Transformed::yes)
}

/// The same rows, of whose columns nothing is known but their types.
pub(super) fn of_nothing_known(input: Plan) -> Result<Plan> {
    let nothing = Arc::new(EmptyExec::new(input.schema()));
    UnionExec::try_new(vec![input, nothing])
}

/// Whether rows come in once and are counted for each of several sets of groups.
fn expands(node: &AggregateExec) -> bool {
    let first = matches!(node.mode(), AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned);
    first && node.group_expr().has_grouping_set()
}

/// Whether anything is known of columns beside their types.
fn knows(input: &Plan) -> bool {
    let known = input.equivalence_properties();
    !(known.eq_group().is_empty() && known.oeq_class().is_empty())
}
