//! Fields of structs that a query makes are taken above its outer joins, and those of unions above these where one side has nulls.
//!
//! The engine asks for fields as far down as it can. Of a struct that is made above an outer join of one side's columns it asked on that
//! side: where the join adds nulls, a field was null that `named_struct`, `case` or `coalesce` have a value for.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, ExpressionPlacement, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Asks for fields further down, where that is the same.
pub(super) fn fields_stay(rule: &Rule, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    // Each node is asked about by itself: what asks for no fields has nothing to be looked for in.
    let is_asked = rule.apply_order().is_none() || matches!(&plan, LogicalPlan::Projection(of) if of.expr.iter().any(asks));
    let stays = is_asked
        && (plan.exists(|node| Ok(is_of_nulls(node)))?
            || plan.exists(|node| Ok(adds_nulls(node)))? && plan.exists(|node| Ok(makes_structs(node)))?);
    match stays {
        true => Ok(Transformed::no(plan)),
        false => rule.rewrite(plan, config),
    }
}

/// Whether fields are asked for, or were as far as here.
fn asks(expr: &Expr) -> bool {
    let is_field = |part: &Expr| part.placement() == ExpressionPlacement::MoveTowardsLeafNodes;
    let is_taken = matches!(expr, Expr::Alias(alias) if alias.name.starts_with("__datafusion_extracted"));
    is_taken || expr.exists(|part| Ok(is_field(part))).unwrap_or(true)
}

/// Whether a union has nulls where its first side has none: with fields that are asked for it would be told as that side is.
fn is_of_nulls(node: &LogicalPlan) -> bool {
    let LogicalPlan::Union(union) = node else { return false };
    let told_otherwise = |first: &Arc<LogicalPlan>| {
        let mut all = union.schema.fields().iter().enumerate();
        all.any(|(at, field)| field.is_nullable() && !is_nullable(first, at))
    };
    union.inputs.first().is_some_and(told_otherwise)
}

/// Whether a column may be null, by what makes it: since that was told it may have become a constant.
fn is_nullable(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_nullable(&alias.input, at),
        LogicalPlan::Projection(of) => of.expr[at].nullable(of.input.schema().as_ref()).unwrap_or(true),
        other => other.schema().field(at).is_nullable(),
    }
}

fn adds_nulls(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full))
}

/// Whether a node makes structs, or maps, of anything but the fields of others.
fn makes_structs(node: &LogicalPlan) -> bool {
    let makes = |part: &Expr| match part {
        Expr::Case(_) => true,
        Expr::ScalarFunction(call) => call.func.name() != "get_field",
        _ => false,
    };
    let exprs = node.expressions();
    if !exprs.iter().any(|expr| expr.exists(|part| Ok(makes(part))).unwrap_or(true)) {
        return false;
    }
    let schema = merge_schema(&node.inputs());
    let of_structs = |part: &Expr| makes(part) && part.get_type(&schema).is_ok_and(|kind| kind.is_nested());
    exprs.iter().any(|expr| expr.exists(|part| Ok(of_structs(part))).unwrap_or(true))
}
