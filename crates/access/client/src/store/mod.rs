//! [`object_store::ObjectStore`] over a client: paths are `MOUNT/KEY`, or `tmp/KEY` of temporary data.
//!
//! [`LiveStore`] reads what is current under each mount's rule; [`SnapshotStore`] pins every object at the version that
//! it saw first. Such a path can't say every key: keys with an empty part (`a//b`, a trailing `/`), with parts `.` or
//! `..`, or with control characters are left out of listings here; [`crate::Client`] itself knows them all.
//!
//! [`DraftStore`] writes what another process makes visible.
//!
//! Owns: how the trait's paths, versions, conditions and errors are Forebay's, and which versions a snapshot has pinned.
//!
//! Never does: keep bytes, or read past its rooms `read`, `write` and `nodes`.
//!
//! Start with `versioned`, which is the trait.

mod drafts;
mod errors;
mod get;
mod listing;
mod live;
mod paths;
mod snapshot;
mod temporary;
mod upload;
mod versioned;
mod versions;

pub use drafts::DraftStore;
pub use live::LiveStore;
pub use snapshot::SnapshotStore;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{ClusterView, RangeSpec};
use forebay_types::{ForebayPath, ObjectInfo, ObjectVersion, OperationId, Result};

pub(crate) use temporary::Temporary;

use crate::read::Reads;
use crate::route::Routes;
use crate::write::Writes;

/// What a store reads and writes.
#[derive(Clone)]
pub struct Objects {
    pub(crate) routes: Arc<Routes>,
    pub(crate) reads: Arc<Reads>,
    pub(crate) writes: Arc<Writes>,
    pub(crate) temporary: Temporary,
}

impl Objects {
    fn view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.routes.view.known().view)
    }

    /// What is current, below a mount or of temporary data.
    async fn open(&self, path: &ForebayPath) -> Result<ObjectInfo> {
        if path.mount().is_temporary() { self.temporary.open(path).await } else { self.reads.open(path).await }
    }

    /// Bytes of what is current, and which they are.
    async fn read_latest(
        &self,
        operation: OperationId,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        match path.mount().is_temporary() {
            true => self.temporary.read_latest(path, range).await,
            false => self.reads.read_latest(operation, path, range).await,
        }
    }

    /// Bytes of a version of the object of a path.
    async fn read(
        &self,
        operation: OperationId,
        path: &ForebayPath,
        version: &ObjectVersion,
        range: Range<u64>,
    ) -> Result<Bytes> {
        match path.mount().is_temporary() {
            true => self.temporary.read(path, version, range).await,
            false => self.reads.read(operation, version, range).await,
        }
    }
}
