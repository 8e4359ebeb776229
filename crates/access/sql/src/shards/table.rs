//! The table that the engine sees.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{ToDFSchema, project_schema};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown as PushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use forebay_shard_store::manifest_number;
use forebay_shards::{OpenShards, Shards};
use forebay_types::{Error, ForebayPath};
use object_store::ObjectMeta;
use object_store::path::Path;

use super::conditions::{asked, verdict};
use super::ranges::ranges_of;
use super::records::schema_of;
use super::scan::ShardScan;
use crate::error::external;

/// Whether a path names a dataset by its ending.
pub(crate) fn is_dataset(path: &str) -> bool {
    path.trim_end_matches('/').ends_with(".shards")
}

/// Whether what is listed below a folder is a dataset.
pub(crate) fn has_manifest(folder: &Path, files: &[ObjectMeta]) -> bool {
    let mut below = files.iter().filter_map(|meta| meta.location.as_ref().strip_prefix(folder.as_ref()));
    below.any(|name| manifest_number(name.trim_start_matches('/')).is_some())
}

/// A dataset at one manifest.
pub(crate) struct ShardTable {
    pub(super) shards: Shards,
    pub(super) schema: SchemaRef,
    definition: Option<String>,
}

impl ShardTable {
    /// Opens the dataset. `NotFound` when there is none.
    pub(crate) async fn open(
        datasets: &OpenShards,
        client: &forebay_client::Client,
        path: &ForebayPath,
        definition: Option<String>,
    ) -> forebay_types::Result<Self> {
        let shards = datasets.open(client, path).await?;
        let schema = Arc::new(schema_of(shards.columns()));
        Ok(Self { shards, schema, definition })
    }
}

impl std::fmt::Debug for ShardTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardTable").field("path", self.shards.path()).field("manifest", &self.shards.manifest()).finish()
    }
}

#[async_trait]
impl TableProvider for ShardTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    async fn insert_into(
        &self,
        _state: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let path = self.shards.path();
        Err(external(Error::invalid(format!(
            "{path} is a dataset of shards, which SQL does not write: `forebay shard put {path}` does, and Python's `fb.shards`"
        ))))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<PushDown>> {
        let (columns, are_in_ranges) = (self.shards.columns(), self.shards.dataset().splits.is_some());
        // What says where keys are is looked at above the shards that have such keys.
        let says_where = |filter: &Expr| are_in_ranges && ranges_of(std::slice::from_ref(filter), columns).is_some();
        let verdict = |filter: &&Expr| match verdict(filter, columns) {
            PushDown::Unsupported if says_where(filter) => PushDown::Exact,
            verdict => verdict,
        };
        Ok(filters.iter().map(verdict).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (asked, left) = asked(filters, self.shards.columns());
        let Some(filter) = conjunction(left.into_iter().map(|place| filters[place].clone())) else {
            let schema = project_schema(&self.schema, projection)?;
            return Ok(Arc::new(ShardScan::new(self.shards.clone(), asked, schema, limit)));
        };
        // Of the columns those that are wanted, and those that the filter looks at.
        let mut read: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        for column in filter.column_refs() {
            read.push(self.schema.index_of(&column.name)?);
        }
        read.sort_unstable();
        read.dedup();
        let schema = project_schema(&self.schema, Some(&read))?;
        let place = |column: &usize| read.partition_point(|other| other < column);
        let shown = projection.map(|columns| columns.iter().map(place).collect());
        let filter = state.create_physical_expr(filter, &Arc::clone(&schema).to_dfschema()?)?;
        let all: Arc<dyn ExecutionPlan> = Arc::new(ShardScan::new(self.shards.clone(), asked, schema, None));
        let kept = FilterExecBuilder::new(filter, all).apply_projection(shown)?.build()?;
        Ok(Arc::new(kept))
    }
}
