//! Projections that stand on equal ones.
//!
//! `optimize_projections` takes the upper one of two equal projections for needless. But it computes with what the lower one gives: of
//! `select s + s as s from (select s + s as s from t)` one sum was left.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::prelude::ident;

use super::dependencies::forget;

/// Leaves out projections, but not those that an equal one below makes seem needless, nor keys of groups by what is told of others.
pub(super) fn once_each(
    rule: &Arc<dyn OptimizerRule + Send + Sync>,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(apart)?.transform_data(forget)?.transform_data(|plan| rule.rewrite(plan, config))
}

/// The columns of the lower of two equal projections get names that the upper one's don't have. What only passes columns on may go.
fn apart(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(above) = plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::Projection(below) = above.input.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::Projection(above)));
    };
    if above.expr != below.expr || above.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) {
        return Ok(Transformed::no(LogicalPlan::Projection(above)));
    }
    let name = |at: usize| format!("{}__below_{at}", below.schema.field(at).name());
    let named = below.expr.iter().enumerate().map(|(at, expr)| expr.clone().alias(name(at)));
    let lower = Projection::try_new(named.collect(), Arc::clone(&below.input))?;
    let renamed = |expr: Expr| match &expr {
        Expr::Column(column) => Ok(Transformed::yes(ident(name(below.schema.index_of_column(column)?)))),
        _ => Ok(Transformed::no(expr)),
    };
    let names = NamePreserver::new_for_projection();
    let exprs = above.expr.iter().map(|expr| Ok(names.save(expr).restore(expr.clone().transform_up(renamed).data()?)));
    let upper =
        Projection::try_new_with_schema(exprs.collect::<Result<_>>()?, Arc::new(LogicalPlan::Projection(lower)), above.schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(upper)))
}
