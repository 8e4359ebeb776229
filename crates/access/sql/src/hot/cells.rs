use std::fmt;

use bytes::Bytes;
use datafusion::datasource::physical_plan::FileScanConfig;
use forebay_client::{Client, SnapshotStore};
use forebay_types::{Cell, ObjectVersion};
use object_store::ObjectMeta;

/// The decoded columns that one query can read: of the versions that it has pinned.
#[derive(Clone)]
pub(crate) struct Cells {
    client: Client,
    snapshot: SnapshotStore,
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cells").finish_non_exhaustive()
    }
}

impl Cells {
    pub(crate) fn new(client: Client, snapshot: SnapshotStore) -> Self {
        Self { client, snapshot }
    }

    /// The version of a file that the query reads, if columns of it may be decoded.
    pub(crate) fn version(&self, meta: &ObjectMeta) -> Option<ObjectVersion> {
        let version = self.snapshot.pinned_at(&meta.location)?.version;
        let same = meta.e_tag.as_deref().is_none_or(|tag| tag == version.tag.as_str()) && meta.size == version.size;
        (same && self.client.has_cells(&version)).then_some(version)
    }

    /// Whether any of a scan's files may have decoded columns.
    pub(super) fn may_have(&self, config: &FileScanConfig) -> bool {
        config.file_groups.iter().flat_map(|group| group.files()).any(|file| self.version(&file.object_meta).is_some())
    }

    /// Whether these columns of a row group were decoded when the engine last looked.
    pub(crate) fn had(&self, version: &ObjectVersion, row_group: usize, columns: &[usize]) -> bool {
        columns.iter().all(|column| cell(row_group, *column).is_some_and(|cell| self.client.had_cell(version, cell)))
    }

    /// A decoded column of a row group, if a worker holds it.
    pub(super) async fn read(&self, version: &ObjectVersion, row_group: usize, column: usize) -> Option<Bytes> {
        self.client.read_cell(self.snapshot.operation(), version, cell(row_group, column)?).await
    }
}

fn cell(row_group: usize, column: usize) -> Option<Cell> {
    Some(Cell { row_group: u32::try_from(row_group).ok()?, column: u32::try_from(column).ok()? })
}
