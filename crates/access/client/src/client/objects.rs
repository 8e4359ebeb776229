//! Reading objects.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{AtHand, Handed, ListPage, RangeSpec};
use forebay_types::{
    Attributes, Cell, CellSource, ForebayPath, HotForm, Key, Mount, ObjectInfo, ObjectVersion, OperationId, Result,
};
use futures::stream::{BoxStream, TryStreamExt};

use super::Client;
use crate::read::{FarRows, FirstRead, ObjectRead, RowsQuestion};

impl Client {
    /// Exactly these bytes of this version, or an error: never part of them, never of another version. Zero copy when
    /// the range lies in one segment. `Conflict` when the object has another version now and these bytes are not
    /// held; `Retry` when neither a worker nor shared storage could be read.
    pub async fn read(&self, operation: OperationId, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        self.rooms.reads.read(operation, version, range).await
    }

    /// Bytes of whatever version is current under the mount's rule, and which they are: the version, the range, the
    /// bytes, cut off at the object's end. One request to shared storage for an object that nobody has read.
    pub async fn read_latest(
        &self,
        operation: OperationId,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        self.rooms.reads.read_latest(operation, path, range).await
    }

    /// The first bytes of the current version, and what the store says of it. One request to shared storage for an object
    /// that nobody has read. `Invalid` when the range begins past the object's end.
    pub async fn read_object(&self, operation: OperationId, path: &ForebayPath, read: ObjectRead) -> Result<FirstRead> {
        self.rooms.reads.read_object(operation, path, read).await
    }

    /// An object of which the worker that would be asked first has all that is wanted, in this process. None when it has to be
    /// asked, or another one: nothing was begun then.
    pub fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        self.rooms.reads.at_hand(wanted)
    }

    /// The current version of an object, as fresh as its mount's rule wants it. `NotFound` when there is none.
    pub async fn open(&self, path: &ForebayPath) -> Result<ObjectInfo> {
        self.rooms.reads.open(path).await
    }

    /// The current version of an object, as fresh as its mount's rule wants it, and what the store says of it beside;
    /// `complete` wants its checksums too.
    pub async fn stat(&self, path: &ForebayPath, complete: bool) -> Result<(ObjectInfo, Attributes)> {
        self.rooms.reads.stat(path, complete).await
    }

    /// Makes the cluster forget versions and listings of everything below a path, so that the next open asks shared
    /// storage. All workers are told; `Retry` when one of them could not be.
    pub async fn refresh(&self, path: &ForebayPath) -> Result<()> {
        self.rooms.reads.refresh(path).await
    }

    /// All objects whose keys start with the path's key, byte for byte, in byte order, page by page. With `folders`
    /// keys that go on past the next `/` are gathered into common prefixes.
    pub async fn list(&self, path: &ForebayPath, folders: bool) -> Result<BoxStream<'static, Result<ListPage>>> {
        let mount = self.rooms.routes.mount(path).await?;
        Ok(self.rooms.reads.pages(mount, path.key().clone(), folders, None))
    }

    /// One page of a listing: at most `limit` objects and common prefixes behind `after`.
    pub async fn list_page(&self, path: &ForebayPath, folders: bool, after: Option<Key>, limit: u32) -> Result<ListPage> {
        let mount = self.rooms.routes.mount(path).await?;
        self.rooms.reads.page(&mount, path.key(), folders, after, limit).await
    }

    /// All objects whose keys start with the path's key. Takes memory for each of them.
    pub async fn list_all(&self, path: &ForebayPath) -> Result<Vec<ObjectInfo>> {
        let pages = self.list(path, false).await?;
        pages
            .try_fold(Vec::new(), |mut all, page| async move {
                all.extend(page.objects);
                Ok(all)
            })
            .await
    }

    /// A column of a row group of a Parquet file, or of a chunk of a text file, in the table form (docs/specs/table.md), in
    /// place, if a worker whose tier is mapped here holds it. None otherwise, whatever the reason: read the raw bytes then.
    /// Asking for what is not there makes it popular, and what is popular is made.
    pub async fn read_cell(&self, operation: OperationId, source: &CellSource, cell: Cell) -> Option<Bytes> {
        self.rooms.reads.read_cell(operation, source, cell).await
    }

    /// Rows of decoded columns that a worker of another host selects, where no worker's tier is mapped here. As with
    /// [`Client::read_cell`], asking for what is not there makes it popular.
    pub async fn select_rows(&self, operation: OperationId, source: &CellSource, question: RowsQuestion) -> FarRows {
        self.rooms.reads.select_rows(operation, source, question).await
    }

    /// Rows of these columns were made of so many bytes of the file, in so much of a thread's time: by what that takes it is decided whether
    /// [`Client::select_rows`] asks.
    pub fn rows_decoded(&self, source: &CellSource, columns: &[u32], bytes: u64, took: Duration) {
        self.rooms.reads.paces.read(source, columns, bytes, took);
    }

    /// Rows that [`Client::select_rows`] has given were opened, in so much of a thread's time.
    pub fn rows_opened(&self, source: &CellSource, columns: &[u32], bytes: u64, took: Duration) {
        self.rooms.reads.paces.opened(source, columns, bytes, took);
    }

    /// Whether a worker's tier can be read in place from here.
    pub fn has_worker_beside(&self) -> bool {
        self.rooms.routes.is_any_beside()
    }

    /// Whether a worker had the cell when this client last asked for it: then its raw bytes need not be fetched ahead.
    pub fn had_cell(&self, source: &CellSource, cell: Cell) -> bool {
        self.rooms.reads.had_cell(source, cell)
    }

    /// Whether objects of a version's mount may have cells at all.
    pub fn has_hot_form(&self, version: &ObjectVersion) -> bool {
        let table = |mount: &Mount| mount.id == version.mount && mount.options.hot_form == HotForm::Table;
        self.view().mounts.iter().any(table)
    }
}
