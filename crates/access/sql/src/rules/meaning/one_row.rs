//! A subquery that stands for one value and names columns of the query around it gives one row for each of those, or is refused.
//!
//! The engine joins such a subquery to the query around it, and what gives several rows had these repeated. It takes groups for one where all
//! of their columns stand in conditions that name a column from around, whatever these say, and grouping sets too; and groups above a join for
//! one by what a key of one side determines.

use std::collections::HashSet;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator};

use super::compared::{column_of, has_subquery};

/// Comes first: what a condition compares is as it was written.
pub(super) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let check = |part: &Expr| match part {
        Expr::ScalarSubquery(of) if !of.outer_ref_columns.is_empty() && !gives_one(&of.subquery) => plan_err!(
            "a subquery that stands for one value and names a column of the query around it may give several rows: write an \
             aggregate (`max(x)`), and group by no more than columns that are equal to something from around"
        ),
        _ => Ok(TreeNodeRecursion::Continue),
    };
    plan.apply_with_subqueries(|node| node.apply_expressions(|expr| expr.apply(check)))?;
    Ok(plan)
}

/// Whether a subquery gives one row at most for a row of the query around it.
fn gives_one(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(of) => gives_one(&of.input),
        LogicalPlan::SubqueryAlias(of) => gives_one(&of.input),
        LogicalPlan::Aggregate(groups) => are_one(groups, &mut HashSet::new()),
        LogicalPlan::Filter(filter) if matches!(filter.input.as_ref(), LogicalPlan::Aggregate(_)) => {
            let mut fixed = HashSet::new();
            fixed_by(&filter.predicate, &filter.input, &mut fixed);
            matches!(filter.input.as_ref(), LogicalPlan::Aggregate(groups) if are_one(groups, &mut fixed))
        }
        other => other.max_rows().is_some_and(|rows| rows <= 1) && !is_told_wrongly(other),
    }
}

/// Whether groups are one at most, where some columns have one value in all rows.
fn are_one<'a>(groups: &'a Aggregate, fixed: &mut HashSet<&'a Column>) -> bool {
    fixed_below(&groups.input, fixed);
    let is_one = |group: &Expr| match group {
        Expr::Literal(..) => true,
        Expr::GroupingSet(_) => false,
        other => !other.is_volatile() && other.column_refs().iter().all(|column| fixed.contains(column)),
    };
    groups.group_expr.iter().all(is_one)
}

/// Columns that conditions leave one value of. A join that adds nulls adds a value.
fn fixed_below<'a>(plan: &'a LogicalPlan, fixed: &mut HashSet<&'a Column>) {
    match plan {
        LogicalPlan::Filter(filter) => {
            fixed_by(&filter.predicate, &filter.input, fixed);
            fixed_below(&filter.input, fixed);
        }
        LogicalPlan::Projection(of) => fixed_of(&of.expr, &of.input, fixed),
        LogicalPlan::Aggregate(of) => fixed_of(&of.group_expr, &of.input, fixed),
        LogicalPlan::Distinct(Distinct::All(input)) => fixed_below(input, fixed),
        LogicalPlan::Join(join) => {
            if matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti) {
                fixed_below(&join.left, fixed);
            }
            if matches!(join.join_type, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti) {
                fixed_below(&join.right, fixed);
            }
        }
        _ => {}
    }
}

/// The same of columns that are shown as they are.
fn fixed_of<'a>(shown: &'a [Expr], input: &'a LogicalPlan, fixed: &mut HashSet<&'a Column>) {
    let mut below = HashSet::new();
    fixed_below(input, &mut below);
    fixed.extend(shown.iter().filter_map(Expr::try_as_col).filter(|column| below.contains(column)));
}

fn fixed_by<'a>(predicate: &'a Expr, input: &LogicalPlan, fixed: &mut HashSet<&'a Column>) {
    let schema = input.schema();
    let is_one = |value: &Expr| !value.any_column_refs() && !value.is_volatile() && !has_subquery(value);
    for condition in split_conjunction(predicate) {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { continue };
        let (left, right) = (left.as_ref(), right.as_ref());
        // Several texts may be one number.
        let (left_text, right_text) = (is_text(left, schema), is_text(right, schema));
        if is_one(right) && (right_text || !left_text) {
            fixed.extend(column_of(left, schema));
        }
        if is_one(left) && (left_text || !right_text) {
            fixed.extend(column_of(right, schema));
        }
    }
}

fn is_text(value: &Expr, schema: &DFSchema) -> bool {
    value.get_type(schema).is_ok_and(|kind| match kind {
        DataType::Dictionary(_, word) => word.is_string(),
        kind => kind.is_string(),
    })
}

/// Whether what is told of a plan's columns may come from groups above a join.
fn is_told_wrongly(plan: &LogicalPlan) -> bool {
    let joins = |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Join(_)));
    let misleads = |node: &LogicalPlan| -> Result<bool> {
        let LogicalPlan::Aggregate(groups) = node else { return Ok(false) };
        let is_told = !groups.input.schema().functional_dependencies().is_empty();
        Ok(!groups.group_expr.is_empty() && is_told && groups.input.exists(joins)?)
    };
    plan.exists(misleads).unwrap_or(true)
}
