//! Refuses arguments that memory is taken by before a row is read: the engine takes it as it is said, and a process that gets none ends.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use forebay_types::{Error, Result};

use crate::error::from_engine;

/// Most centroids of an approximate percentile; the engine's own number is 100.
const CENTROIDS_MAX: u64 = 10_000;
/// Most of what the numbers in the name of a type of fixed size give together: nulls take it too, a row each.
const SIZE_MAX: u64 = 1 << 18;

/// `Invalid` for a statement with such an argument, wherever it stands.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut wrong = None;
    let looked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                wrong = too_much(expr);
                Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    });
    looked.map_err(from_engine)?;
    if let Some(why) = wrong { Err(Error::invalid(why)) } else { Ok(()) }
}

/// What is wrong with the arguments of a function.
fn too_much(expr: &Expr) -> Option<String> {
    let (name, arguments) = match expr {
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        Expr::ScalarFunction(call) => (call.func.name(), &call.args),
        _ => return None,
    };
    match name {
        "approx_percentile_cont" => centroids(name, arguments.get(2)?),
        "approx_percentile_cont_with_weight" => centroids(name, arguments.get(3)?),
        "arrow_cast" | "arrow_try_cast" => size(name, arguments.get(1)?),
        _ => None,
    }
}

fn centroids(name: &str, said: &Expr) -> Option<String> {
    let number = match said {
        Expr::Literal(number, _) => number.to_string().parse::<u64>().ok(),
        _ => None,
    };
    match number {
        Some(number) if number <= CENTROIDS_MAX => None,
        _ => Some(format!("{name}: the number of centroids is a number, and {CENTROIDS_MAX} at most")),
    }
}

fn size(name: &str, said: &Expr) -> Option<String> {
    let Expr::Literal(said, _) = said else { return None };
    let kind = said.try_as_str().flatten().filter(|kind| kind.contains("FixedSize"))?;
    let numbers = kind.split(|letter: char| !letter.is_ascii_digit()).filter(|number| !number.is_empty());
    let size = numbers.fold(1_u64, |size, number| size.saturating_mul(number.parse().unwrap_or(u64::MAX)));
    (size > SIZE_MAX).then(|| format!("{name}: values of {kind} are too large: use one whose size is not fixed"))
}
