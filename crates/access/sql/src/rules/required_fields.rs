//! A field of a struct that is null is null, also where the struct has it always. Parquet files have no word for it there, and the engine
//! gives what its reader has put in the place: zeros, or values of other rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::functions::expr_fn::get_field;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, GetFieldAccess, Operator};

/// What a field of a struct says of itself that some files of a folder always have, and others may lack.
const SOMEWHERE_REQUIRED: &str = "forebay.required_in_some_files";

/// The field of all files, of one that some of them always have.
pub(crate) fn somewhere_required(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(SOMEWHERE_REQUIRED.to_string(), "true".to_string());
    field.with_nullable(true).with_metadata(metadata)
}

/// Whether all files or some of them always have a field.
pub(crate) fn is_somewhere_required(field: &Field) -> bool {
    says(field) != Says::Maybe
}

/// The columns of one file, of which that is never said: rows of several files may have been written to it, with what was said of these.
pub(crate) fn of_one_file(schema: SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| is_marked(field)) {
        return schema;
    }
    let fields: Fields = schema.fields().iter().map(unmarked).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn is_marked(field: &Field) -> bool {
    let below = match field.data_type() {
        DataType::Struct(fields) => fields.iter().any(|field| is_marked(field)),
        DataType::List(item) => is_marked(item),
        _ => false,
    };
    below || field.metadata().contains_key(SOMEWHERE_REQUIRED)
}

fn unmarked(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(unmarked).collect()),
        DataType::List(item) => DataType::List(unmarked(item)),
        other => other.clone(),
    };
    let mut metadata = field.metadata().clone();
    metadata.remove(SOMEWHERE_REQUIRED);
    Arc::new(field.as_ref().clone().with_data_type(kind).with_metadata(metadata))
}

/// Whether a field is there where its struct is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Maybe,
    Always,
    /// Some files say the one and some the other.
    Either,
}

fn says(field: &Field) -> Says {
    match field.is_nullable() {
        false => Says::Always,
        true if field.metadata().contains_key(SOMEWHERE_REQUIRED) => Says::Either,
        true => Says::Maybe,
    }
}

/// Plans such fields; all else is for those that come after it.
#[derive(Debug)]
pub(super) struct RequiredFields;

impl ExprPlanner for RequiredFields {
    /// `s['a']`, of anything.
    fn plan_field_access(&self, access: RawFieldAccessExpr, schema: &DFSchema) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let GetFieldAccess::NamedStructField { name } = &access.field_access else { return Ok(PlannerResult::Original(access)) };
        let Some(name) = name.try_as_str().flatten() else { return Ok(PlannerResult::Original(access)) };
        let Ok(DataType::Struct(fields)) = access.expr.get_type(schema) else { return Ok(PlannerResult::Original(access)) };
        let Some((_, found)) = fields.find(name) else { return Ok(PlannerResult::Original(access)) };
        let field = |of: &Expr| get_field(of.clone(), ScalarValue::from(name));
        let planned = match (says(found), guarded(&access.expr)) {
            (Says::Maybe, Some((_, value))) => Some(field(value)),
            (_, Some((there, value))) => {
                let there = match own_field(value, schema) {
                    Some(Says::Either) => there.clone().and(is_there(value)),
                    _ => there.clone(),
                };
                Some(if_there(there, field(value)))
            }
            (Says::Always | Says::Either, None) if access.expr.nullable(schema).unwrap_or(false) => {
                Some(if_there(is_there(&access.expr), field(&access.expr)))
            }
            _ => None,
        };
        Ok(if let Some(planned) = planned { PlannerResult::Planned(planned) } else { PlannerResult::Original(access) })
    }

    /// `s.a`, of a column.
    fn plan_compound_identifier(
        &self,
        column: &Field,
        qualifier: Option<&TableReference>,
        names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut value = Expr::Column(Column::from((qualifier, column)));
        let mut kind = column.data_type().clone();
        // What is true where all of the structs so far are there, and what the last field is to be asked under.
        let mut there = column.is_nullable().then(|| is_there(&value));
        let mut asked_if = None;
        for name in names {
            let DataType::Struct(fields) = &kind else { return Ok(PlannerResult::Original(Vec::new())) };
            let Some((_, field)) = fields.find(name) else { return Ok(PlannerResult::Original(Vec::new())) };
            value = get_field(value, ScalarValue::from(name.as_str()));
            (asked_if, there) = match (says(field), there) {
                (Says::Maybe, _) | (Says::Either, None) => (None, Some(is_there(&value))),
                (Says::Always, there) => (there.clone(), there),
                (Says::Either, Some(there)) => (Some(there.clone()), Some(there.and(is_there(&value)))),
            };
            let next = field.data_type().clone();
            kind = next;
        }
        Ok(match asked_if {
            Some(there) => PlannerResult::Planned(if_there(there, value)),
            None => PlannerResult::Original(Vec::new()),
        })
    }
}

