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
        let is_required = match access.expr.get_type(schema) {
            Ok(DataType::Struct(fields)) => fields.find(name).is_some_and(|(_, field)| !field.is_nullable()),
            _ => false,
        };
        if !is_required || !access.expr.nullable(schema).unwrap_or(false) {
            return Ok(PlannerResult::Original(access));
        }
        Ok(PlannerResult::Planned(if_there(access.expr, name)))
    }

    /// `s.a`, of a column.
    fn plan_compound_identifier(
        &self,
        column: &Field,
        qualifier: Option<&TableReference>,
        names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut value = Expr::Column(Column::from((qualifier, column)));
        let (mut kind, mut may_lack, mut any) = (column.data_type().clone(), column.is_nullable(), false);
        for name in names {
            let DataType::Struct(fields) = &kind else { return Ok(PlannerResult::Original(Vec::new())) };
            let Some((_, field)) = fields.find(name) else { return Ok(PlannerResult::Original(Vec::new())) };
            let is_required = may_lack && !field.is_nullable();
            value = match is_required {
                true => if_there(value, name),
                false => get_field(value, ScalarValue::from(name.as_str())),
            };
            any |= is_required;
            may_lack |= field.is_nullable();
            let next = field.data_type().clone();
            kind = next;
        }
        Ok(match any {
            true => PlannerResult::Planned(value),
            false => PlannerResult::Original(Vec::new()),
        })
    }
}

/// The field of a struct, by the name that it has without this; null where the struct is.
fn if_there(of: Expr, name: &str) -> Expr {
    let field = get_field(of.clone(), ScalarValue::from(name));
    let shown = field.schema_name().to_string();
    let is_there = Expr::IsNotNull(Box::new(of));
    Expr::Case(Case::new(None, vec![(Box::new(is_there), Box::new(field))], None)).alias(shown)
}
