//! A subquery about the row around it in an aggregate (`max((select count(*) from t where t.k = o.n))`): what it gives is a column of the rows that the
//! aggregate takes.
//!
//! The engine knows such subqueries in conditions and in what is shown, and refused them here. Where a query is cut into tasks, so it did those
//! that are the same for all rows.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::ident;

/// What such columns are called, each with a number behind.
const NAME: &str = "__of_row_";

/// Comes last: what such a subquery is was put right by then.
pub(super) fn analyze(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    let of_rows = OfRow { all: !config.optimizer.enable_physical_uncorrelated_scalar_subquery };
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(groups) if of_rows.are_in(&groups.aggr_expr) => of_rows.below(groups).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// Which subqueries are columns of rows: of those around, or all.
#[derive(Clone, Copy)]
struct OfRow {
    all: bool,
}

impl OfRow {
    fn is(self, expr: &Expr) -> bool {
        matches!(expr, Expr::ScalarSubquery(of) if self.all || !of.outer_ref_columns.is_empty())
    }

    fn are_in(self, exprs: &[Expr]) -> bool {
        exprs.iter().any(|expr| expr.exists(|part| Ok(self.is(part))).unwrap_or(false))
    }

    /// The same groups of rows that have what the subqueries give.
    fn below(self, groups: Aggregate) -> Result<LogicalPlan> {
        let mut shown: Vec<Expr> = groups.input.schema().columns().into_iter().map(Expr::Column).collect();
        let columns = shown.len();
        let names = NamePreserver::new_for_projection();
        let mut aggregates = Vec::with_capacity(groups.aggr_expr.len());
        for expr in groups.aggr_expr {
            let name = names.save(&expr);
            let of_columns = expr.transform_up(|part| {
                if !self.is(&part) {
                    return Ok(Transformed::no(part));
                }
                let column = format!("{NAME}{}", shown.len());
                shown.push(part.alias(column.as_str()));
                Ok(Transformed::yes(ident(column)))
            });
            aggregates.push(name.restore(of_columns.data()?));
        }
        assert!(shown.len() > columns, "a subquery was found");
        let rows = LogicalPlanBuilder::from(groups.input).project(shown)?.build()?;
        Aggregate::try_new(Arc::new(rows), groups.group_expr, aggregates).map(LogicalPlan::Aggregate)
    }
}
