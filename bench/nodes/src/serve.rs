//! The process that bars ask: coordinator and worker on one thread, as Redis has one.

use std::path::Path;

use forebay_bench_harness::{security, until_input_ends};
use forebay_node::Node;

/// Bytes of the DRAM tier.
const DRAM_BYTES: u64 = 2 << 30;

/// A coordinator and a worker on the one thread of this process; says where, and ends with its parent.
pub async fn serve(folder: &Path, disk_bytes: u64) {
    let mut node = Node::lead_in(folder, security()).await.unwrap();
    let mut worker = node.worker_in(folder, DRAM_BYTES);
    worker.store.disk_bytes = disk_bytes;
    worker.temporary_share = 0.9;
    node.start_worker(worker).await.unwrap();
    println!("{}", node.coordinator_at());
    until_input_ends().await;
    node.shutdown().await;
}
