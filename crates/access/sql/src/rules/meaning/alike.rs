//! `except all` and `intersect all` count rows that are alike: the engine makes an anti and a semi join of them, in which one row of the right
//! side meets all that are like it on the left.
//!
//! Here rows that are alike are numbered on both sides, and their numbers meet as well. What is alike is said of values of the type that both
//! sides are compared in: two whole numbers may be one number with a point.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, ExprSchemable, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, Operator, cast, lit,
};

/// What the numbers of both sides are called.
const NUMBERS: (&str, &str) = ("__alike_left", "__alike_right");

/// Comes before types are made one: what such a join looks like is known of statements as they are written.
pub(super) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let counted = |plan: LogicalPlan| match plan {
        LogicalPlan::Join(join) if counts(&join) => numbered(join).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    };
    plan.transform_up_with_subqueries(counted).data()
}

/// Whether a join stands for `except all` or `intersect all`: nothing else that is written is one by all columns, in which nulls are equal.
/// Without `all`, and where that is the same, its left side has no rows that are alike.
fn counts(join: &Join) -> bool {
    let is_distinct = matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)));
    let columns = join.left.schema().fields();
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == columns.len()
        && !is_distinct
        && columns.iter().all(|column| column.name() != NUMBERS.0)
}

fn numbered(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    assert_eq!(join.on.len(), columns.len(), "rows are alike by all of their columns");
    let (mut on_left, mut on_right) = (Vec::new(), Vec::new());
    for (left, right) in &join.on {
        let (of_left, of_right) = (left.get_type(join.left.schema())?, right.get_type(join.right.schema())?);
        let (as_left, as_right) = BinaryTypeCoercer::new(&of_left, &Operator::Eq, &of_right).get_input_types()?;
        on_left.push(compared(left, &of_left, as_left));
        on_right.push(compared(right, &of_right, as_right));
    }
    let left = with_number(&join.left, on_left, NUMBERS.0)?;
    let right = with_number(&join.right, on_right, NUMBERS.1)?;
    let mut on = join.on;
    on.push((Expr::Column(Column::from_name(NUMBERS.0)), Expr::Column(Column::from_name(NUMBERS.1))));
    let (constraint, nulls) = (JoinConstraint::On, join.null_equality);
    let join = Join::try_new(Arc::new(left), Arc::new(right), on, None, join.join_type, constraint, nulls, false)?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()
}

/// A column as the join compares it.
fn compared(column: &Expr, of: &DataType, compared: DataType) -> Expr {
    // To windows -0.0 is not 0.0, to joins it is.
    let is_float = compared.is_floating();
    let column = if *of == compared { column.clone() } else { cast(column.clone(), compared) };
    if is_float { column + lit(0.0) } else { column }
}

/// The rows of a side, each with its number among those that are like it.
fn with_number(side: &Arc<LogicalPlan>, alike: Vec<Expr>, name: &str) -> Result<LogicalPlan> {
    let number = row_number().partition_by(alike).build()?;
    let plan = LogicalPlanBuilder::from(Arc::clone(side)).window([number])?.build()?;
    let mut shown: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    assert_eq!(shown.len(), side.schema().fields().len() + 1, "a number stands behind the columns");
    let number = shown.pop().map(|number| number.alias(name));
    shown.extend(number);
    LogicalPlanBuilder::from(plan).project(shown)?.build()
}
