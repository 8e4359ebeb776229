//! `in` and `exists` of a subquery that takes all of its rows together (`select max(x) ..`) and names a column of the query around it: it has one
//! row, also where it takes none.
//!
//! The engine makes groups by what is compared with the query around, and joins them: where there was nothing, `exists` was false, and `not in`
//! true. Here the subquery stands for the one value that it gives.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Subquery, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

/// Comes when types are made one: what is compared is of one type.
#[derive(Debug)]
pub(super) struct OneGroup;

impl AnalyzerRule for OneGroup {
    fn name(&self) -> &'static str {
        "one_group_of_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let of_node = |node: LogicalPlan| match node {
            LogicalPlan::Filter(_) => node.map_expressions(|expr| expr.transform_up(|expr| Ok(of_expr(expr)))),
            other => Ok(Transformed::no(other)),
        };
        plan.transform_up_with_subqueries(of_node).data()
    }
}

fn of_expr(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::InSubquery(of) if has_one_row(&of.subquery) => {
            let compares = if of.negated { Operator::NotEq } else { Operator::Eq };
            Transformed::yes(binary_expr(*of.expr, compares, Expr::ScalarSubquery(of.subquery)))
        }
        Expr::Exists(of) if has_one_row(&of.subquery) => Transformed::yes(lit(!of.negated)),
        other => Transformed::no(other),
    }
}

fn has_one_row(of: &Subquery) -> bool {
    !of.outer_ref_columns.is_empty() && takes_all(&of.subquery)
}

fn takes_all(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(of) => takes_all(&of.input),
        LogicalPlan::SubqueryAlias(of) => takes_all(&of.input),
        LogicalPlan::Aggregate(of) => of.group_expr.is_empty(),
        _ => false,
    }
}
