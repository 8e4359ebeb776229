//! A sort with a limit whose partitions are merged sorts by all that they are merged by.
//!
//! A column that is constant in each partition is left out of the sorts below a merge, also where it is another constant in each, as in
//! a union of `select 1, ..` and `select 0, ..`. But the partitions of a sort with a limit tell each other how good a row must be to count:
//! one of the last constants could tell that no row of the first is good enough, and rows were missing.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

type Plan = Arc<dyn ExecutionPlan>;

/// Comes when all sorts and merges are there, and before what sorts tell each other is handed down to scans.
pub(super) fn whole_orders(node: Plan) -> Result<Transformed<Plan>> {
    let sort = node.downcast_ref::<SortPreservingMergeExec>().and_then(whole_sort);
    match sort {
        Some(sort) => replace_children_if_necessary(node, vec![sort]).map(Transformed::yes),
        None => Ok(Transformed::no(node)),
    }
}

/// The sort below a merge by all that is merged by, where it is by less.
fn whole_sort(merge: &SortPreservingMergeExec) -> Option<Plan> {
    let sort = merge.input().downcast_ref::<SortExec>()?;
    let shares = sort.fetch().is_some() && sort.preserve_partitioning();
    if !shares || sort.expr() == merge.expr() {
        return None;
    }
    let whole = SortExec::new(merge.expr().clone(), Arc::clone(sort.input()));
    Some(Arc::new(whole.with_preserve_partitioning(true).with_fetch(sort.fetch())))
}
