//! Makes a `COPY ... TO` that names a path into one that DataFusion can plan: target as URL, format by the target's name.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use datafusion::sql::parser::{CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::Value;
use forebay_types::{Error, Result};

use crate::error::check_distinct;
use crate::location::{Location, Namespace};
use crate::paths::{Format, NULL_PARTITION};

/// Prepares a `COPY ... TO`, also below `EXPLAIN`: the target becomes a URL that the engine understands, and the format
/// comes from the target's name when it is not stated (Parquet for a folder). Gives the target as it was written.
pub(crate) fn prepare(statement: &mut Statement, namespace: &dyn Namespace) -> Result<Option<String>> {
    match statement {
        Statement::CopyTo(copy) => {
            let target = copy.target.clone();
            resolve(copy, namespace)?;
            Ok(Some(target))
        }
        Statement::Explain(explain) => prepare(&mut explain.statement, namespace),
        _ => Ok(None),
    }
}

/// Refuses to write two columns of one name.
pub(crate) fn check_names(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Copy(copy) => check_distinct(copy.input.schema().fields()),
        LogicalPlan::Explain(explain) => check_names(&explain.plan),
        LogicalPlan::Analyze(analyze) => check_names(&analyze.input),
        _ => Ok(()),
    }
}

fn resolve(copy: &mut CopyToStatement, namespace: &dyn Namespace) -> Result<()> {
    let location = Location::parse_target(&copy.target, namespace)?;
    namespace.check(&location.url)?;
    if copy.stored_as.is_none() {
        match Format::of_name(&copy.target) {
            Some(format) => {
                copy.stored_as = Some(format.name().to_string());
                for (key, value) in format.options() {
                    if !copy.options.iter().any(|(known, _)| known.eq_ignore_ascii_case(&key)) {
                        copy.options.push((key, Value::SingleQuotedString(value)));
                    }
                }
            }
            None if copy.target.ends_with('/') || !copy.partitioned_by.is_empty() => {
                copy.stored_as = Some("PARQUET".to_string());
            }
            None => {
                return Err(Error::invalid(format!(
                    "the name of '{}' says no format: end it with .parquet, .csv, .json, .arrow, .albis and the like, or with '/' for a \
                     folder of Parquet files, or write STORED AS",
                    copy.target
                )));
            }
        }
    }
    let folder = !copy.partitioned_by.is_empty();
    copy.target = if folder { location.as_folder().url } else { location.url }.to_string();
    Ok(())
}

/// The same plan, whose `COPY .. PARTITIONED BY` names the folders of nulls as Hive does: the engine takes nulls for empty texts.
/// Where files keep these columns (`keeps`), they keep nulls as well, and the plan stays as it is.
pub(crate) fn with_folders_of_nulls(plan: LogicalPlan, keeps: bool) -> datafusion::error::Result<LogicalPlan> {
    let is_copy = |plan: &LogicalPlan| matches!(plan, LogicalPlan::Copy(_));
    // It stands at the top, or below EXPLAIN.
    if !is_copy(&plan) && !plan.inputs().into_iter().any(is_copy) {
        return Ok(plan);
    }
    let renamed = |plan: LogicalPlan| match plan {
        LogicalPlan::Copy(copy) if !keeps && !copy.partition_by.is_empty() && !keeps_columns(&copy) => {
            Ok(Transformed::yes(LogicalPlan::Copy(named(copy)?)))
        }
        plan => Ok(Transformed::no(plan)),
    };
    plan.transform_down(renamed).data()
}

fn keeps_columns(copy: &CopyTo) -> bool {
    copy.options.get("execution.keep_partition_by_columns").is_some_and(|value| value.trim() == "true")
}

fn named(copy: CopyTo) -> datafusion::error::Result<CopyTo> {
    let of = |(qualifier, field): (Option<&TableReference>, &FieldRef)| {
        let column = Expr::from((qualifier, field));
        if !field.is_nullable() || !copy.partition_by.contains(field.name()) || !is_a_name(field.data_type()) {
            return Ok(column);
        }
        let text = cast(column.clone(), DataType::Utf8);
        Ok(when(column.is_null(), lit(NULL_PARTITION)).otherwise(text)?.alias(field.name()))
    };
    let columns = copy.input.schema().iter().map(of).collect::<datafusion::error::Result<Vec<_>>>()?;
    let input = LogicalPlanBuilder::new_from_arc(Arc::clone(&copy.input)).project(columns)?.build()?;
    Ok(CopyTo { input: Arc::new(input), ..copy })
}

/// Whether the engine writes values of a type to names of folders as it casts them to text.
fn is_a_name(kind: &DataType) -> bool {
    match kind {
        DataType::Null | DataType::Boolean | DataType::Date32 => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_a_name(value),
        other => other.is_integer(),
    }
}
