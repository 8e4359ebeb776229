//! A subquery that takes all of its rows together and gives the same whatever they are (`select 5 from t where t.k = o.n having count(*) >= 0`): that
//! value stands for it.
//!
//! `scalar_subquery_to_join` joins such a subquery to the query around it, where it names a column of that, and knows what aggregates are of no
//! rows, but not what a constant is: it was null there.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::meaning::{has_subquery, takes_all};

/// Joins subqueries that stand for one value, but for those.
pub(super) fn stand_alone(
    rule: &Arc<dyn OptimizerRule + Send + Sync>,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Projection(_)) {
        return rule.rewrite(plan, config);
    }
    let names = NamePreserver::new(&plan);
    let changed = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up(constant)?.update_data(|expr| name.restore(expr)))
    })?;
    changed.transform_data(|plan| rule.rewrite(plan, config))
}

fn constant(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(of) = &expr else { return Ok(Transformed::no(expr)) };
    let LogicalPlan::Projection(shown) = of.subquery.as_ref() else { return Ok(Transformed::no(expr)) };
    let [value] = shown.expr.as_slice() else { return Ok(Transformed::no(expr)) };
    let is_constant = !value.any_column_refs() && !value.contains_outer() && !value.is_volatile() && !has_subquery(value);
    if of.outer_ref_columns.is_empty() || !is_constant || !takes_all(&of.subquery) {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(value.clone().unalias()))
}
