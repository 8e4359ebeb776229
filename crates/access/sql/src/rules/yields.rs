//! Nodes that make many rows of few give way between their batches.
//!
//! DataFusion lets a plan stop for others where rows come from (`EnsureCooperative`). A join makes thousands of batches of one that
//! it reads; a count above it took them all in one go, and for minutes the thread did nothing else: no timer, no other request, no
//! Ctrl-C.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::unnest::UnnestExec;

type Plan = Arc<dyn ExecutionPlan>;

/// Comes last: rules that look for joins find them as they are.
pub(super) fn yields(node: Plan) -> Result<Transformed<Plan>> {
    Ok(if multiplies(&node) { Transformed::yes(Arc::new(CooperativeExec::new(node)) as Plan) } else { Transformed::no(node) })
}

/// Whether a node may give many more rows than it takes.
fn multiplies(node: &Plan) -> bool {
    let joins = node.children().len() > 1 && matches!(node.cardinality_effect(), CardinalityEffect::Unknown);
    joins || node.is::<UnnestExec>()
}
