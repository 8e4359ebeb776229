//! Rows that joins and `unnest` repeat. One row becomes as many as there are on the other side or in its list, and neither the engine nor a
//! budget looks how wide it is. A batch has so many rows at most (`datafusion.execution.batch_size`), here and wherever it comes to above: what
//! so many of the widest row come to is computed before any is repeated, and refused over a bound. The statement is then run again with fewer rows
//! in a batch, as long as it has given none.
//!
//! Owns: what looks at rows before they are repeated ([`Watched`]) and how wide they may be (`bound`), lists that are cut so that no more than a
//! batch is made of one at once (`lists`), and the end of joins that nobody waits for any more (`while_waited`).
//! Never does: change which rows there are.
//!
//! Start with [`bounded`].

mod bound;
mod lists;
mod watched;
mod while_waited;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use forebay_runtime::deadline::Waited;

use crate::functions::CallMemory;
pub(crate) use bound::{fewer_rows, ran_again};
use watched::{Repeated, Watched};

type Plan = Arc<dyn ExecutionPlan>;

/// A plan that is ready to run, whose joins and `unnest` repeat no more than there is memory for, and whose joins end when nobody waits any
/// more, where that is known.
pub(crate) fn bounded(plan: Plan, memory: &CallMemory, waited: Option<&Waited>) -> Result<Plan> {
    plan.transform_up(|node| {
        let Some(repeated) = repeated(&node) else { return Ok(Transformed::no(node)) };
        let inputs = node.children();
        assert_eq!(inputs.len(), repeated.len(), "what is repeated is known of each input of {}", node.name());
        let watched = |(input, repeated): (&Plan, Repeated)| -> Plan {
            if repeated.is_even(&input.schema()) {
                return Arc::clone(input);
            }
            Arc::new(Watched { input: Arc::clone(input), repeated, memory: memory.clone() })
        };
        let watched: Vec<Plan> = inputs.into_iter().zip(repeated).map(watched).collect();
        let node = replace_children_if_necessary(node, watched)?;
        while_waited::ended(node, waited).map(Transformed::yes)
    })
    .data()
}

/// What a node repeats of each of its inputs; none where it repeats nothing.
fn repeated(node: &Plan) -> Option<Vec<Repeated>> {
    if let Some(unnest) = node.downcast_ref::<UnnestExec>() {
        let lists = unnest.list_column_indices().to_vec();
        return (!lists.is_empty()).then(|| vec![Repeated::BesideLists(lists.into())]);
    }
    let (kind, filter) = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        (*join.join_type(), join.filter())
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        (*join.join_type(), join.filter())
    } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        (join.join_type(), join.filter().as_ref())
    } else if let Some(join) = node.downcast_ref::<SymmetricHashJoinExec>() {
        (*join.join_type(), join.filter())
    } else if let Some(join) = node.downcast_ref::<PiecewiseMergeJoinExec>() {
        (join.join_type(), None)
    } else {
        node.downcast_ref::<CrossJoinExec>()?;
        (JoinType::Inner, None)
    };
    let sides = node.children().into_iter().zip([JoinSide::Left, JoinSide::Right]);
    Some(sides.map(|(input, side)| Repeated::Columns(columns(input, side, kind, filter))).collect())
}

/// The columns of a side of which a join repeats values: all, or those that its condition is asked of where each row comes once at most.
fn columns(input: &Plan, side: JoinSide, kind: JoinType, filter: Option<&JoinFilter>) -> Arc<[usize]> {
    match kind {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => (0..input.schema().fields().len()).collect(),
        JoinType::LeftSemi
        | JoinType::RightSemi
        | JoinType::LeftAnti
        | JoinType::RightAnti
        | JoinType::LeftMark
        | JoinType::RightMark => {
            let asked = filter.into_iter().flat_map(JoinFilter::column_indices);
            asked.filter(|column| column.side == side).map(|column| column.index).collect()
        }
    }
}

#[cfg(test)]
mod tests;
