//! A worker with names is lost, or cut off: all clients see one namespace all the same, those that remember the way to a container too.

use std::time::{Duration, Instant};

use forebay_client::{Client, CreateOptions, NodeErrorKind, NodeType};

use crate::cluster::Cluster;

const LEASE: Duration = Duration::from_secs(2);
/// So many that each of three workers has some of them, wherever the names fall: less than one time in ten thousand none does.
const DIRECTORIES: usize = 24;

fn directory(number: usize) -> String {
    format!("/tmp/d{number}")
}

/// Makes all directories that there aren't, until they are there.
async fn make(client: &Client, within: Duration) {
    let began = Instant::now();
    for number in 0..DIRECTORIES {
        loop {
            match client.nodes().create(&directory(number), CreateOptions::new(NodeType::Directory)).await {
                Ok(()) => break,
                Err(error) if error.kind == NodeErrorKind::Exists => break,
                Err(error) => {
                    assert!(matches!(error.kind, NodeErrorKind::DataLost | NodeErrorKind::Retry), "{error}");
                    assert!(began.elapsed() < within, "{error}");
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Whether what one client puts into each directory the other one finds there.
async fn is_one(one: &Client, other: &Client, round: usize) -> bool {
    for number in 0..DIRECTORIES {
        let path = format!("{}/k{round}", directory(number));
        if one.nodes().put(&path, "v").await.is_err() || other.nodes().get(&path).await.is_err() {
            return false;
        }
    }
    true
}

/// The worker with the root is lost, and comes back after `away`.
async fn stays_one(away: Duration) {
    let mut cluster = Cluster::start_quick(3, LEASE, |_| {}).await;
    let old = cluster.client(|_| {}).await;
    make(&old, LEASE).await;
    assert!(is_one(&old, &old, 0).await);
    // Each container's name is looked for soon after it was made.
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(cluster.workers.remove(0));
    tokio::time::sleep(away).await;
    cluster.start_worker(0).await;
    let began = Instant::now();
    let fresh = cluster.client(|_| {}).await;
    for round in 1.. {
        // Both make again what they miss, as jobs do.
        make(&old, Duration::from_secs(20)).await;
        make(&fresh, Duration::from_secs(20)).await;
        if is_one(&old, &fresh, round).await && is_one(&fresh, &old, round).await {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "two namespaces");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for round in 1000..1010 {
        assert!(is_one(&old, &fresh, round).await && is_one(&fresh, &old, round).await, "and it stays one");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_s_worker_is_killed_and_back_within_its_lease() {
    stays_one(Duration::from_millis(700)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_s_worker_is_killed_and_back_after_its_lease() {
    stays_one(Duration::from_secs(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_whose_worker_is_lost_is_made_again_within_its_lease() {
    let mut cluster = Cluster::start_quick(3, LEASE, |_| {}).await;
    let client = cluster.client(|_| {}).await;
    make(&client, LEASE).await;
    assert!(is_one(&client, &client, 0).await);
    // Not the first: it has the root.
    drop(cluster.workers.remove(1));
    tokio::time::sleep(LEASE).await;
    let mut lost = 0;
    for number in 0..DIRECTORIES {
        match client.nodes().get(&format!("{}/k0", directory(number))).await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind, NodeErrorKind::DataLost, "{error}");
                lost += 1;
            }
        }
    }
    assert!(lost > 0, "some directory was with it");
    let began = Instant::now();
    loop {
        make(&client, Duration::from_secs(2)).await;
        if is_one(&client, &client, 1).await {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(2), "its names are not free");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let kept = (0..DIRECTORIES).map(|number| format!("{}/k0", directory(number)));
    let mut there = 0;
    for path in kept {
        there += usize::from(client.nodes().get(&path).await.is_ok());
    }
    assert_eq!(there, DIRECTORIES - lost, "what was elsewhere is there");
}
