//! Table files under DataFusion's trait for formats: how schema and statistics are found, and who reads and writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use forebay_types::Error;
use object_store::{ObjectMeta, ObjectStore};

use super::metadata::Tables;
use super::options::parse;
use super::rows;
use super::sink::{TableFiles, TableSink};
use super::source::TableSource;
use super::statistics::of_table;
use crate::error::external;

/// What names end with, and what `STORED AS` calls it.
const EXTENSION: &str = "albis";

/// Makes the format from the options of a statement.
#[derive(Debug, Default)]
pub(crate) struct TableFormatFactory;

impl GetExt for TableFormatFactory {
    fn get_ext(&self) -> String {
        EXTENSION.to_string()
    }
}

impl FileFormatFactory for TableFormatFactory {
    fn create(&self, _: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        parse(options).map_err(external)?;
        let said = options.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Arc::new(TableFormat { said, numbered: false }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(TableFormat::default())
    }
}

/// Table files, as the engine reads and writes them.
#[derive(Debug, Default)]
pub(crate) struct TableFormat {
    /// Options of what is written.
    said: BTreeMap<String, String>,
    /// Rows are read with their numbers, which nobody writes.
    numbered: bool,
}

impl TableFormat {
    /// For files that are read with the numbers of their rows.
    pub(crate) fn numbered() -> Self {
        Self { numbered: true, ..Self::default() }
    }
}

#[async_trait]
impl FileFormat for TableFormat {
    fn get_ext(&self) -> String {
        EXTENSION.to_string()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match *compression == FileCompressionType::UNCOMPRESSED {
            true => Ok(EXTENSION.to_string()),
            false => Err(external(Error::invalid("table files are never compressed: leave the compression out"))),
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<SchemaRef> {
        let tables = Tables::cached(state.runtime_env().cache_manager.get_file_metadata_cache());
        let mut schemas = Vec::with_capacity(files.len());
        for file in files {
            schemas.push(tables.open(store, file).await?.table.schema().arrow().as_ref().clone());
        }
        let merged = Schema::try_merge(schemas.clone())?;
        // What some file does not have is null there.
        let fields = merged.fields().iter().map(|field| {
            let everywhere = schemas.iter().all(|schema| schema.index_of(field.name()).is_ok());
            rows::of_file(field).with_nullable(field.is_nullable() || !everywhere)
        });
        Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), merged.metadata().clone())))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        file: &ObjectMeta,
    ) -> Result<Statistics> {
        let tables = Tables::cached(state.runtime_env().cache_manager.get_file_metadata_cache());
        of_table(&tables.open(store, file).await?.table, &schema)
    }

    async fn create_physical_plan(&self, state: &dyn Session, scan: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        let tables = Tables::cached(state.runtime_env().cache_manager.get_file_metadata_cache());
        let source = scan.file_source.downcast_ref::<TableSource>();
        let source = source.ok_or_else(|| external(Error::internal("a scan of table files that is none")))?;
        let source: Arc<dyn FileSource> = Arc::new(source.clone().with_tables(tables));
        Ok(DataSourceExec::from_data_source(FileScanConfigBuilder::from(scan).with_source(source).build()))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _: &dyn Session,
        sink: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.numbered {
            return Err(external(Error::invalid("rows are numbered as they are read: leave `#row` at the end of the path out")));
        }
        if sink.insert_op != InsertOp::Append {
            return Err(external(Error::invalid("table files are not overwritten by INSERT: write new ones with COPY")));
        }
        let sink = TableSink::new(sink, TableFiles::new(self.said.clone()).map_err(external)?);
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(TableSource::new(schema))
    }
}
