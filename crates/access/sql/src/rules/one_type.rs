//! Keys of joins that come of subqueries are of one type.
//!
//! A subquery that names a column of a union around it takes that column to be of the first side's type. When the sides are of several,
//! the union becomes one of the widest; the comparison in the subquery was looked at before. The join that it becomes compared an `int` with a
//! `bigint`: it failed, or nothing met.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};

/// Comes when subqueries have become joins: looks at types once more.
#[derive(Debug)]
pub(super) struct OneType;

impl OptimizerRule for OneType {
    fn name(&self) -> &'static str {
        "one_type_of_keys"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !plan.exists(|node| Ok(compares_types(node)))? {
            return Ok(Transformed::no(plan));
        }
        TypeCoercion::new().analyze(plan, &config.options()).map(Transformed::yes)
    }
}

/// Whether a node compares values of several types.
fn compares_types(node: &LogicalPlan) -> bool {
    let schema = merge_schema(&node.inputs());
    let type_of = |value: &Expr| value.get_type(&schema).ok();
    let differ = |left: &Expr, right: &Expr| type_of(left) != type_of(right);
    let keys = match node {
        LogicalPlan::Join(join) => join.on.as_slice(),
        _ => &[],
    };
    let within = |expression: &Expr| {
        let differs = |part: &Expr| match part {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => Ok(op.supports_propagation() && differ(left, right)),
            _ => Ok(false),
        };
        expression.exists(differs).unwrap_or(false)
    };
    keys.iter().any(|(left, right)| differ(left, right)) || node.expressions().iter().any(within)
}
