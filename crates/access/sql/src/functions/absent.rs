//! Structs, lists and maps that `case`, `nullif` and `nvl2` leave out. The engine says of them that they are null, and leaves what they were in its
//! place: `s['a']`, `m['a']` and `array_append(l, 1)` of such a value found it.
//!
//! A `case` that compares, of which the engine has another way, makes values that are null within as well.

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, lit};
use datafusion::scalar::ScalarValue;

/// Writes all three as a `case` that compares.
#[derive(Debug)]
pub(super) struct Absent;

impl FunctionRewrite for Absent {
    fn name(&self) -> &'static str {
        "absent_values"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let is_nested = |value: &Expr| value.get_type(schema).is_ok_and(|kind| kind.is_nested());
        let compared = match &expr {
            Expr::Case(case) if case.expr.is_none() && case.when_then_expr.iter().any(|(_, then)| is_nested(then)) => {
                Case { expr: Some(Box::new(lit(true))), ..case.clone() }
            }
            Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                // It stands there twice, and would be two values.
                ("nullif", [value, other]) if is_nested(value) && !value.is_volatile() => {
                    let none = Expr::Literal(ScalarValue::Null, None);
                    chosen(value.clone().eq(other.clone()), none, value.clone())
                }
                ("nvl2", [tested, value, other]) if is_nested(value) => {
                    chosen(tested.clone().is_not_null(), value.clone(), other.clone())
                }
                _ => return Ok(Transformed::no(expr)),
            },
            _ => return Ok(Transformed::no(expr)),
        };
        let shown = expr.schema_name().to_string();
        Ok(Transformed::yes(Expr::Case(compared).alias(shown)))
    }
}

/// One value where something is true, and the other one elsewhere.
fn chosen(when: Expr, then: Expr, other: Expr) -> Case {
    Case::new(Some(Box::new(lit(true))), vec![(Box::new(when), Box::new(then))], Some(Box::new(other)))
}
