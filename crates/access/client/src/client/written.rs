//! Writing objects, and shared storage itself.

use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_shared_storage::Storage;
use forebay_types::{ForebayPath, Mount, ObjectInfo, OperationId, Result};

use super::Client;
use crate::write::{Drafts, Writer};

impl Client {
    /// Writes an object; back when shared storage has it. `Conflict` when the condition does not hold, `Denied` on a
    /// read-only mount. `Retry` when the worker was lost on the way and the condition does not make it safe to try
    /// again: then the object may or may not be there.
    pub async fn put(&self, path: &ForebayPath, bytes: Bytes, condition: PutCondition) -> Result<ObjectInfo> {
        self.rooms.writes.put(path, bytes, condition).await
    }

    /// Writes an object piece by piece, in bounded memory. Nobody sees anything of it before [`Writer::finish`].
    pub async fn writer(&self, path: &ForebayPath) -> Result<Writer> {
        self.rooms.writes.writer(path).await
    }

    /// Lets processes of the cluster write drafts of an operation below a path, which nobody sees before [`Drafts::commit`]. `Denied` for who
    /// may not write there.
    pub async fn open_drafts(&self, operation: OperationId, below: &ForebayPath) -> Result<Drafts> {
        self.rooms.writes.open_drafts(operation, below).await
    }

    /// Deletes an object; one that is not there is no error.
    pub async fn delete(&self, path: &ForebayPath) -> Result<()> {
        self.rooms.writes.delete(path).await
    }

    /// Shared storage of a mount, with this process's own credentials, within a share of the bandwidth bound: for what only
    /// the store can do. Who writes there says so with [`Client::changed`] before the writer hears of it.
    pub async fn storage(&self, mount: &Mount) -> Result<Storage> {
        self.rooms.reads.fallback.storage(mount).await
    }

    /// Shared storage of a mount that is not added yet, with this process's own credentials.
    pub fn open_storage(&self, mount: &Mount) -> Result<Storage> {
        self.rooms.reads.fallback.open(mount)
    }

    /// An object was written or deleted past the workers: what they know of it is old. Back when none of them can answer from
    /// that any more; `Retry` when this is not certain.
    pub async fn changed(&self, path: &ForebayPath) -> Result<()> {
        self.rooms.writes.changed(path).await
    }
}
