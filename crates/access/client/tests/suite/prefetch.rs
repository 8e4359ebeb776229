//! The window moves with its reader and ends with its owner.

#![allow(clippy::single_range_in_vec_init, reason = "a plan is a list of ranges, of one here")]

use std::time::Duration;

use forebay_types::PAGE_BYTES;

use crate::cluster::{Cluster, bytes, path, pause};
use crate::scripted::until;

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_follows_the_reader() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|settings| settings.prefetch_bytes = 8 * MIB).await;
    let data = bytes(1, 24 << 20);
    cluster.store("x", &data);
    let version = client.open(&path("x")).await.unwrap().version;
    cluster.s3.reset_counters();
    let operation = client.operation();
    let prefetch = client.prefetch(operation, vec![(version.clone(), vec![0..24 * MIB])]);
    let fetched = || cluster.s3.counters().bytes_out;
    until("a window is fetched", || fetched() >= 8 * MIB).await;
    pause(200).await;
    assert!(fetched() <= 8 * MIB + PAGE_BYTES, "nothing past the window: {}", fetched());
    assert_eq!(prefetch.outstanding(), 8 * MIB);
    for at in 0..24 {
        let read = client.read(operation, &version, at * MIB..(at + 1) * MIB).await.unwrap();
        assert!(read == data[(at * MIB) as usize..((at + 1) * MIB) as usize]);
        if at == 5 {
            until("the window has moved", || fetched() >= 12 * MIB).await;
        }
    }
    assert_eq!((prefetch.outstanding(), prefetch.is_finished()), (0, true));
    assert_eq!(fetched(), 24 * MIB, "nothing twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_it_cancels() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|_| {}).await;
    cluster.store("x", &bytes(1, 24 << 20));
    let version = client.open(&path("x")).await.unwrap().version;
    cluster.s3.set_bandwidth(Some(4 * MIB));
    cluster.s3.reset_counters();
    let prefetch = client.prefetch(client.operation(), vec![(version.clone(), vec![0..24 * MIB])]);
    until("it has begun", || cluster.s3.counters().bytes_out > MIB / 2).await;
    drop(prefetch);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = cluster.s3.counters().bytes_out;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let later = cluster.s3.counters().bytes_out;
    assert!(later - after < MIB, "{} bytes still came", later - after);
    assert!(later < 12 * MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_other_operations_don_t_move_it() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|settings| settings.prefetch_bytes = 4 * MIB).await;
    cluster.store("x", &bytes(1, 12 << 20));
    let version = client.open(&path("x")).await.unwrap().version;
    let prefetch = client.prefetch(client.operation(), vec![(version.clone(), vec![0..12 * MIB])]);
    until("the window is full", || prefetch.outstanding() == 4 * MIB).await;
    client.read(client.operation(), &version, 0..4 * MIB).await.unwrap();
    assert_eq!(prefetch.outstanding(), 4 * MIB);
}
