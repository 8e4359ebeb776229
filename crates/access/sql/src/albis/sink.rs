//! Writes rows as table files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use forebay_table::{Options, Writer};
use object_store::ObjectStore;

use super::options::parse;
use crate::error::external;
use crate::sinks::{Making, write_files};

/// Writes table files: one, or a folder of them.
pub(crate) struct TableSink {
    config: FileSinkConfig,
    said: BTreeMap<String, String>,
    options: Options,
}

impl TableSink {
    /// One of files that are cut as a statement's options say. `Invalid` for options that there are not.
    pub(crate) fn new(config: FileSinkConfig, said: BTreeMap<String, String>) -> forebay_types::Result<Self> {
        Ok(Self { config, options: parse(&said)?, said })
    }

    /// The statement's options.
    pub(crate) fn said(&self) -> &BTreeMap<String, String> {
        &self.said
    }
}

/// A table file that is being written.
struct TableMaking {
    writer: Writer<Vec<u8>>,
    pushed: u64,
}

impl Making for TableMaking {
    fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        self.pushed += rows.num_rows() as u64;
        self.writer.push(rows).map_err(external)
    }

    fn made(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.sink_mut())
    }

    fn finish(self) -> Result<Vec<u8>> {
        let (rest, summary) = self.writer.finish().map_err(external)?;
        assert_eq!(summary.rows, self.pushed, "a table has the rows that were written");
        Ok(rest)
    }
}

#[async_trait]
impl FileSink for TableSink {
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
        let begin = |schema: SchemaRef| -> Result<TableMaking> {
            let writer = Writer::new(Vec::new(), schema, self.options.clone()).map_err(external)?;
            Ok(TableMaking { writer, pushed: 0 })
        };
        write_files(&self.config, begin, demux_task, files, store).await
    }
}

impl fmt::Debug for TableSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSink").finish_non_exhaustive()
    }
}

impl DisplayAs for TableSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSink(file={})", self.config.original_url)
    }
}

#[async_trait]
impl DataSink for TableSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}
