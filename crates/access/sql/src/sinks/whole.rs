//! Writes rows to files up to their ends, and shows them when all is there.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::{DataFusionError, Result};
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Receiver;

/// Bytes that are handed to the store at once.
const PART_BYTES: usize = 8 << 20;

/// What makes the bytes of a file.
pub(crate) trait Making: Send + Sized + 'static {
    /// Takes the next rows.
    fn push(&mut self, rows: &RecordBatch) -> Result<()>;

    /// Bytes that have come of rows since the last call.
    fn made(&mut self) -> Vec<u8>;

    /// The last bytes.
    fn finish(self) -> Result<Vec<u8>>;
}

/// Writes each of `files` by what `begin` makes of its columns; gives the number of rows. When `rows`, which divides them, or one of the
/// files fails, none is shown.
pub(crate) async fn write_files<M: Making>(
    config: &FileSinkConfig,
    begin: impl Fn(SchemaRef) -> Result<M> + Send,
    rows: SpawnedTask<Result<()>>,
    mut files: DemuxedStreamReceiver,
    store: Arc<dyn ObjectStore>,
) -> Result<u64> {
    let mut writes = JoinSet::new();
    while let Some((path, batches)) = files.recv().await {
        writes.spawn(write(Arc::clone(&store), path, begin(get_writer_schema(config)), batches));
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
    let source = rows.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)));
    let outcome = outcome.and_then(|rows| source.and_then(|source| source).map(|()| rows));
    for mut out in outs {
        if outcome.is_ok() { out.shutdown().await? } else { abort(&mut out).await }
    }
    outcome
}

/// Writes one file up to its end, but does not show it yet.
async fn write<M: Making>(
    store: Arc<dyn ObjectStore>,
    path: Path,
    making: Result<M>,
    mut batches: Receiver<RecordBatch>,
) -> Result<(BufWriter, u64)> {
    let mut out = BufWriter::with_capacity(store, path, PART_BYTES);
    match write_to(&mut out, making, &mut batches).await {
        Ok(rows) => Ok((out, rows)),
        Err(error) => {
            abort(&mut out).await;
            Err(error)
        }
    }
}

async fn write_to<M: Making>(out: &mut BufWriter, making: Result<M>, batches: &mut Receiver<RecordBatch>) -> Result<u64> {
    let mut making = making?;
    let mut rows = 0;
    while let Some(batch) = batches.recv().await {
        rows += batch.num_rows() as u64;
        making.push(&batch)?;
        let made = making.made();
        if !made.is_empty() {
            out.put(made.into()).await?;
        }
    }
    let rest = making.finish()?;
    out.put(rest.into()).await?;
    Ok(rows)
}

/// Gives a file up. What failed before is what the caller has to hear, so a failure here is not told.
async fn abort(out: &mut BufWriter) {
    let _ = out.abort().await;
}
