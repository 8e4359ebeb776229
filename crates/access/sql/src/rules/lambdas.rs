//! Variables of lambdas have numbers that no column has.
//!
//! The engine numbers a lambda's variables behind the columns that it was planned over. A rule that moves it to where there are more, as into
//! the scan below a projection, gives columns their numbers there and leaves the variables': each stood for one of the further columns, and the
//! query was refused.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::LambdaVariable;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

type Plan = Arc<dyn ExecutionPlan>;
type Expression = Arc<dyn PhysicalExpr>;

/// The first number of a variable: more than a node has columns.
const FIRST: usize = 1 << 20;

/// Comes before anything is moved.
pub(super) fn behind_columns(node: Plan) -> Result<Transformed<Plan>> {
    if let Some(projection) = node.downcast_ref::<ProjectionExec>()
        && projection.expr().iter().any(|shown| has_variables(&shown.expr))
        && has_fewer(projection.input())
    {
        let mut shown = projection.expr().to_vec();
        for each in &mut shown {
            each.expr = behind(&each.expr)?;
        }
        let input = Arc::clone(projection.input());
        let projection = ProjectionExec::try_new_with_schema_metadata(shown, input, &node.schema())?;
        return Ok(Transformed::yes(Arc::new(projection) as Plan));
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>()
        && has_variables(filter.predicate())
        && has_fewer(filter.input())
    {
        let filter = FilterExecBuilder::from(filter).with_predicate(behind(filter.predicate())?).build()?;
        return Ok(Transformed::yes(Arc::new(filter) as Plan));
    }
    Ok(Transformed::no(node))
}

/// Whether no column has the number of a variable.
fn has_fewer(input: &Plan) -> bool {
    input.schema().fields().len() < FIRST
}

fn has_variables(expression: &Expression) -> bool {
    expression.exists(|node| Ok(node.is::<LambdaVariable>())).unwrap_or(true)
}

/// The same expression, whose variables keep their order.
fn behind(expression: &Expression) -> Result<Expression> {
    let moved = |node: Expression| {
        let variable = node.downcast_ref::<LambdaVariable>().filter(|variable| variable.index() < FIRST);
        let moved = variable.map(|variable| LambdaVariable::new(FIRST + variable.index(), Arc::clone(variable.field())));
        Ok(match moved {
            Some(moved) => Transformed::yes(Arc::new(moved) as Expression),
            None => Transformed::no(node),
        })
    };
    Arc::clone(expression).transform_up(moved).data()
}
