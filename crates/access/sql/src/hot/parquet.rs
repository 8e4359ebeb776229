//! Reads a Parquet file row group by row group, from decoded columns or with DataFusion's reader, whichever has it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, ParquetRowSelection};
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, ParquetSource};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::Count;
use forebay_client::FAR_ASKED;
use forebay_types::CellSource;
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::hot::cells::Cells;
use crate::hot::far::{self, Far};
use crate::hot::raw::Raw;
use crate::hot::row_group::{self, RowGroup};
use crate::hot::scan::FileScan;
use crate::hot::timed::timed;
use crate::hot::walk::{Batches, LOOK_AHEAD, Parts, walk};
use crate::scans::Footer;

/// Opens a Parquet file: decoded columns for the row groups that have them, the engine's own reader for the others.
pub(super) struct ParquetOpener(Arc<Opener>);

/// What all files of a scan's partition are opened with.
pub(super) struct Opener {
    pub(super) raw: Raw,
    pub(super) config: FileScanConfig,
    pub(super) parquet: ParquetSource,
    pub(super) cells: Cells,
    /// None where rows of other hosts' workers are not asked for.
    pub(super) far: Option<Far>,
    pub(super) runtime: Arc<RuntimeEnv>,
    /// Filters of joins that look up the scan's rows as they come.
    pub(super) near: Arc<HashSet<u64>>,
    /// Row groups that were read in the table form, for `EXPLAIN ANALYZE`.
    pub(super) decoded: Count,
    /// Rows of theirs that filters made while the query ran have dropped.
    pub(super) dropped: Count,
}

impl ParquetOpener {
    pub(super) fn new(opener: Opener) -> Self {
        Self(Arc::new(opener))
    }
}

impl FileOpener for ParquetOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = Arc::clone(&self.0);
        Ok(Box::pin(async move { opener.open(file).await }))
    }
}

impl Opener {
    async fn open(self: Arc<Self>, file: PartitionedFile) -> Result<Batches> {
        let Some((source, scan)) = self.scan(&file).await else { return self.raw.read(file).await };
        let (row_groups, decoded) = (scan.row_groups.clone(), self.decoded.clone());
        let (scan, asked) = (Arc::new(scan), Mutex::default());
        Ok(walk(RowGroups { opener: self, source, scan, file, asked }, row_groups, decoded))
    }

    /// Where rows are asked for of workers of other hosts.
    fn afar(&self) -> Option<&Far> {
        self.far.as_ref().filter(|_| self.cells.are_afar())
    }

    /// How a file is read if any of its columns may be decoded.
    async fn scan(&self, file: &PartitionedFile) -> Option<(CellSource, FileScan)> {
        // Whoever wants certain rows has asked the engine's reader for them.
        let plain = !file.extensions.contains::<ParquetAccessPlan>() && !file.extensions.contains::<ParquetRowSelection>();
        let source = plain.then(|| self.cells.parquet(&file.object_meta))??;
        // Known where the query was planned; a part of one that was planned elsewhere may be the first here to read the file.
        let footer = match Footer::cached(&self.runtime, &file.object_meta) {
            Some(footer) => footer,
            None => {
                let store = self.runtime.object_store(&self.config.object_store_url).ok()?;
                Footer::read(&self.runtime, store.as_ref(), &file.object_meta).await.ok()?
            }
        };
        let scan =
            FileScan::of(&self.config, &self.parquet, file, &footer, &self.near, self.dropped.clone()).unwrap_or_else(|error| {
                tracing::debug!(path = %file.object_meta.location, %error, "a file is read in its raw form");
                None
            });
        Some((source, scan?))
    }
}

/// Rows that are on their way, with the bytes that are sent.
type Asked = AbortOnDropHandle<Option<(RowGroup, usize)>>;

/// A file that is being read.
struct RowGroups {
    opener: Arc<Opener>,
    source: CellSource,
    scan: Arc<FileScan>,
    file: PartitionedFile,
    /// Row groups of which rows are on their way from a worker of another host.
    asked: Mutex<HashMap<usize, Asked>>,
}

impl RowGroups {
    /// Rows of a row group that a worker of another host selects; those of the next ones are asked for at the same time.
    async fn selected(&self, far: &Far, row_group: usize) -> Option<(RowGroup, usize)> {
        let asked = {
            let mut asked = self.asked.lock();
            let at = self.scan.row_groups.iter().position(|one| *one == row_group)?;
            for next in self.scan.row_groups.iter().skip(at).take(FAR_ASKED) {
                asked.entry(*next).or_insert_with(|| self.ask(far, *next));
            }
            asked.remove(&row_group)?
        };
        asked.await.ok().flatten()
    }

    fn ask(&self, far: &Far, row_group: usize) -> Asked {
        let (far, cells, source) = (far.clone(), self.opener.cells.clone(), self.source.clone());
        let (wanted, schema) = (self.scan.wanted(row_group, self.opener.config.limit), Arc::clone(&self.scan.stream));
        AbortOnDropHandle::new(forebay_runtime::spawn(async move { far.open(&cells, &source, wanted, &schema).await }))
    }
}

impl Parts for RowGroups {
    fn asked_max(&self) -> usize {
        LOOK_AHEAD
    }

    async fn decoded(&self, row_group: usize) -> Option<(RowGroup, usize)> {
        if let Some(far) = self.opener.afar() {
            return self.selected(far, row_group).await;
        }
        let rows = Some(self.scan.rows(row_group));
        self.opener.cells.open(&self.source, row_group, &self.scan.leaves, &self.scan.stream, rows).await
    }

    async fn batches(&self, run: Vec<RowGroup>) -> Result<Batches> {
        let scan = Arc::clone(&self.scan);
        let batches = row_group::batches(run, &self.scan.stream).map(move |batch| scan.output(batch?));
        Ok(stream::iter(batches.filter(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0))).boxed())
    }

    async fn raw(&self, run: &[usize]) -> Result<Batches> {
        // Rows of these are not waited for.
        self.asked.lock().retain(|row_group, _| !run.contains(row_group));
        let batches = self.opener.raw.row_groups(&self.file, run, self.scan.row_groups_in_file).await?;
        let Some(columns) = self.opener.afar().and_then(|_| far::numbers(&self.scan.leaves)) else { return Ok(batches) };
        // What this takes decides which way the next ones come.
        let (cells, source, (bytes, all)) = (self.opener.cells.clone(), self.source.clone(), self.scan.whole(run));
        Ok(timed(batches, move |rows, took| {
            // The reader may have pruned some of them.
            let read = bytes as f64 * (rows as f64 / all.max(1) as f64).min(1.0);
            cells.decoded(&source, &columns, read as u64, took);
        }))
    }
}
