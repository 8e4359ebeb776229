//! Files that are one JSON array. The engine's own reader can't begin within one, and yet lets its scans be split.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};

/// A reader of one array a file in place of the engine's, any other as it is.
pub(super) fn in_one_piece(reader: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    match (reader.as_ref() as &dyn Any).downcast_ref::<JsonFormat>() {
        Some(json) if !json.options().newline_delimited => Arc::new(Arrays(reader)),
        _ => reader,
    }
}

/// The engine's format, whose scans are not split.
#[derive(Debug)]
struct Arrays(Arc<dyn FileFormat>);

#[async_trait]
impl FileFormat for Arrays {
    crate::plan_nodes::names_of_own!(0);

    async fn infer_schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, objects: &[ObjectMeta]) -> Result<SchemaRef> {
        self.0.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(&self, state: &dyn Session, conf: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(state, conf).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_writer_physical_plan(input, state, conf, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(Whole(self.0.file_source(table_schema)))
    }
}

/// The engine's source of whole files. It has no serialised form, which would take arrays for lines, so that a plan with
/// one runs in the process that it is in.
struct Whole(Arc<dyn FileSource>);

impl FileSource for Whole {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.0.create_file_opener(store, config, partition)
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self(self.0.with_batch_size(batch_size)))
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let own = self.0.try_pushdown_projection(projection)?;
        Ok(own.map(|own| Arc::new(Self(own)) as Arc<dyn FileSource>))
    }

    crate::plan_nodes::as_own_source!(0);
}