fn is_there(value: &Expr) -> Expr {
    Expr::IsNotNull(Box::new(value.clone()))
}

/// A field of a struct, by the name that it has without this; null where the struct is not there.
fn if_there(there: Expr, field: Expr) -> Expr {
    let shown = field.schema_name().to_string();
    Expr::Case(Case::new(None, vec![(Box::new(there), Box::new(field))], None)).alias(shown)
}

/// What the field says of itself that a value is.
fn own_field(value: &Expr, schema: &DFSchema) -> Option<Says> {
    let Expr::ScalarFunction(access) = value else { return None };
    let [of, Expr::Literal(name, _)] = access.args.as_slice() else { return None };
    let Ok(DataType::Struct(fields)) = of.get_type(schema) else { return None };
    fields.find(name.try_as_str().flatten()?).map(|(_, field)| says(field))
}

/// What is to be there for such a field, and the field. One below it asks for the same: if it asked for the whole instead, each struct on
/// the way would double what is asked.
fn guarded(value: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::Alias(alias) = value else { return None };
    let Expr::Case(Case { expr: None, when_then_expr, else_expr: None }) = alias.expr.as_ref() else { return None };
    let [(condition, field)] = when_then_expr.as_slice() else { return None };
    is_guard(condition).then_some((condition.as_ref(), field.as_ref()))
}

fn is_guard(condition: &Expr) -> bool {
    match condition {
        Expr::IsNotNull(_) => true,
        Expr::BinaryExpr(both) => both.op == Operator::And && is_guard(&both.left) && is_guard(&both.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_struct_on_the_way_to_a_field_is_asked_for_once() {
        const DEPTH: usize = 24;
        let mut kind = DataType::Int64;
        for depth in 0..DEPTH {
            kind = DataType::Struct(vec![Field::new("a", kind, depth % 3 == 1)].into());
        }
        let column = Field::new("s", kind, true);
        let schema = DFSchema::try_from(Schema::new(vec![column.clone()])).unwrap();
        let mut value = Expr::Column(Column::from_name("s"));
        for _ in 0..DEPTH {
            let field_access = GetFieldAccess::NamedStructField { name: ScalarValue::from("a") };
            value = match RequiredFields.plan_field_access(RawFieldAccessExpr { field_access, expr: value }, &schema).unwrap() {
                PlannerResult::Planned(value) => value,
                PlannerResult::Original(access) => get_field(access.expr, ScalarValue::from("a")),
            };
        }
        let names = vec!["a".to_string(); DEPTH];
        let PlannerResult::Planned(dotted) = RequiredFields.plan_compound_identifier(&column, None, &names).unwrap() else {
            panic!("the last field is required");
        };
        for value in [value, dotted] {
            assert!(guarded(&value).is_some() && value.to_string().len() < 4096, "{value}");
        }
    }
}
