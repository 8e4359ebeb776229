//! A subquery that stands for one value is null where it gives no row, whatever its column says of itself.
//!
//! The engine takes the column's word: of `(select count(*) from t where .. group by k)` it leaves out `coalesce` around it, and `is null` is false.
//! And it forgets a condition of all rows together (`having count(*) = 0`) that is true of no rows, but for values that are not null of these: here
//! it is part of the value.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Case, Expr, LogicalPlan, LogicalPlanBuilder, Subquery, lit};

use super::one_group::{kept_row, takes_all};

/// Comes behind all that looks for such subqueries, when types are made one.
pub(super) fn of_expr(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(of) = &expr else { return Ok(Transformed::no(expr)) };
    if let Some(conditional) = conditional(of)? {
        return Ok(Transformed::yes(Expr::ScalarSubquery(conditional)));
    }
    if !may_be_none(of) {
        return Ok(Transformed::no(expr));
    }
    // A function that may give null: the value itself, since nothing is equal to null.
    let null = ScalarValue::try_new_null(of.subquery.schema().field(0).data_type())?;
    Ok(Transformed::yes(nullif(expr, lit(null))))
}

/// A subquery whose one row is kept by a condition, as one of a row whose value is null where that does not hold.
fn conditional(of: &Subquery) -> Result<Option<Subquery>> {
    let LogicalPlan::Projection(shown) = of.subquery.as_ref() else { return Ok(None) };
    let (LogicalPlan::Filter(_), [value]) = (shown.input.as_ref(), shown.expr.as_slice()) else { return Ok(None) };
    let Some(kept) = kept_row(of) else { return Ok(None) };
    let name = NamePreserver::new_for_projection().save(value);
    let held = (Box::new(kept.predicate.clone()), Box::new(value.clone().unalias()));
    let value = name.restore(Expr::Case(Case::new(None, vec![held], None)));
    let plan = LogicalPlanBuilder::from(Arc::clone(&kept.input)).project([value])?.build()?;
    assert_eq!(plan.schema().fields().len(), 1, "it stands for one value");
    let (outer_ref_columns, spans) = (of.outer_ref_columns.clone(), of.spans.clone());
    Ok(Some(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans }))
}

/// Whether its column is said not to be null, and may have no row.
fn may_be_none(of: &Subquery) -> bool {
    let fields = of.subquery.schema().fields();
    fields.len() == 1 && !fields[0].is_nullable() && !takes_all(&of.subquery)
}
