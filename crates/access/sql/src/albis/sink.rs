//! Writes rows as table files, of which none is shown before all rows of the statement have come.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use forebay_table::{Options, Writer};
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Receiver;

use crate::error::external;

/// Bytes that are handed to the store at once.
const PART_BYTES: usize = 8 << 20;

/// Writes table files: one, or a folder of them.
pub(super) struct TableSink {
    config: FileSinkConfig,
    options: Options,
}

impl TableSink {
    pub(super) fn new(config: FileSinkConfig, options: Options) -> Self {
        Self { config, options }
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
        mut files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let mut writes = JoinSet::new();
        while let Some((path, batches)) = files.recv().await {
            let (store, schema) = (Arc::clone(&store), get_writer_schema(&self.config));
            writes.spawn(write(store, path, schema, self.options.clone(), batches));
        }
        let (mut outs, mut outcome) = (Vec::new(), Ok(0));
        while let Some(written) = writes.join_next().await {
            let written = written.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)));
            match written.and_then(|written| written) {
                Ok((out, rows)) => {
                    outs.push(out);
                    outcome = outcome.map(|sum| sum + rows);
                }
                Err(error) => outcome = Err(error),
            }
        }
        // Where the rows stopped coming because of an error the files are not whole, though their writers can't know.
        let source = demux_task.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)));
        let outcome = outcome.and_then(|rows| source.and_then(|source| source).map(|()| rows));
        for mut out in outs {
            match &outcome {
                Ok(_) => out.shutdown().await?,
                Err(_) => abort(&mut out).await,
            }
        }
        outcome
    }
}

/// Writes one file up to its end, but does not show it yet.
async fn write(
    store: Arc<dyn ObjectStore>,
    path: Path,
    schema: SchemaRef,
    options: Options,
    mut batches: Receiver<RecordBatch>,
) -> Result<(BufWriter, u64)> {
    let mut out = BufWriter::with_capacity(store, path, PART_BYTES);
    match write_to(&mut out, schema, options, &mut batches).await {
        Ok(rows) => Ok((out, rows)),
        Err(error) => {
            abort(&mut out).await;
            Err(error)
        }
    }
}

async fn write_to(out: &mut BufWriter, schema: SchemaRef, options: Options, batches: &mut Receiver<RecordBatch>) -> Result<u64> {
    let mut writer = Writer::new(Vec::new(), schema, options).map_err(external)?;
    let mut pushed = 0;
    while let Some(batch) = batches.recv().await {
        pushed += batch.num_rows() as u64;
        writer.push(&batch).map_err(external)?;
        let made = std::mem::take(writer.sink_mut());
        if !made.is_empty() {
            out.put(made.into()).await?;
        }
    }
    let (rest, summary) = writer.finish().map_err(external)?;
    out.put(rest.into()).await?;
    assert_eq!(summary.rows, pushed, "a table has the rows that were written");
    Ok(summary.rows)
}

/// Gives a file up. What failed before is what the caller has to hear, so a failure here is not told.
async fn abort(out: &mut BufWriter) {
    let _ = out.abort().await;
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
