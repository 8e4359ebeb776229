//! Decimals that are cast to fewer digits behind the point are rounded before they are compared. The engine compared what was cast instead,
//! with the constant in its type: `cast(d as decimal(18, 4)) = 12` left out 11.99999.
//!
//! A cast that leaves no digit out is the same either way, and `round` is none.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions::math::round;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

/// Rounds what such a cast is of.
#[derive(Debug)]
pub(super) struct Narrowed;

impl FunctionRewrite for Narrowed {
    fn name(&self) -> &'static str {
        "narrowed_decimals"
    }

    fn rewrite(&self, mut expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let (value, field) = match &mut expr {
            Expr::Cast(cast) => (&mut cast.expr, &cast.field),
            Expr::TryCast(cast) => (&mut cast.expr, &cast.field),
            _ => return Ok(Transformed::no(expr)),
        };
        let digits = value.get_type(schema).ok().and_then(|kind| scale(&kind)).zip(scale(field.data_type()));
        let Some((_, to)) = digits.filter(|(from, to)| to < from) else { return Ok(Transformed::no(expr)) };
        let (shown, whole) = (value.schema_name().to_string(), Expr::clone(value));
        **value = round().call(vec![whole, lit(i64::from(to))]).alias(shown);
        Ok(Transformed::yes(expr))
    }
}

/// Digits behind the point.
fn scale(kind: &DataType) -> Option<i8> {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}
