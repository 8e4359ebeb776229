//! The process that bars ask: coordinator and worker on one thread, as Redis has one.

use std::path::Path;

use forebay_bench_harness::security;
use forebay_block_store::StoreSettings;
use forebay_client::Address;
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_worker::{Worker, WorkerSettings};

/// Bytes of the DRAM tier.
const DRAM_BYTES: u64 = 2 << 30;

/// A coordinator and a worker on the one thread of this process; says where, and ends with its parent.
pub async fn serve(folder: &Path, disk_bytes: u64) {
    let local = || Address::Tcp("127.0.0.1:0".into());
    let url = format!("sqlite:{}", folder.join("metadata.db").display());
    let settings = CoordinatorSettings { security: security(), ..CoordinatorSettings::new(local(), url) };
    let coordinator = Coordinator::start(settings).await.unwrap();
    let store = StoreSettings::new(folder.join("tiers"), DRAM_BYTES).with_disk(disk_bytes);
    let mut settings = WorkerSettings::new(coordinator.address(), local(), store);
    settings.security = security();
    settings.unix_socket = Some(folder.join("worker.sock"));
    settings.temporary_share = 0.9;
    let worker = Worker::start(settings).await.unwrap();
    println!("{}", coordinator.address());
    // The parent holds the other end as long as it lives.
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::read_to_string(std::io::stdin());
        let _ = ended.send(());
    });
    let _ = end.await;
    worker.shutdown().await;
}
