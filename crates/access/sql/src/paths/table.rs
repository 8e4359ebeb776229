use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::Constraints;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::cache::TableScopedPath;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use forebay_types::Error;
use object_store::ObjectMeta;

use crate::paths::format::Format;
use crate::paths::listing::{external, list};
use crate::paths::location::Location;

/// A table that is a location. Each scan lists the location anew through its query's stores, so that a view or an
/// external table sees the files that are there, and all of one query sees the same ones.
#[derive(Debug)]
pub(crate) struct PathTable {
    location: Location,
    only: FileRule,
    table: ListingTable,
}

/// Which of the listed files belong to the table.
#[derive(Clone, Debug)]
pub(crate) enum FileRule {
    /// All: the names were checked to be of one format.
    All,
    /// Those whose names end with this, when any does.
    Preferred(String),
}

impl FileRule {
    pub(crate) fn keep(&self, files: Vec<ObjectMeta>) -> Vec<ObjectMeta> {
        let Self::Preferred(ending) = self else { return files };
        let fits = |meta: &ObjectMeta| meta.location.as_ref().ends_with(ending.as_str());
        match files.iter().any(fits) {
            true => files.into_iter().filter(fits).collect(),
            false => files,
        }
    }
}

impl PathTable {
    pub(crate) fn new(location: Location, only: FileRule, table: ListingTable) -> Self {
        Self { location, only, table }
    }

    /// The engine's table as this query must see it.
    async fn of_query(&self, state: &dyn Session) -> Result<ListingTable> {
        let runtime = state.runtime_env();
        let table = self.table.clone().with_cache(runtime.cache_manager.get_file_statistic_cache());
        let Some(url) = table.table_paths().first().filter(|url| url.is_collection()) else { return Ok(table) };
        let key = TableScopedPath { table: url.get_table_ref().clone(), path: url.prefix().clone() };
        let Some(listings) = runtime.cache_manager.get_list_files_cache() else { return Ok(table) };
        if !listings.contains_key(&key) {
            let listing = list(&runtime.object_store(url)?, &self.location).await?;
            let files = self.only.keep(listing.files);
            if matches!(self.only, FileRule::All) && !files.is_empty() {
                let names = files.iter().filter(|meta| meta.size > 0).map(|meta| meta.location.as_ref());
                if files.iter().any(|meta| meta.size > 0) {
                    Format::of_files(&self.location.text, names).map_err(external)?;
                }
            }
            let count = files.len();
            listings.put(&key, files.into());
            if !listings.contains_key(&key) {
                return Err(external(Error::invalid(format!(
                    "'{}' has {count} files, more than one query can list: choose fewer with a pattern",
                    self.location.text
                ))));
            }
        }
        Ok(table)
    }
}

#[async_trait]
impl TableProvider for PathTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.table.get_table_definition()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        None
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.table.get_column_default(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.of_query(state).await?.scan(state, projection, filters, limit).await
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, args: ScanArgs<'a>) -> Result<ScanResult> {
        self.of_query(state).await?.scan_with_args(state, args).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        insert_op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.of_query(state).await?.insert_into(state, input, insert_op).await
    }
}
