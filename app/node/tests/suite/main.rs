//! Roles that start and stop together.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{AdminRequest, PutCondition};
use forebay_data_folder::DataFolder;
use forebay_node::Node;
use forebay_s3::GatewaySettings;
use forebay_transport::Security;
use forebay_types::{ForebayPath, MountOptions};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const MIB: u64 = 1 << 20;

fn security() -> Security {
    Security::owner("a secret of this cluster").unwrap()
}

/// A coordinator and a worker with a disk tier, in the folder of those before.
async fn both(folder: &Path) -> Node {
    let mut node = Node::lead_in(folder, security()).await.unwrap();
    let mut worker = node.worker_in(folder, 16 * MIB);
    worker.store.disk_bytes = 16 * MIB;
    let began = Instant::now();
    // What a client of this process still does with the worker before lets its folder go a moment later.
    while let Err(error) = node.start_worker(worker.clone()).await {
        assert!(error.message().contains("in use") && began.elapsed() < Duration::from_secs(10), "{error}");
        sleep(Duration::from_millis(20)).await;
    }
    node
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_cached_is_there_again_after_a_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let lake = tempfile::tempdir().unwrap();
    let path: ForebayPath = "/lake/a".parse().unwrap();
    let body = Bytes::from(vec![7; MIB as usize]);
    {
        let node = both(folder.path()).await;
        let client = node.client().await.unwrap();
        let (name, url) = ("lake".parse().unwrap(), format!("file://{}", lake.path().display()));
        client.control(AdminRequest::MountAdd { name, url, options: MountOptions::default() }).await.unwrap();
        let version = client.put(&path, body.clone(), PutCondition::Any).await.unwrap().version;
        assert_eq!(client.read(client.operation(), &version, 0..MIB).await.unwrap(), body);
        drop(client);
        node.shutdown().await;
    }
    let node = both(folder.path()).await;
    assert!(node.workers[0].report().disk.1 >= MIB, "{:?}", node.workers[0].report().disk);
    let client = node.client().await.unwrap();
    assert!(client.known_mount("lake").is_some(), "the coordinator has its metadata");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_another_node_joins_and_leaves() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let leading = Node::lead_in(first.path(), security()).await.unwrap();
    let mut joined = Node::join(leading.coordinator_at().clone(), security());
    assert!(timeout(Duration::from_millis(50), joined.ended()).await.is_err(), "it has no coordinator that could end");
    let worker = joined.worker_in(second.path(), 16 * MIB);
    let id = joined.start_worker(worker).await.unwrap().id();
    let client = leading.client().await.unwrap();
    assert_eq!(client.view().workers.iter().map(|worker| worker.id).collect::<Vec<_>>(), [id]);
    joined.shutdown().await;
    assert!(client.refresh_view().await.unwrap().workers.is_empty(), "it has said that it leaves");
    leading.coordinator.as_ref().unwrap().shutdown().await;
    timeout(Duration::from_secs(10), leading.ended()).await.expect("it has ended").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_and_folders_are_free_after_a_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let taken = DataFolder::take(folder.path(), &["coordinator", "worker"]).unwrap();
    let mut node = both(folder.path()).await;
    node.hold(taken);
    let client = node.client().await.unwrap();
    let at = node.serve_s3(client, GatewaySettings::new("127.0.0.1:0")).await.unwrap().address();
    TcpStream::connect(at).await.unwrap();
    assert!(DataFolder::take(folder.path(), &["worker"]).is_err());
    node.shutdown().await;
    assert!(TcpStream::connect(at).await.is_err());
    DataFolder::take(folder.path(), &["coordinator", "worker"]).unwrap();
}
