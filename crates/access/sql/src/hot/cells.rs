//! Asks workers for decoded columns of the versions that a query has pinned, and opens those that are all there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfig;
use forebay_client::{Client, FarRows, RowsQuestion, SnapshotStore};
use forebay_types::{Cell, CellSource, ObjectVersion, TextForm};
use futures::future::join_all;
use object_store::ObjectMeta;

use crate::hot::row_group::RowGroup;

/// The decoded columns that one query can read: of the versions that it has pinned.
#[derive(Clone)]
pub(crate) struct Cells {
    client: Client,
    snapshot: SnapshotStore,
    /// Whether workers of other hosts are asked for rows.
    pub(super) from_afar: bool,
}

forebay_types::shown!(Cells);

impl Cells {
    pub(crate) fn new(client: Client, snapshot: SnapshotStore, from_afar: bool) -> Self {
        Self { client, snapshot, from_afar }
    }

    /// Whether no worker's tier can be read in place here, and rows are to come from those of other hosts.
    pub(super) fn are_afar(&self) -> bool {
        self.from_afar && !self.client.has_worker_beside()
    }

    /// Has a worker of another host select rows.
    pub(super) async fn select(&self, source: &CellSource, question: RowsQuestion) -> FarRows {
        self.client.select_rows(self.snapshot.operation(), source, question).await
    }

    /// Rows of these columns were made of so many bytes of the file.
    pub(super) fn decoded(&self, source: &CellSource, columns: &[u32], bytes: u64, took: Duration) {
        self.client.rows_decoded(source, columns, bytes, took);
    }

    /// Rows that a worker has selected were opened.
    pub(super) fn opened(&self, source: &CellSource, columns: &[u32], bytes: u64, took: Duration) {
        self.client.rows_opened(source, columns, bytes, took);
    }

    /// The version of a Parquet file that the query reads, if columns of it may be decoded.
    pub(crate) fn parquet(&self, meta: &ObjectMeta) -> Option<CellSource> {
        self.version(meta).filter(ObjectVersion::has_cells).map(CellSource::parquet)
    }

    /// The same of a text file, with what its lines are taken for.
    pub(crate) fn text(&self, meta: &ObjectMeta, form: &Arc<TextForm>) -> Option<CellSource> {
        Some(CellSource::text(self.version(meta)?, Arc::clone(form)))
    }

    fn version(&self, meta: &ObjectMeta) -> Option<ObjectVersion> {
        let version = self.snapshot.pinned_at(&meta.location)?.version;
        let same = meta.e_tag.as_deref().is_none_or(|tag| tag == version.tag.as_str()) && meta.size == version.size;
        (same && self.client.has_hot_form(&version)).then_some(version)
    }

    /// Whether these columns of a row group or chunk were decoded when the engine last looked.
    pub(crate) fn had(&self, source: &CellSource, part: usize, columns: &[usize]) -> bool {
        columns.iter().all(|column| cell(part, *column).is_some_and(|cell| self.client.had_cell(source, cell)))
    }

    /// A row group or chunk whose columns are all decoded, with their bytes; `rows` is how many it must have.
    pub(super) async fn open(
        &self,
        source: &CellSource,
        part: usize,
        columns: &[usize],
        schema: &SchemaRef,
        rows: Option<usize>,
    ) -> Option<(RowGroup, usize)> {
        let cells = columns.iter().map(|column| self.read(source, part, *column));
        let cells = join_all(cells).await.into_iter().collect::<Option<Vec<Bytes>>>()?;
        let bytes = cells.iter().map(Bytes::len).sum();
        match RowGroup::open(cells, schema, rows) {
            Ok(opened) => opened.map(|opened| (opened, bytes)),
            Err(error) => {
                let key = &source.version().key;
                tracing::warn!(%key, part, %error, "decoded columns can't be read: the raw form is");
                None
            }
        }
    }

    /// A decoded column of a row group or chunk, if a worker holds it.
    async fn read(&self, source: &CellSource, part: usize, column: usize) -> Option<Bytes> {
        self.client.read_cell(self.snapshot.operation(), source, cell(part, column)?).await
    }
}

/// Whether any of a scan's files is one of these.
pub(super) fn any_file(config: &FileScanConfig, mut is: impl FnMut(&PartitionedFile) -> bool) -> bool {
    config.file_groups.iter().flat_map(|group| group.files()).any(&mut is)
}

fn cell(part: usize, column: usize) -> Option<Cell> {
    Some(Cell { row_group: u32::try_from(part).ok()?, column: u32::try_from(column).ok()? })
}
