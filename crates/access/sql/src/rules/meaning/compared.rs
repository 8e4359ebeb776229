//! A subquery that stands for one value, or that `in` and `exists` ask for groups, about rows of which something is equal to a column of the
//! query around it: `t.s = o.n` of texts and numbers, `cast(t.x as int) = o.n`.
//!
//! The engine makes groups by the column and joins them by its cast: of '1' and '01' there were two groups for one row, each with its own count.
//! Here what is compared is a column, which the groups are made by.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr,
};
use datafusion::prelude::ident;

/// What such values are called, each with a number behind.
const NAME: &str = "__compared_";

/// Comes when types are made one: what is cast for it is known.
pub(super) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let count = Cell::new(0);
    plan.transform_up_with_subqueries(|node| node.map_expressions(|expr| expr.transform_up(|expr| of_expr(expr, &count)))).data()
}

fn of_expr(expr: Expr, count: &Cell<usize>) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarSubquery(of) => Ok(of_subquery(of, count)?.update_data(Expr::ScalarSubquery)),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let changed = of_subquery(subquery, count)?;
            Ok(changed.update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        Expr::Exists(Exists { subquery, negated }) => {
            Ok(of_subquery(subquery, count)?.update_data(|subquery| Expr::Exists(Exists { subquery, negated })))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn of_subquery(mut of: Subquery, count: &Cell<usize>) -> Result<Transformed<Subquery>> {
    // Elsewhere no groups are made, and it does not matter how many rows `in` and `exists` find.
    let computes = |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Aggregate(groups) if !groups.aggr_expr.is_empty()));
    if of.outer_ref_columns.is_empty() || !of.subquery.exists(computes)? {
        return Ok(Transformed::no(of));
    }
    let changed = Arc::unwrap_or_clone(of.subquery).transform_up(|node| of_node(node, count))?;
    of.subquery = Arc::new(changed.data);
    Ok(Transformed::new_transformed(of, changed.transformed))
}

fn of_node(node: LogicalPlan, count: &Cell<usize>) -> Result<Transformed<LogicalPlan>> {
    match node {
        // A condition of groups that are made (`having`) makes none.
        LogicalPlan::Filter(filter) if !matches!(filter.input.as_ref(), LogicalPlan::Aggregate(_)) => by_columns(filter, count),
        other => Ok(Transformed::no(other)),
    }
}

/// The same rows, found by columns.
fn by_columns(filter: Filter, count: &Cell<usize>) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(filter.input.schema());
    let shown: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let (mut wider, mut first, mut conditions) = (shown.clone(), Vec::new(), Vec::new());
    for condition in split_conjunction(&filter.predicate) {
        let Some((own, around)) = compared(condition, &schema) else {
            // What is about rows of its own comes first: not of all of them something may be computed.
            let those = if condition.contains_outer() { &mut conditions } else { &mut first };
            those.push(condition.clone());
            continue;
        };
        let name = format!("{NAME}{}", count.replace(count.get() + 1));
        wider.push(own.clone().alias(name.as_str()));
        conditions.push(binary_expr(ident(name), Operator::Eq, around.clone()));
    }
    if wider.len() == shown.len() {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    assert!(conditions.len() >= wider.len() - shown.len(), "each value is compared");
    let mut plan = LogicalPlanBuilder::from(Arc::clone(&filter.input));
    if let Some(condition) = conjunction(first) {
        plan = plan.filter(condition)?;
    }
    plan = plan.project(wider)?;
    if let Some(condition) = conjunction(conditions) {
        plan = plan.filter(condition)?;
    }
    plan.project(shown)?.build().map(Transformed::yes)
}

/// A value of the subquery, and what it is equal to of the row around; none where it is a column already, or compared otherwise.
fn compared<'a>(condition: &'a Expr, schema: &DFSchema) -> Option<(&'a Expr, &'a Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    let is_around = |value: &Expr| value.contains_outer() && !value.any_column_refs();
    let (left, right) = (left.as_ref(), right.as_ref());
    if is_around(right) && is_computed(left, schema) {
        return Some((left, right));
    }
    (is_around(left) && is_computed(right, schema)).then_some((right, left))
}

/// Whether a value is computed of columns so that rows of one value may have several of these.
fn is_computed(value: &Expr, schema: &DFSchema) -> bool {
    let is_own = value.any_column_refs() && !value.contains_outer() && !value.is_volatile() && !has_subquery(value);
    is_own && column_of(value, schema).is_none()
}

/// The column that a value is, or is as different as.
pub(super) fn column_of<'a>(value: &'a Expr, schema: &DFSchema) -> Option<&'a Column> {
    match value {
        Expr::Column(column) => Some(column),
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Column(column) => {
                let from = cast.expr.get_type(schema).ok()?;
                keeps_apart(&from, cast.field.data_type()).then_some(column)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a query stands in a value, which may be about the row that it is compared with.
pub(in crate::rules) fn has_subquery(value: &Expr) -> bool {
    value.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)))).unwrap_or(true)
}

/// Whether a cast leaves values different that are so.
fn keeps_apart(from: &DataType, to: &DataType) -> bool {
    // Words of a dictionary are compared, and grouped, by what they are.
    let plain = |kind: &DataType| match kind {
        DataType::Dictionary(_, word) => (**word).clone(),
        other => other.clone(),
    };
    let (from, to) = (&plain(from), &plain(to));
    let width = |kind: &DataType| kind.primitive_width().unwrap_or(0);
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let of_one_kind =
        from.is_signed_integer() && to.is_signed_integer() || from.is_unsigned_integer() && to.is_unsigned_integer();
    if of_one_kind {
        return width(to) >= width(from);
    }
    from == to || is_text(from) && is_text(to) || from.is_unsigned_integer() && to.is_signed_integer() && width(to) > width(from)
}
