//! The table that stands for a path in a plan: its files are listed anew for each query, and once in it.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::{Constraints, project_schema};
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::cache::TableScopedPath;
use datafusion::execution::cache::cache_manager::ListFilesCache;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use forebay_types::Error;
use object_store::ObjectMeta;

use crate::error::external;
use crate::location::Location;
use crate::paths::format::Format;
use crate::paths::listing::list;
use crate::paths::nulls;

/// A table that is a location. Each scan lists the location anew through its query's stores, so that a view or an
/// external table sees the files that are there, and all of one query sees the same ones.
#[derive(Debug)]
pub(crate) struct PathTable {
    pub(crate) location: Location,
    only: FileRule,
    table: ListingTable,
    /// The table's, with partition columns that may be null: nobody knows yet which files will come.
    schema: SchemaRef,
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
        if files.iter().any(fits) { files.into_iter().filter(fits).collect() } else { files }
    }
}

impl PathTable {
    pub(crate) fn new(location: Location, only: FileRule, table: ListingTable) -> Self {
        let schema = nulls::nullable(&table);
        Self { location, only, table, schema }
    }

    /// Keeps the files that a query has listed, for all of its scans of this table.
    pub(crate) fn keep(&self, runtime: &RuntimeEnv, files: Vec<ObjectMeta>) -> Result<()> {
        let Some((key, listings)) = self.listing(runtime) else { return Ok(()) };
        if files.is_empty() {
            return Ok(());
        }
        let count = files.len();
        listings.put(&key, files.into());
        match listings.contains_key(&key) {
            true => Ok(()),
            false => Err(external(Error::invalid(format!(
                "'{}' has {count} files, more than one query can list: choose fewer with a pattern",
                self.location.text
            )))),
        }
    }

    /// Where a query keeps this table's files; nowhere for a single file.
    fn listing(&self, runtime: &RuntimeEnv) -> Option<(TableScopedPath, Arc<ListFilesCache>)> {
        let url = self.table.table_paths().first().filter(|url| url.is_collection())?;
        let key = TableScopedPath { table: url.get_table_ref().clone(), path: url.prefix().clone() };
        Some((key, runtime.cache_manager.get_list_files_cache()?))
    }

    /// Whether a partition column is null in any of the files that this query has listed.
    fn has_nulls(&self, runtime: &RuntimeEnv) -> bool {
        let listing = self.listing(runtime).filter(|_| !self.table.options().table_partition_cols.is_empty());
        let files = listing.and_then(|(key, listings)| listings.get(&key)).map(|list| list.files);
        files.is_some_and(|files| files.iter().any(nulls::is_of_null))
    }

    /// The engine's table as this query must see it; none when no file is left of it.
    async fn of_query(&self, state: &dyn Session) -> Result<Option<ListingTable>> {
        let runtime = state.runtime_env();
        if let Some((key, listings)) = self.listing(runtime)
            && !listings.contains_key(&key)
            && let Some(url) = self.table.table_paths().first()
        {
            let listing = list(&runtime.object_store(url)?, &self.location).await?;
            let files = self.only.keep(listing.files);
            let mut names = files.iter().filter(|meta| meta.size > 0).map(|meta| meta.location.as_ref()).peekable();
            if names.peek().is_none() {
                return Ok(None);
            }
            if matches!(self.only, FileRule::All) {
                Format::of_files(&self.location.text, names).map_err(external)?;
            }
            self.keep(runtime, files)?;
        }
        Ok(Some(self.table.clone().with_cache(runtime.cache_manager.get_file_statistic_cache())))
    }
}

#[async_trait]
impl TableProvider for PathTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    forebay_types::handed_on! {
        [table]
        fn constraints(&self) -> Option<&Constraints>;
        fn get_table_definition(&self) -> Option<&str>;
        fn get_column_default(&self, column: &str) -> Option<&Expr>;
        fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>>;
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        None
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.of_query(state).await? {
            Some(table) if self.has_nulls(state.runtime_env()) => nulls::scan(table, state, projection, filters, limit).await,
            Some(table) => table.scan(state, projection, filters, limit).await,
            None => Ok(Arc::new(EmptyExec::new(project_schema(&self.schema(), projection)?))),
        }
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, args: ScanArgs<'a>) -> Result<ScanResult> {
        match self.of_query(state).await? {
            Some(table) if self.has_nulls(state.runtime_env()) => {
                let projection = args.projection().map(<[usize]>::to_vec);
                let filters = args.filters().unwrap_or_default();
                nulls::scan(table, state, projection.as_ref(), filters, args.limit()).await.map(ScanResult::new)
            }
            Some(table) => table.scan_with_args(state, args).await,
            None => {
                let projection = args.projection().map(<[usize]>::to_vec);
                let schema = project_schema(&self.schema(), projection.as_ref())?;
                Ok(ScanResult::new(Arc::new(EmptyExec::new(schema))))
            }
        }
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        insert_op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.location.is_folder() {
            return Err(external(Error::invalid(format!(
                "'{}' is one file, and INSERT adds files to a folder: make the table of a folder, with a '/' at its end, or write \
                 another file with COPY",
                self.location.text
            ))));
        }
        self.table.insert_into(state, input, insert_op).await
    }
}
