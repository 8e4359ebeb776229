//! The other ways in: stores for engines, temporary nodes, shards.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{DatasetId, ShardState};
use forebay_types::{ObjectInfo, OperationId, Result, WorkerId};

use super::Client;
use crate::nodes::Nodes;
use crate::shards::WantedRecords;
use crate::store::{DraftStore, LiveStore, Objects, SnapshotStore};

impl Client {
    /// This client as a store for any engine: every call sees what is current under the mount's rule.
    pub fn object_store(&self) -> Arc<dyn object_store::ObjectStore> {
        Arc::new(LiveStore::live(self.objects()))
    }

    /// A store that reads these versions, and pins others when it sees them. It has an operation of its own.
    pub fn snapshot(&self, versions: impl IntoIterator<Item = ObjectInfo>) -> SnapshotStore {
        self.snapshot_of(self.operation(), versions)
    }

    /// As [`Self::snapshot`], for an operation that exists: one query on several executors.
    pub fn snapshot_of(&self, operation: OperationId, versions: impl IntoIterator<Item = ObjectInfo>) -> SnapshotStore {
        SnapshotStore::of(self.objects(), operation, versions)
    }

    /// A store whose writes become drafts of an operation, at workers where such are open; where the files' names may be chosen, so that
    /// the worker `near` has them in its tier. For processes of the cluster.
    pub fn draft_store(&self, operation: OperationId, open_at: Vec<WorkerId>, near: Option<WorkerId>) -> DraftStore {
        DraftStore::new(self.objects(), operation, open_at, near)
    }

    /// The temporary namespace.
    pub fn nodes(&self) -> Nodes {
        self.rooms.nodes.clone()
    }

    /// Asks a worker questions about a shard, one JSON object a line: a line for each, and the length of the shard's queue.
    /// `Retry` when it has no turn for them `within` that time, or can't be reached.
    pub async fn ask_shard(
        &self,
        worker: WorkerId,
        dataset: &DatasetId,
        shard: u32,
        questions: Bytes,
        within: Duration,
    ) -> Result<(Bytes, u32)> {
        self.rooms.shards.ask(worker, dataset, shard, questions, within).await
    }

    /// Asks a worker for records of a shard by their keys, in the bytes of docs/specs/protocol.md: an answer for each, and the length
    /// of the shard's queue. `Retry` when it has no turn for them `within` that time, or can't be reached.
    pub async fn get_records(
        &self,
        worker: WorkerId,
        wanted: &WantedRecords<'_>,
        keys: Bytes,
        within: Duration,
    ) -> Result<(Bytes, u32)> {
        self.rooms.shards.records(worker, wanted, keys, within).await
    }

    /// Asks a worker to change records of a shard, one JSON object a line, all of them or none: the version that they have then.
    /// What ends in `Retry` may be done all the same; asked again with the same number `call`, of any worker, it is done once.
    pub async fn change_shard(
        &self,
        worker: WorkerId,
        dataset: &DatasetId,
        shard: u32,
        call: u128,
        changes: Bytes,
        within: Duration,
    ) -> Result<u64> {
        self.rooms.shards.change(worker, dataset, shard, call, changes, within).await
    }

    /// Has a worker compress what was changed in a shard into its files, for all workers. `Retry` when it takes longer: it goes on.
    pub async fn merge_shard(&self, worker: WorkerId, dataset: &DatasetId, shard: u32, within: Duration) -> Result<()> {
        self.rooms.shards.merge(worker, dataset, shard, within).await
    }

    /// The shards of a dataset that a worker has.
    pub async fn shard_states(&self, worker: WorkerId, dataset: &DatasetId) -> Result<Vec<ShardState>> {
        self.rooms.shards.states(worker, dataset).await
    }

    fn objects(&self) -> Objects {
        let rooms = &self.rooms;
        Objects { routes: Arc::clone(&rooms.routes), reads: Arc::clone(&rooms.reads), writes: Arc::clone(&rooms.writes) }
    }
}
