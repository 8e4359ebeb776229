//! The engine's formats of Arrow and Avro files, whose files are read under guard.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::avro::AvroFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};

use super::bounds::decoded_bytes_max;
use super::source::{GuardedSource, guarded_of};
use super::{arrow, avro};

/// A reader of Arrow or Avro files under guard in place of the engine's, any other as it is.
pub(in crate::paths) fn guarded(reader: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    let any = reader.as_ref() as &dyn Any;
    match any.is::<ArrowFormat>() || any.is::<AvroFormat>() {
        true => Arc::new(Guarded(reader)),
        false => reader,
    }
}

/// The common schema of files whose format is read under guard; none of another format. A file that can't be read is named.
pub(in crate::paths) async fn schema(
    state: &dyn Session,
    format: &dyn FileFormat,
    store: &Arc<dyn ObjectStore>,
    files: &[ObjectMeta],
) -> Result<Option<SchemaRef>> {
    match (format as &dyn Any).downcast_ref::<Guarded>() {
        Some(guarded) => guarded.schema(state, store, files).await.map(Some),
        None => Ok(None),
    }
}

#[derive(Debug)]
struct Guarded(Arc<dyn FileFormat>);

impl Guarded {
    async fn schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<SchemaRef> {
        let mut schemas = Vec::with_capacity(files.len());
        for file in files {
            let schema = match (self.0.as_ref() as &dyn Any).is::<AvroFormat>() {
                true => avro::schema(state, store, file).await,
                false => arrow::schema(store, file).await,
            };
            schemas.push(Arc::unwrap_or_clone(schema.map_err(|fault| fault.of(file))?));
        }
        Ok(Arc::new(Schema::try_merge(schemas)?))
    }
}

#[async_trait]
impl FileFormat for Guarded {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<SchemaRef> {
        self.schema(state, store, files).await
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

    async fn create_physical_plan(&self, state: &dyn Session, scan: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        // The engine's Arrow format chooses another source, by what the first file is.
        let plan = self.0.create_physical_plan(state, scan).await?;
        Ok(guarded_of(plan, decoded_bytes_max(state.runtime_env())))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        sink: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_writer_physical_plan(input, state, sink, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        // How much a scan may take is known when it is planned.
        GuardedSource::over(self.0.file_source(table_schema), 0)
    }
}
