//! What a worker says to be taken of its tiers, held against what was put there.

use forebay_client::{NodePlace, StorageClass};
use forebay_coordinator::CoordinatorSettings;
use forebay_testbed::until;

use crate::cluster::{Cluster, bytes, path};

const MIB: usize = 1 << 20;

fn is_within_5_percent(told: u64, put: usize) -> bool {
    (told as f64 / put as f64 - 1.0).abs() < 0.05
}

/// Temporary values in DRAM and on disk, and an object that is read. Where the worker has no disk all of it is in DRAM.
async fn taken(disk_bytes: u64) -> Cluster {
    let mut cluster = Cluster::start_quick(0, CoordinatorSettings::LEASE, |_| {}).await;
    cluster.worker.store.disk_bytes = disk_bytes;
    cluster.add_worker().await;
    let client = cluster.client(|_| {}).await;
    let nodes = client.nodes();
    let place = |class| NodePlace { class: Some(class), location: None };
    nodes.put_at("/tmp/dram", bytes(1, 20 * MIB), &place(StorageClass::Dram)).await.unwrap();
    if disk_bytes > 0 {
        nodes.put_at("/tmp/disk", bytes(2, 12 * MIB), &place(StorageClass::Disk)).await.unwrap();
    }
    cluster.store("read", &bytes(3, 8 * MIB));
    let read = client.open(&path("read")).await.unwrap().version;
    client.read(client.operation(), &read, 0..read.size).await.unwrap();
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_data_is_reported_of_the_tiers_that_it_lies_in_and_copies_of_storage_of_none() {
    let cluster = taken(256 << 20).await;
    let own = || cluster.node.workers[0].report().own;
    // What is in DRAM is written to disk as well, as long as there is room.
    until("both are reported", || is_within_5_percent(own().0, 20 * MIB) && is_within_5_percent(own().1, (20 + 12) * MIB)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_is_reported_beside_what_is_temporary_and_no_more_when_it_may_go() {
    let cluster = taken(0).await;
    let client = cluster.client(|_| {}).await;
    cluster.store("kept", &bytes(4, 16 * MIB));
    let kept = client.open(&path("kept")).await.unwrap().version;
    client.load(vec![kept.clone()], true, |_| ()).await.unwrap();
    let report = || cluster.node.workers[0].report();
    until("both are reported", || {
        is_within_5_percent(report().kept.0, 16 * MIB) && is_within_5_percent(report().own.0, 20 * MIB)
    })
    .await;
    until("all of it, and what was read", || is_within_5_percent(report().dram.1, 44 * MIB)).await;
    client.keep(&[kept], false).await.unwrap();
    until("it is kept no more", || report().kept.0 == 0).await;
    assert!(is_within_5_percent(report().dram.1, 44 * MIB), "it is there still: {:?}", report().dram);
}
