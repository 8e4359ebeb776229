//! A whole small cluster in process, over a real S3 server, and what is asked of it.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_testbed::until;
pub use forebay_testbed::{TestCluster as Cluster, bytes};
use forebay_types::{BitRate, ForebayPath, ObjectInfo};

pub fn path(key: &str) -> ForebayPath {
    format!("/lake/{key}").parse().unwrap()
}

pub fn rate(bytes_per_sec: u64) -> Option<BitRate> {
    Some(BitRate::from_bytes_per_sec(bytes_per_sec))
}

pub async fn put(client: &Client, key: &str, bytes: Vec<u8>) -> ObjectInfo {
    client.put(&path(key), Bytes::from(bytes), PutCondition::Any).await.unwrap()
}

/// A cluster of so many workers, and a client of it.
pub async fn start(workers: usize) -> (Cluster, Client) {
    let cluster = Cluster::start(workers).await;
    let client = cluster.client(|_| {}).await;
    (cluster, client)
}

/// Waits until a worker that drains has nothing, and stops it.
pub async fn stop_drained(cluster: &mut Cluster, ix: usize) {
    let report = || cluster.node.workers[ix].report().drain;
    until("it has nothing", || report().is_some_and(|drain| drain.done)).await;
    cluster.node.workers.remove(ix).shutdown().await;
}

pub async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
