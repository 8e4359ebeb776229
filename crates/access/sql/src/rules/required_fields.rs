//! A field of a struct that is null is null, also where the struct has it always. Parquet files have no word for it there, and the engine
//! gives what its reader has put in the place: zeros, or values of other rows.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::functions::expr_fn::get_field;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, GetFieldAccess};

/// Plans such fields; all else is for those that come after it.
#[derive(Debug)]
pub(super) struct RequiredFields;

impl ExprPlanner for RequiredFields {
    /// `s['a']`, of anything.
    fn plan_field_access(&self, access: RawFieldAccessExpr, schema: &DFSchema) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let GetFieldAccess::NamedStructField { name } = &access.field_access else { return Ok(PlannerResult::Original(access)) };
        let Some(name) = name.try_as_str().flatten() else { return Ok(PlannerResult::Original(access)) };
        let may_be_null = match access.expr.get_type(schema) {
            Ok(DataType::Struct(fields)) => fields.find(name).map(|(_, field)| field.is_nullable()),
            _ => None,
        };
        let field = |of: &Expr| get_field(of.clone(), ScalarValue::from(name));
        let planned = match (may_be_null, guarded(&access.expr)) {
            (Some(true), Some((_, value))) => Some(field(value)),
            (Some(false), Some((there, value))) => Some(if_there(there.clone(), field(value))),
            (Some(false), None) if access.expr.nullable(schema).unwrap_or(false) => {
                Some(if_there(access.expr.clone(), field(&access.expr)))
            }
            _ => None,
        };
        Ok(match planned {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(access),
        })
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
        // What is null wherever one of the structs so far is.
        let mut there = column.is_nullable().then(|| value.clone());
        let mut is_required = false;
        for name in names {
            let DataType::Struct(fields) = &kind else { return Ok(PlannerResult::Original(Vec::new())) };
            let Some((_, field)) = fields.find(name) else { return Ok(PlannerResult::Original(Vec::new())) };
            value = get_field(value, ScalarValue::from(name.as_str()));
            is_required = !field.is_nullable();
            if !is_required {
                there = Some(value.clone());
            }
            let next = field.data_type().clone();
            kind = next;
        }
        Ok(match there.filter(|_| is_required) {
            Some(there) => PlannerResult::Planned(if_there(there, value)),
            None => PlannerResult::Original(Vec::new()),
        })
    }
}

/// A field of a struct, by the name that it has without this; null where the struct is.
fn if_there(there: Expr, field: Expr) -> Expr {
    let shown = field.schema_name().to_string();
    Expr::Case(Case::new(None, vec![(Box::new(Expr::IsNotNull(Box::new(there))), Box::new(field))], None)).alias(shown)
}

/// What is to be there for such a field, and the field. One below it asks for the same: if it asked for the whole instead, each struct on
/// the way would double what is asked.
fn guarded(value: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::Alias(alias) = value else { return None };
    let Expr::Case(Case { expr: None, when_then_expr, else_expr: None }) = alias.expr.as_ref() else { return None };
    let [(condition, field)] = when_then_expr.as_slice() else { return None };
    let Expr::IsNotNull(there) = condition.as_ref() else { return None };
    Some((there.as_ref(), field.as_ref()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Schema;

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
