//! A subquery about the row around it that is the first of some rows (`select t.x from t where t.k = o.n order by t.y limit 1`): an aggregate of these.
//!
//! The engine joins aggregates to the query around, and no limits: it refused such subqueries.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::{Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, SkipType, SortExpr, Subquery};

/// What the value is called: by a name of its rows it would be one of what they are joined by.
const NAME: &str = "__first_row";

/// Comes when types are made one, and before what looks at aggregates of subqueries.
pub(super) fn of_expr(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(of) = &expr else { return Ok(Transformed::no(expr)) };
    match aggregated(of)? {
        Some(first) => Ok(Transformed::yes(Expr::ScalarSubquery(first))),
        None => Ok(Transformed::no(expr)),
    }
}

/// The same of all rows; none where it is no first row, or one of what is not as it was read.
fn aggregated(of: &Subquery) -> Result<Option<Subquery>> {
    let (limit, cast) = match of.subquery.as_ref() {
        LogicalPlan::Limit(limit) => (limit, None),
        LogicalPlan::Projection(shown) => match (shown.expr.as_slice(), shown.input.as_ref()) {
            ([cast], LogicalPlan::Limit(limit)) if is_cast(cast) => (limit, Some(cast)),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    if of.outer_ref_columns.is_empty() || !is_one(limit)? {
        return Ok(None);
    }
    let (value, order, rows) = parts(limit);
    let is_around = value.contains_outer() || order.iter().any(|by| by.expr.contains_outer());
    if is_around || rows.exists(|node| Ok(!is_plain(node)))? {
        return Ok(None);
    }
    let groups =
        LogicalPlanBuilder::from(Arc::clone(rows)).aggregate(Vec::<Expr>::new(), vec![first_value(value, order)])?.build()?;
    let first = Expr::Column(Column::from(groups.schema().qualified_field(0)));
    let first = match cast {
        Some(cast) => cast.clone().unalias().transform_up(|expr| of_column(expr, &first)).data()?,
        None => first,
    };
    let plan = LogicalPlanBuilder::from(groups).project([first.alias(NAME)])?.build()?;
    assert_eq!(plan.schema().fields().len(), 1, "it stands for one value");
    let (outer_ref_columns, spans) = (of.outer_ref_columns.clone(), of.spans.clone());
    Ok(Some(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans }))
}

/// Whether a column is shown as it is, or of the type that it is compared in: null where it is null.
fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(of) => is_cast(&of.expr),
        Expr::Cast(of) => is_cast(&of.expr),
        _ => false,
    }
}

fn of_column(expr: Expr, column: &Expr) -> Result<Transformed<Expr>> {
    Ok(if matches!(expr, Expr::Column(_)) { Transformed::yes(column.clone()) } else { Transformed::no(expr) })
}

fn is_one(limit: &Limit) -> Result<bool> {
    let is_first = matches!(limit.get_skip_type()?, SkipType::Literal(0));
    Ok(is_first && matches!(limit.get_fetch_type()?, FetchType::Literal(Some(1))))
}

/// What is shown of the rows of a limit, in what order, and of which rows.
fn parts(limit: &Limit) -> (Expr, Vec<SortExpr>, &Arc<LogicalPlan>) {
    let column = |rows: &LogicalPlan| Expr::Column(Column::from(rows.schema().qualified_field(0)));
    match limit.input.as_ref() {
        LogicalPlan::Sort(sort) => (column(&sort.input), sort.expr.clone(), &sort.input),
        LogicalPlan::Projection(shown) => match (shown.expr.as_slice(), shown.input.as_ref()) {
            ([value], LogicalPlan::Sort(sort)) => (value.clone().unalias(), sort.expr.clone(), &sort.input),
            _ => (column(&limit.input), Vec::new(), &limit.input),
        },
        _ => (column(&limit.input), Vec::new(), &limit.input),
    }
}

/// Whether a plan gives what stands in tables, row by row: of what is computed of several rows not all may be about the row around.
fn is_plain(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) => true,
        _ => false,
    }
}
