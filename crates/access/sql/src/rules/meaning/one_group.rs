//! `in` and `exists` of a subquery that takes all of its rows together (`select max(x) ..`) and names a column of the query around it: it has one
//! row, also where it takes none.
//!
//! The engine makes groups by what is compared with the query around, and joins them: where there was nothing, `exists` was false, and `not in`
//! true. Here the subquery stands for the one value that it gives, or for what its condition (`having`) says of it.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr, lit, not};

use super::compared::has_subquery;

/// What it is called whether a condition holds.
const NAME: &str = "__holds";

/// Comes when types are made one: what is compared is of one type.
pub(super) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let of_node = |node: LogicalPlan| match node {
        LogicalPlan::Filter(_) => node.map_expressions(|expr| expr.transform_up(of_expr)),
        other => Ok(Transformed::no(other)),
    };
    plan.transform_up_with_subqueries(of_node).data()
}

fn of_expr(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InSubquery(of) if has_one_row(&of.subquery) => {
            let compares = if of.negated { Operator::NotEq } else { Operator::Eq };
            Transformed::yes(binary_expr(*of.expr, compares, Expr::ScalarSubquery(of.subquery)))
        }
        // None is among no row, whatever it is.
        Expr::InSubquery(of) => match holds(&of.subquery)? {
            Some(holds) => {
                let (holds, joins, compares) =
                    if of.negated { (not(holds), Operator::Or, Operator::NotEq) } else { (holds, Operator::And, Operator::Eq) };
                let value = binary_expr(*of.expr, compares, Expr::ScalarSubquery(of.subquery));
                Transformed::yes(binary_expr(holds, joins, value))
            }
            None => Transformed::no(Expr::InSubquery(of)),
        },
        Expr::Exists(of) if has_one_row(&of.subquery) => Transformed::yes(lit(!of.negated)),
        Expr::Exists(of) => match holds(&of.subquery)? {
            Some(holds) => Transformed::yes(if of.negated { not(holds) } else { holds }),
            None => Transformed::no(Expr::Exists(of)),
        },
        other => Transformed::no(other),
    })
}

/// Whether the one row of a subquery is kept by its condition, as a value; none where it is another subquery.
fn holds(of: &Subquery) -> Result<Option<Expr>> {
    let Some(kept) = kept_row(of) else { return Ok(None) };
    let says = kept.predicate.clone().is_true().alias(NAME);
    let plan = LogicalPlanBuilder::from(Arc::clone(&kept.input)).project([says])?.build()?;
    assert_eq!(plan.schema().fields().len(), 1, "what a condition says is one value");
    let (outer_ref_columns, spans) = (plan.all_out_ref_exprs(), of.spans.clone());
    Ok(Some(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans })))
}

/// The condition that the one row of a subquery is kept by, which asks for nothing from around.
pub(super) fn kept_row(of: &Subquery) -> Option<&Filter> {
    let kept = kept(&of.subquery).filter(|_| !of.outer_ref_columns.is_empty());
    kept.filter(|kept| !kept.predicate.contains_outer() && !has_subquery(&kept.predicate))
}

/// The condition that an aggregate without groups is kept by.
fn kept(plan: &LogicalPlan) -> Option<&Filter> {
    match plan {
        LogicalPlan::Projection(of) => kept(&of.input),
        LogicalPlan::SubqueryAlias(of) => kept(&of.input),
        LogicalPlan::Filter(of) if matches!(of.input.as_ref(), LogicalPlan::Aggregate(_)) && takes_all(&of.input) => Some(of),
        _ => None,
    }
}

fn has_one_row(of: &Subquery) -> bool {
    !of.outer_ref_columns.is_empty() && takes_all(&of.subquery)
}

pub(in crate::rules) fn takes_all(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(of) => takes_all(&of.input),
        LogicalPlan::SubqueryAlias(of) => takes_all(&of.input),
        LogicalPlan::Aggregate(of) => of.group_expr.is_empty(),
        _ => false,
    }
}
