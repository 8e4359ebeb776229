//! A sink of the engine's that writes files of a format of ours, or one whose own sink can't be told from others and so not be sent.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use object_store::ObjectStore;

use super::whole::{Making, write_files};

/// Files of a format.
pub(crate) trait Files: Send + Sync + 'static {
    /// One that is being written.
    type Making: Making;

    /// What plans call their sink.
    const SINK: &'static str;

    /// Begins one of these columns.
    fn begin(&self, schema: SchemaRef) -> Result<Self::Making>;
}

/// Writes files: one, or a folder of them.
pub(crate) struct WholeSink<F> {
    config: FileSinkConfig,
    pub(crate) files: F,
}

impl<F> WholeSink<F> {
    pub(crate) fn new(config: FileSinkConfig, files: F) -> Self {
        Self { config, files }
    }
}

#[async_trait]
impl<F: Files> FileSink for WholeSink<F> {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        _: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        write_files(&self.config, |schema| self.files.begin(schema), demux_task, files, store).await
    }
}

impl<F: Files> fmt::Debug for WholeSink<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(F::SINK).finish_non_exhaustive()
    }
}

impl<F: Files> DisplayAs for WholeSink<F> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(file={})", F::SINK, self.config.original_url)
    }
}

#[async_trait]
impl<F: Files> DataSink for WholeSink<F> {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}
