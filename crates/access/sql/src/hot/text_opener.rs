//! Reads CSV and JSON chunk by chunk, from decoded columns or with DataFusion's reader, with each line read once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::Count;
use datafusion_datasource::projection::ProjectionOpener;
use forebay_client::FarPart;
use forebay_types::{CellSource, TextLines};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::hot::cells::Cells;
use crate::hot::far::{self, Far, Wanted};
use crate::hot::row_group::{self, RowGroup};
use crate::hot::text_scan::{TextScan, chunk_bytes, chunk_range, chunks, file_range, is_whole};
use crate::hot::timed::timed;
use crate::hot::walk::{Batches, Parts, walk};

/// Chunks that are asked for before a run of raw ones is read: half a gigabyte.
const ASKED_MAX: usize = 128;
/// The same where each is asked for over a network.
const ASKED_AFAR_MAX: usize = 8;

/// Opens a text file: decoded columns for the chunks that have them, the engine's own reader for the others.
pub(super) struct TextOpener(Arc<Opener>);

/// What all files of a scan's partition are opened with.
pub(super) struct Opener {
    pub(super) raw: Arc<dyn FileOpener>,
    pub(super) scan: Arc<TextScan>,
    pub(super) file_schema: SchemaRef,
    pub(super) cells: Cells,
    /// None where rows of other hosts' workers are not asked for.
    pub(super) far: Option<Far>,
    pub(super) has_limit: bool,
    /// Chunks that were read in the table form, for `EXPLAIN ANALYZE`.
    pub(super) decoded: Count,
}

impl TextOpener {
    pub(super) fn new(opener: Opener) -> Self {
        Self(Arc::new(opener))
    }
}

impl FileOpener for TextOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        match Chunks::of(&self.0, &file) {
            Some(reading) => {
                let (rest, decoded) = (chunks(&reading.range), self.0.decoded.clone());
                Ok(Box::pin(async move { Ok(walk(reading, rest, decoded)) }))
            }
            None => self.0.raw.open(file),
        }
    }
}

/// A file that is being read.
struct Chunks {
    opener: Arc<Opener>,
    source: CellSource,
    file: PartitionedFile,
    range: Range<u64>,
    /// The engine would read this file in one piece, and so finds values that go on in the next line, whatever it was told.
    /// The same are found here as long as chunks are read in the table form, which no such value is in; from the first
    /// other one on, the rest is left to the engine's reader.
    whole: bool,
    is_raw_from_here: AtomicBool,
}

impl Chunks {
    /// None where nothing can be decoded, or the range was not cut for it.
    fn of(opener: &Arc<Opener>, file: &PartitionedFile) -> Option<Self> {
        let source = opener.cells.text(&file.object_meta, &opener.scan.form)?;
        let (range, (start, end)) = (chunk_range(file), file.range());
        let takes_ranges = || opener.scan.form.lines != TextLines::Json || opener.takes_ranges(file);
        if range != (start..end) || range.is_empty() || !takes_ranges() {
            return None;
        }
        let (opener, file, whole) = (Arc::clone(opener), file.clone(), is_whole(&range, file));
        Some(Self { opener, source, file, range, whole, is_raw_from_here: AtomicBool::new(false) })
    }

    /// All rows of a chunk: how many they are is known where they are decoded.
    fn wanted(&self, chunk: usize) -> Wanted {
        let (columns, bytes) = (self.opener.scan.columns.clone(), chunk_bytes(chunk, &self.range));
        let raw_bytes = bytes.end.saturating_sub(bytes.start);
        let costs = FarPart { raw_bytes, columns: columns.len(), rows: None, row_bytes: 0.0, share: 1.0 };
        Wanted { part: chunk, columns, tests: Vec::new(), limit: None, costs }
    }
}

impl Opener {
    /// Whether the engine's reader reads parts of a file: it does not when the file is one array of JSON, which only it knows.
    fn takes_ranges(&self, file: &PartitionedFile) -> bool {
        let mut file = file.clone();
        file.range = file_range(&(0..file.object_meta.size));
        // Nothing is read before it is waited for.
        self.raw.open(file).is_ok()
    }
}

impl Parts for Chunks {
    fn asked_max(&self) -> usize {
        // A run is not cut, or more lines than the engine cuts at would have to be rows; so it is asked for far ahead, unless
        // it may end early.
        match self.opener.has_limit {
            true => 0,
            false if self.opener.cells.are_afar() => ASKED_AFAR_MAX,
            false => ASKED_MAX,
        }
    }

    async fn decoded(&self, chunk: usize) -> Option<(RowGroup, usize)> {
        let (cells, scan) = (&self.opener.cells, &self.opener.scan);
        let found = match &self.opener.far {
            Some(far) if cells.are_afar() => far.open(cells, &self.source, self.wanted(chunk), &scan.stream).await,
            _ => cells.open(&self.source, chunk, &scan.columns, &scan.stream, None).await,
        };
        if self.whole && found.is_none() {
            self.is_raw_from_here.store(true, Ordering::Relaxed);
        }
        found.filter(|_| !self.is_raw_from_here.load(Ordering::Relaxed))
    }

    async fn batches(&self, run: Vec<RowGroup>) -> Result<Batches> {
        let scan = &self.opener.scan;
        let batches = row_group::batches(run, &scan.stream);
        let batches = match scan.split.file_indices.is_empty() {
            // Only rows count.
            true => stream::iter(batches.map(|batch| batch?.project(&[]).map_err(DataFusionError::from))).boxed(),
            false => stream::iter(batches).boxed(),
        };
        let given = Arc::new(Given(Mutex::new(Some(batches))));
        ProjectionOpener::try_new(scan.split.clone(), given, &self.opener.file_schema)?.open(self.file.clone())?.await
    }

    async fn raw(&self, run: &[usize]) -> Result<Batches> {
        let mut file = self.file.clone();
        let mut range = self.range.clone();
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            assert_eq!(last - first + 1, run.len(), "chunks that are read at once lie together");
            range = chunk_bytes(*first, &self.range).start..chunk_bytes(*last, &self.range).end;
            if range != self.range {
                file.range = file_range(&range);
            }
        }
        let (cells, scan) = (self.opener.cells.clone(), &self.opener.scan);
        let batches = self.opener.raw.open(file)?.await?;
        let is_afar = self.opener.far.is_some() && cells.are_afar();
        let Some(columns) = is_afar.then(|| far::numbers(&scan.columns)).flatten() else { return Ok(batches) };
        let (source, bytes) = (self.source.clone(), range.end.saturating_sub(range.start));
        Ok(timed(batches, move |_, took| cells.decoded(&source, &columns, bytes, took)))
    }
}

/// Batches in the place of a file.
struct Given(Mutex<Option<Batches>>);

impl FileOpener for Given {
    fn open(&self, _: PartitionedFile) -> Result<FileOpenFuture> {
        let batches = self.0.lock().take().unwrap_or_else(|| stream::empty().boxed());
        Ok(Box::pin(async move { Ok(batches) }))
    }
}
