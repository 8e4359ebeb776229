//! Scans of table files on their way to other processes.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::internal_err;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use super::metadata::Tables;
use super::source::TableSource;
use crate::scans::config;

/// A scan of table files, for who sends it. What only grows while a query runs stays where it grows: rows do not depend on it.
pub struct TableScan<'a> {
    /// What all scans of files have.
    pub files: &'a FileScanConfig,
    /// What rows have to meet, of the files' columns.
    pub filter: Option<&'a Arc<dyn PhysicalExpr>>,
}

/// A scan of table files; none of any other node.
pub fn table_scan(node: &Arc<dyn ExecutionPlan>) -> Option<TableScan<'_>> {
    let files = config(node)?;
    let source = files.file_source().downcast_ref::<TableSource>()?;
    Some(TableScan { files, filter: source.filter.as_ref() })
}

/// The source of a scan that came from elsewhere, which looks into what is known of tables where it is to run.
///
/// # Errors
/// For a filter that is none of the files' columns.
pub fn table_source(
    schema: TableSchema,
    filter: Option<Arc<dyn PhysicalExpr>>,
    context: &TaskContext,
) -> Result<Arc<dyn FileSource>> {
    let tables = Tables::cached(context.runtime_env().cache_manager.get_file_metadata_cache());
    let source = TableSource::new(schema).with_tables(tables);
    if let Some(filter) = &filter
        && (!source.decides(filter) || filter.data_type(source.table_schema().file_schema())? != DataType::Boolean)
    {
        return internal_err!("rows of table files can't be tested with {filter}");
    }
    Ok(Arc::new(source.with_row_filter(filter)))
}
