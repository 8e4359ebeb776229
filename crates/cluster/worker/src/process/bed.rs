//! A coordinator for tests inside of this crate, and workers of it whose rooms they look into.

use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_transport::Address;
use tempfile::TempDir;

use crate::{Tuning, Worker, WorkerSettings};

/// A coordinator, and the folder of it and its workers.
pub(crate) struct Bed {
    pub(crate) coordinator: Coordinator,
    folder: TempDir,
}

impl Bed {
    pub(crate) async fn start(lease: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let settings = CoordinatorSettings { lease, ..CoordinatorSettings::new(any_port(), url) };
        Self { coordinator: Coordinator::start(settings).await.unwrap(), folder }
    }

    pub(crate) async fn worker(&self, name: &str, tuning: Tuning) -> Worker {
        let store = StoreSettings::new(self.folder.path().join(name), 64 << 20);
        let settings = WorkerSettings::new(self.coordinator.address(), any_port(), store);
        Worker::start_with(settings, tuning).await.unwrap()
    }
}

fn any_port() -> Address {
    Address::Tcp("127.0.0.1:0".into())
}

/// Waits until it is so; panics after 10 s.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = forebay_runtime::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        forebay_runtime::time::sleep(Duration::from_millis(10)).await;
    }
}
