//! Projections that stand on equal ones.
//!
//! `optimize_projections` takes the upper one of two equal projections for needless. But it computes with what the lower one gives: of
//! `select s + s as s from (select s + s as s from t)` one sum was left. So it does with those that are equal when what lies between them is
//! merged into the upper one: `select s + 1 as s from (select s * 2 as s from (select s * 2 + 1 as s from t))`.

use std::collections::HashSet;
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

/// The columns of a projection that one above it may be equal to get names that the upper one's don't have. What only passes columns on may go.
fn apart(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(above) = plan else { return Ok(Transformed::no(plan)) };
    match between_equal(&above) {
        Some(between) => renamed(above, between).map(LogicalPlan::Projection).map(Transformed::yes),
        None => Ok(Transformed::no(LogicalPlan::Projection(above))),
    }
}

/// How many projections lie between one and another that it may be equal to when those are merged into it.
fn between_equal(above: &Projection) -> Option<usize> {
    let mut input: &LogicalPlan = &above.input;
    let mut between = 0;
    while let LogicalPlan::Projection(below) = input {
        if names(above).eq(names(below)) && computes_of_itself(below) {
            return Some(between);
        }
        input = &below.input;
        between += 1;
    }
    None
}

fn names(of: &Projection) -> impl Iterator<Item = &str> {
    of.schema.fields().iter().map(|field| field.name().as_str())
}

/// Whether a projection computes something, of columns that are all called as those that it gives.
fn computes_of_itself(of: &Projection) -> bool {
    let given: HashSet<&str> = names(of).collect();
    of.expr.iter().any(|expr| !matches!(expr, Expr::Column(_)))
        && of.expr.iter().all(|expr| expr.column_refs().iter().all(|column| given.contains(column.name.as_str())))
}

/// A projection above others, so many below which one gives its columns other names.
fn renamed(above: Projection, between: usize) -> Result<Projection> {
    let LogicalPlan::Projection(below) = above.input.as_ref() else { return Ok(above) };
    if between > 0 {
        let lower = Arc::new(LogicalPlan::Projection(renamed(below.clone(), between - 1)?));
        return Projection::try_new_with_schema(above.expr, lower, above.schema);
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
    Projection::try_new_with_schema(exprs.collect::<Result<_>>()?, Arc::new(LogicalPlan::Projection(lower)), above.schema)
}
