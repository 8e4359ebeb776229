use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, ParquetRowSelection};
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, ParquetSource};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::Count;
use forebay_types::ObjectVersion;
use futures::future::join_all;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use crate::hot::cells::Cells;
use crate::hot::raw::Raw;
use crate::hot::row_group::RowGroup;
use crate::hot::scan::FileScan;
use crate::prefetch::Footer;

/// Row groups that are looked up at a time, and bytes of decoded columns after which the look-up pauses.
const LOOK_AHEAD: usize = 16;
const LOOK_AHEAD_BYTES: usize = 64 << 20;

/// Opens a file: decoded columns for the row groups that have them, the engine's own reader for the others.
pub(super) struct HotOpener(Arc<Opener>);

/// What all files of a scan's partition are opened with.
pub(super) struct Opener {
    pub(super) raw: Raw,
    pub(super) config: FileScanConfig,
    pub(super) parquet: ParquetSource,
    pub(super) cells: Cells,
    pub(super) runtime: Arc<RuntimeEnv>,
    /// Filters of joins that look up the scan's rows as they come.
    pub(super) near: Arc<HashSet<u64>>,
    /// Row groups that were read in the table form, for `EXPLAIN ANALYZE`.
    pub(super) decoded: Count,
    /// Rows of theirs that filters made while the query ran have dropped.
    pub(super) dropped: Count,
}

impl HotOpener {
    pub(super) fn new(opener: Opener) -> Self {
        Self(Arc::new(opener))
    }
}

impl FileOpener for HotOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = Arc::clone(&self.0);
        Ok(Box::pin(async move { opener.open(file).await }))
    }
}

type Batches = BoxStream<'static, Result<RecordBatch>>;

impl Opener {
    async fn open(self: Arc<Self>, file: PartitionedFile) -> Result<Batches> {
        let Some((version, scan)) = self.scan(&file) else { return self.raw.read(file).await };
        let reading =
            Reading { rest: scan.row_groups.iter().copied().collect(), opener: self, version, scan: Arc::new(scan), file };
        Ok(stream::try_unfold(reading, |mut reading| async move {
            let run = reading.next().await?;
            Ok::<_, DataFusionError>(run.map(|run| (run, reading)))
        })
        .try_flatten()
        .boxed())
    }

    /// How a file is read if any of its columns may be decoded.
    fn scan(&self, file: &PartitionedFile) -> Option<(ObjectVersion, FileScan)> {
        // Whoever wants certain rows has asked the engine's reader for them.
        let plain = !file.extensions.contains::<ParquetAccessPlan>() && !file.extensions.contains::<ParquetRowSelection>();
        let version = plain.then(|| self.cells.version(&file.object_meta))??;
        let footer = Footer::cached(&self.runtime, &file.object_meta)?;
        let scan =
            FileScan::of(&self.config, &self.parquet, file, &footer, &self.near, self.dropped.clone()).unwrap_or_else(|error| {
                tracing::debug!(path = %file.object_meta.location, %error, "a file is read in its raw form");
                None
            });
        Some((version, scan?))
    }
}

/// A file that is being read.
struct Reading {
    opener: Arc<Opener>,
    version: ObjectVersion,
    scan: Arc<FileScan>,
    file: PartitionedFile,
    rest: VecDeque<usize>,
}

impl Reading {
    /// The batches of the next row groups that are read in the same way; none at the end.
    async fn next(&mut self) -> Result<Option<Batches>> {
        let Some(first) = self.rest.pop_front() else { return Ok(None) };
        match self.decoded(first).await {
            Some((row_group, bytes)) => {
                let mut run = vec![row_group];
                let mut held = bytes;
                while run.len() < LOOK_AHEAD
                    && held < LOOK_AHEAD_BYTES
                    && let Some(next) = self.rest.front()
                    && let Some((row_group, bytes)) = self.decoded(*next).await
                {
                    self.rest.pop_front();
                    run.push(row_group);
                    held += bytes;
                }
                self.opener.decoded.add(run.len());
                Ok(Some(self.batches(run)))
            }
            None => {
                let mut run = vec![first];
                // Each is asked for, so that it becomes popular; one that is there already ends the run.
                while let Some(next) = self.rest.front().copied() {
                    if run.len() <= LOOK_AHEAD && self.decoded(next).await.is_some() {
                        break;
                    }
                    run.push(next);
                    self.rest.pop_front();
                }
                self.opener.raw.row_groups(&self.file, &run, self.scan.row_groups_in_file).await.map(Some)
            }
        }
    }

    /// A row group whose columns are all decoded, with their bytes.
    async fn decoded(&self, row_group: usize) -> Option<(RowGroup, usize)> {
        let cells = self.scan.leaves.iter().map(|leaf| self.opener.cells.read(&self.version, row_group, *leaf));
        let cells = join_all(cells).await.into_iter().collect::<Option<Vec<Bytes>>>()?;
        let bytes = cells.iter().map(Bytes::len).sum();
        match RowGroup::open(cells, &self.scan.stream, self.scan.rows(row_group)) {
            Ok(opened) => opened.map(|opened| (opened, bytes)),
            Err(error) => {
                tracing::warn!(key = %self.version.key, row_group, %error, "decoded columns can't be read: the raw form is");
                None
            }
        }
    }

    fn batches(&self, run: Vec<RowGroup>) -> Batches {
        let scan = Arc::clone(&self.scan);
        let batches = run.into_iter().flat_map(move |row_group| {
            let scan = Arc::clone(&scan);
            (0..row_group.batches()).map(move |at| {
                let batch = row_group.batch(at, &scan.stream).map_err(|error| DataFusionError::External(Box::new(error)))?;
                scan.output(batch)
            })
        });
        stream::iter(batches.filter(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0))).boxed()
    }
}
