//! Partition columns with nulls. Hive, Spark and others write `k=__HIVE_DEFAULT_PARTITION__`, and the engine takes every value in a path
//! for one: the folder's name would be a text, and no number.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use object_store::ObjectMeta;

/// What stands for a null in the name of a folder.
pub const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Whether a file lies in a folder of nulls.
pub(super) fn is_of_null(file: &ObjectMeta) -> bool {
    file.location.as_ref().split('/').any(|part| part.split_once('=').is_some_and(|(_, value)| value == NULL))
}

/// A table's schema, with partition columns that may be null.
pub(super) fn nullable(table: &ListingTable) -> SchemaRef {
    let schema = table.schema();
    let is_partition = |field: &Field| table.options().table_partition_cols.iter().any(|(name, _)| name == field.name());
    let fields = schema.fields().iter().map(|field| match is_partition(field) {
        true => Arc::new(field.as_ref().clone().with_nullable(true)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Scans a table whose files lie in folders of nulls, among others: its partition columns are read as text, and what that text says is
/// put above the scan and into its filters.
pub(super) async fn scan(
    table: ListingTable,
    state: &dyn Session,
    projection: Option<&Vec<usize>>,
    filters: &[Expr],
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let partitions = table.options().table_partition_cols.clone();
    let table = as_text(&table, state)?;
    let filters = filters.iter().map(|filter| said(filter, &partitions)).collect::<Result<Vec<_>>>()?;
    let plan = table.scan(state, projection, &filters, limit).await?;
    let schema = plan.schema();
    let kind = |name: &str| partitions.iter().find(|(known, _)| known == name).map(|(_, kind)| kind);
    if !schema.fields().iter().any(|field| kind(field.name()).is_some()) {
        return Ok(plan);
    }
    let known = DFSchema::try_from(Arc::clone(&schema))?;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (ix, field) in schema.fields().iter().enumerate() {
        let column: Arc<dyn PhysicalExpr> = match kind(field.name()) {
            Some(kind) => state.create_physical_expr(value(field.name(), kind)?, &known)?,
            None => Arc::new(PhysicalColumn::new(field.name(), ix)),
        };
        columns.push(ProjectionExpr::new(column, field.name()));
    }
    Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
}

/// The same table with its partition columns as they stand in paths.
fn as_text(table: &ListingTable, state: &dyn Session) -> Result<ListingTable> {
    let mut options = table.options().clone();
    let schema = table.schema();
    let columns = schema.fields().len().saturating_sub(options.table_partition_cols.len());
    let file = Arc::new(schema.project(&(0..columns).collect::<Vec<_>>())?);
    for (_, kind) in &mut options.table_partition_cols {
        *kind = DataType::Utf8;
    }
    // Texts have an order of their own.
    options.file_sort_order.clear();
    let config = ListingTableConfig::new_with_multi_paths(table.table_paths().clone());
    let table = ListingTable::try_new(config.with_listing_options(options).with_schema(file))?;
    Ok(table.with_cache(state.runtime_env().cache_manager.get_file_statistic_cache()))
}

/// The value of a partition column by the text that stands for it.
fn value(name: &str, kind: &DataType) -> Result<Expr> {
    let text = Expr::Column(Column::from_name(name));
    let null = lit(ScalarValue::try_new_null(kind)?);
    when(text.clone().eq(lit(NULL)), null).otherwise(cast(text, kind.clone()))
}

/// A filter of values as one of texts, that is true or false: the engine takes what is neither for whatever it finds.
fn said(filter: &Expr, partitions: &[(String, DataType)]) -> Result<Expr> {
    let text = |expr: Expr| {
        let known = match &expr {
            Expr::Column(column) => partitions.iter().find(|(name, _)| *name == column.name),
            _ => None,
        };
        match known {
            // What it is made of has the same column in it, which stays.
            Some((name, kind)) => Ok(Transformed::yes(value(name, kind)?)),
            None => Ok(Transformed::no(expr)),
        }
    };
    Ok(Expr::IsTrue(Box::new(filter.clone().transform_up(text).data()?)))
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;

    #[test]
    fn folders_of_nulls_are_told_from_others() {
        let of = |path: &str| {
            let location = Path::parse(path).unwrap();
            is_of_null(&ObjectMeta { location, last_modified: Default::default(), size: 1, e_tag: None, version: None })
        };
        assert!(of("lake/k=__HIVE_DEFAULT_PARTITION__/x.csv") && of("lake/k=1/l=__HIVE_DEFAULT_PARTITION__/x.csv"));
        assert!(!of("lake/k=1/__HIVE_DEFAULT_PARTITION__.csv") && !of("lake/k=__HIVE_DEFAULT_PARTITION__2/x.csv"));
    }

    #[test]
    fn filters_ask_for_what_a_text_says() {
        let filter = Expr::Column(Column::from_name("k")).gt(lit(2_i64));
        let said = said(&filter, &[("k".to_string(), DataType::Int64)]).unwrap().to_string();
        assert!(said.contains("IS TRUE") && said.contains(NULL), "{said}");
    }
}
