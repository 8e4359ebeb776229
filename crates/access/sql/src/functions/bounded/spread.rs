//! Constants in each row that a node gives, and for each element of a list that a lambda is called for: they are copied for all rows of a batch,
//! and no budget counts them.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use forebay_types::format_bytes;

/// An error for a node whose constants come to more than `most` bytes in the rows of a batch. A lambda is called for as many elements at once,
/// however few rows there are.
pub(super) fn check(node: &LogicalPlan, batch_rows: usize, most: u64) -> Result<()> {
    let is_kept = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_));
    let (mut bytes, mut of_lambdas) = (0_u64, 0_u64);
    node.apply_expressions(|expr| {
        if is_kept {
            bytes = bytes.saturating_add(constants(expr)?);
        }
        expr.apply(|expr| {
            let Expr::Lambda(lambda) = expr else { return Ok(TreeNodeRecursion::Continue) };
            of_lambdas = of_lambdas.saturating_add(constants(&lambda.body)?);
            Ok(TreeNodeRecursion::Jump)
        })
    })?;
    let are_many = |bytes: u64, rows: usize| bytes.saturating_mul(rows as u64) > most;
    if are_many(of_lambdas, batch_rows) {
        return Err(refused(of_lambdas, batch_rows, most));
    }
    if !are_many(bytes, batch_rows) {
        return Ok(());
    }
    let rows = node.inputs().first().and_then(|input| input.max_rows()).map_or(batch_rows, |rows| rows.min(batch_rows));
    if are_many(bytes, rows) { Err(refused(bytes, rows, most)) } else { Ok(()) }
}

fn refused(bytes: u64, rows: usize, most: u64) -> DataFusionError {
    DataFusionError::Execution(format!(
        "constants of {} in each of {rows} rows are more than {}: leave them out, or allow SQL more (`sql-memory`)",
        format_bytes(bytes),
        format_bytes(most)
    ))
}

/// Bytes of the constants that are in one row of what an expression gives, or of what it is made of.
fn constants(expr: &Expr) -> Result<u64> {
    if let Expr::Literal(value, _) = expr {
        return Ok((value.size() as u64).saturating_sub(size_of::<ScalarValue>() as u64));
    }
    // What is compared with a constant is compared with one for all rows, and a row gets one of the values of a case.
    let is_one = matches!(
        expr,
        Expr::Case(_) | Expr::BinaryExpr(_) | Expr::Between(_) | Expr::Like(_) | Expr::SimilarTo(_) | Expr::InList(_)
    );
    let is_kept = !is_one || matches!(expr, Expr::Case(_));
    let mut bytes = 0_u64;
    expr.apply_children(|child| {
        if is_kept || !matches!(child, Expr::Literal(..)) {
            let of_child = constants(child)?;
            bytes = if is_one { bytes.max(of_child) } else { bytes.saturating_add(of_child) };
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(bytes)
}
