//! A struct that is null is null within behind a cast to a more common type, as in a union or a `case` of several tables' structs.
//!
//! Parquet files may say that a struct always has a field; what lies there where the struct is null is nobody's value. `required_fields`
//! asks for the struct first, but behind the cast nothing says so any more. What a `case` or `coalesce` chooses among is cast here: types of files
//! that say so and of others are one to the engine when it plans, and none when it runs.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::core::named_struct;
use datafusion::functions::expr_fn::get_field;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Case, Cast, Expr, ExprSchemable, LogicalPlan, lit};

use super::super::required_fields::is_somewhere_required;

/// Functions that give one of their values.
const CHOOSE: [&str; 4] = ["coalesce", "nvl", "make_array", "nullif"];

/// Looks at casts. Comes before types are made one, with the values that something chooses among, which may become of another type; and behind
/// that, which makes some.
pub(super) fn analyze(plan: LogicalPlan, chosen: bool) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let is_scan = matches!(node, LogicalPlan::TableScan(_));
        found |= is_scan && node.schema().fields().iter().any(|field| tells(field.data_type()));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    match found {
        true => plan.transform_up_with_subqueries(|node| of_node(node, chosen)).data(),
        false => Ok(plan),
    }
}

fn of_node(node: LogicalPlan, chosen: bool) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let of_expr = |expr| Ok(if chosen { chosen_plain(expr, &schema) } else { cast(expr, &schema) });
        let changed = expr.transform_up(of_expr)?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?;
    match changed.transformed {
        true => changed.map_data(LogicalPlan::recompute_schema),
        false => Ok(changed),
    }
}

fn chosen_plain(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::Case(mut case) => {
            let mut changed = false;
            for (_, then) in &mut case.when_then_expr {
                changed |= make_plain(then, schema);
            }
            if let Some(other) = &mut case.else_expr {
                changed |= make_plain(other, schema);
            }
            Transformed::new_transformed(Expr::Case(case), changed)
        }
        Expr::ScalarFunction(mut call) if CHOOSE.contains(&call.func.name()) => {
            let mut changed = false;
            for value in &mut call.args {
                changed |= make_plain(value, schema);
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), changed)
        }
        other => cast(other, schema),
    }
}

fn cast(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        // Done already.
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Case(case) if case.expr.is_some()) => {
            Transformed::no(Expr::Cast(cast))
        }
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

/// Casts a value to a type that says nothing of its fields, where its own does. Whether it did.
fn make_plain(value: &mut Expr, schema: &DFSchema) -> bool {
    let Ok((_, field)) = value.to_field(schema) else { return false };
    if !tells(field.data_type()) {
        return false;
    }
    *value = Expr::Cast(Cast::new(Box::new(null_within(value, &field)), plain(field.data_type())));
    true
}

/// Whether a type says of fields of structs that they are always there, in some files at least.
fn tells(kind: &DataType) -> bool {
    match kind {
        DataType::Struct(fields) => fields.iter().any(|field| is_somewhere_required(field) || tells(field.data_type())),
        DataType::List(item) => tells(item.data_type()),
        _ => false,
    }
}

/// The same type, with fields that may lack.
fn plain(kind: &DataType) -> DataType {
    let maybe = |field: &FieldRef| Arc::new(Field::new(field.name(), plain(field.data_type()), true));
    match kind {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(maybe).collect()),
        DataType::List(item) => DataType::List(maybe(item)),
        other => other.clone(),
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
    if !hides(field) {
        return value.clone();
    }
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
