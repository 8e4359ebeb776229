//! A struct that is null is null within behind a cast to a more common type, as in a union or a `case` of several tables' structs.
//!
//! Parquet files may say that a struct always has a field; what lies there where the struct is null is nobody's value. `required_fields`
//! asks for the struct first, but behind the cast nothing says so any more.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::core::named_struct;
use datafusion::functions::expr_fn::get_field;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

use super::super::required_fields::is_somewhere_required;

/// Comes when types have been made one: by casts.
#[derive(Debug)]
pub(super) struct NullWithin;

impl AnalyzerRule for NullWithin {
    fn name(&self) -> &'static str {
        "null_within_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            let is_scan = matches!(node, LogicalPlan::TableScan(_));
            found |= is_scan && node.schema().fields().iter().any(|field| hides(field));
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        match found {
            true => plan.transform_up_with_subqueries(of_node).data(),
            false => Ok(plan),
        }
    }
}

fn of_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| Ok(cast(expr, &schema)))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

fn cast(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::Cast(mut cast) if matches!(cast.field.data_type(), DataType::Struct(_)) => match cast.expr.to_field(schema) {
            Ok((_, field)) if hides(&field) => {
                *cast.expr = null_within(&cast.expr, &field);
                Transformed::yes(Expr::Cast(cast))
            }
            _ => Transformed::no(Expr::Cast(cast)),
        },
        other => Transformed::no(other),
    }
}

/// Whether a struct may be null and has fields, here or further down, that are there all the same.
fn hides(field: &Field) -> bool {
    let DataType::Struct(fields) = field.data_type() else { return false };
    fields.iter().any(|within| (field.is_nullable() && is_somewhere_required(within)) || hides(within))
}

/// Such a struct, made anew where it is there.
fn null_within(value: &Expr, field: &Field) -> Expr {
    let DataType::Struct(fields) = field.data_type() else { return value.clone() };
    let mut whole = value.clone();
    if fields.iter().any(|field| hides(field)) {
        let named = fields.iter().flat_map(|field| {
            let name = field.name().as_str();
            [lit(name), null_within(&get_field(value.clone(), ScalarValue::from(name)), field)]
        });
        whole = named_struct().call(named.collect());
    }
    match field.is_nullable() {
        true => {
            let there = Expr::IsNotNull(Box::new(value.clone()));
            // The way of the engine that leaves nothing within what is null, as in `functions/absent`.
            Expr::Case(Case::new(Some(Box::new(lit(true))), vec![(Box::new(there), Box::new(whole))], None))
        }
        false => whole,
    }
}
