//! The other ways in: stores for engines, temporary nodes, shards.

use std::sync::Arc;

use forebay_types::{ObjectInfo, OperationId, WorkerId};

use super::Client;
use crate::nodes::Nodes;
use crate::shards::ShardCalls;
use crate::store::{DraftStore, LiveStore, Objects, SnapshotStore, Temporary};

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

    /// Calls to one worker about a shard that it serves.
    pub fn shards(&self) -> &ShardCalls {
        &self.rooms.shards
    }

    fn objects(&self) -> Objects {
        let rooms = &self.rooms;
        Objects {
            routes: Arc::clone(&rooms.routes),
            reads: Arc::clone(&rooms.reads),
            writes: Arc::clone(&rooms.writes),
            temporary: Temporary::new(rooms.nodes.clone()),
        }
    }
}
