//! A coordinator for tests inside of this crate, and workers of it whose rooms they look into.

use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_coordinator::CoordinatorSettings;
use forebay_node::Node;
use forebay_transport::{Address, Security};
use tempfile::TempDir;

use crate::{Tuning, Worker, WorkerSettings};

/// A coordinator, and the folder of it and its workers. Those are not the node's: it has the type that others see, without its rooms.
pub(crate) struct Bed {
    pub(crate) node: Node,
    folder: TempDir,
}

impl Bed {
    pub(crate) async fn start(lease: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Node::coordinator_in(folder.path(), Security::default());
        Self { node: Node::lead(CoordinatorSettings { lease, ..settings }).await.unwrap(), folder }
    }

    pub(crate) async fn worker(&self, name: &str, tuning: Tuning) -> Worker {
        self.worker_of(name, (64 << 20, 0), tuning).await
    }

    /// A worker with so many bytes of memory and of disk.
    pub(crate) async fn worker_of(&self, name: &str, (dram, disk): (u64, u64), tuning: Tuning) -> Worker {
        let store = StoreSettings::new(self.folder.path().join(name), dram).with_disk(disk);
        start(self.node.coordinator_at(), store, tuning).await
    }

    /// A worker that reaches the coordinator at another address.
    pub(crate) async fn worker_by(&self, coordinator: &Address, name: &str, tuning: Tuning) -> Worker {
        start(coordinator, StoreSettings::new(self.folder.path().join(name), 64 << 20), tuning).await
    }
}

async fn start(coordinator: &Address, store: StoreSettings, tuning: Tuning) -> Worker {
    let any_port = Address::Tcp("127.0.0.1:0".into());
    Worker::start_with(WorkerSettings::new(coordinator.clone(), any_port, store), tuning).await.unwrap()
}
