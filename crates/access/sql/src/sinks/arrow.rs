//! Writes rows as Arrow files, as the engine's own sink does, which can't be told from others and so not be sent to executors.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use datafusion::arrow::ipc::{CompressionType, MetadataVersion};
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use object_store::ObjectStore;

use super::whole::{Making, write_files};

/// Bytes at which buffers of a file begin: what readers of memory want at most.
const ALIGNMENT: usize = 64;

/// Writes Arrow files: one, or a folder of them.
pub(crate) struct ArrowSink {
    config: FileSinkConfig,
}

impl ArrowSink {
    pub(crate) fn new(config: FileSinkConfig) -> Self {
        Self { config }
    }
}

/// An Arrow file that is being written.
struct ArrowMaking(FileWriter<Vec<u8>>);

impl ArrowMaking {
    fn begin(schema: &SchemaRef) -> Result<Self> {
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
        let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        Ok(Self(FileWriter::try_new_with_options(Vec::new(), schema, options)?))
    }
}

impl Making for ArrowMaking {
    fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        Ok(self.0.write(rows)?)
    }

    fn made(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }

    fn finish(self) -> Result<Vec<u8>> {
        Ok(self.0.into_inner()?)
    }
}

#[async_trait]
impl FileSink for ArrowSink {
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
        write_files(&self.config, |schema| ArrowMaking::begin(&schema), demux_task, files, store).await
    }
}

impl fmt::Debug for ArrowSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowSink").finish_non_exhaustive()
    }
}

impl DisplayAs for ArrowSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrowSink(file={})", self.config.original_url)
    }
}

#[async_trait]
impl DataSink for ArrowSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}
