//! A worker with names is lost, or cut off: all clients see one namespace all the same, those that remember the way to a container too.

use std::time::{Duration, Instant};

use forebay_client::{Client, CreateOptions, NodeErrorKind, NodeType};
use forebay_testbed::Proxy;

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
    drop(cluster.node.workers.remove(0));
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
    drop(cluster.node.workers.remove(1));
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

/// What one client puts is there for another one, or said to be lost: for so long, whatever is made anew meanwhile.
async fn nothing_vanishes(old: &Client, fresh: &Client, lasts: Duration, round: &mut usize) -> usize {
    let (began, mut acknowledged) = (Instant::now(), 0);
    while began.elapsed() < lasts {
        for number in 0..DIRECTORIES {
            *round += 1;
            let path = format!("{}/r{round}", directory(number));
            let put = tokio::time::timeout(Duration::from_millis(100), async { old.nodes().put(&path, "v").await }).await;
            let Ok(Ok(())) = put else { continue };
            acknowledged += 1;
            let got = tokio::time::timeout(Duration::from_millis(500), async { fresh.nodes().get(&path).await }).await;
            if let Ok(Err(error)) = got {
                assert_eq!(error.kind, NodeErrorKind::DataLost, "{path} was put: {error}");
            }
            let make = async { fresh.nodes().create(&directory(number), CreateOptions::new(NodeType::Directory)).await };
            // It is there as a rule.
            let _ = tokio::time::timeout(Duration::from_millis(200), make).await;
        }
    }
    acknowledged
}

/// A worker does not hear from the coordinator for longer than its lease, while clients that remember the way to it reach it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_put_to_a_worker_that_is_lost_to_all_others_does_not_vanish() {
    let mut cluster = Cluster::start_quick(2, LEASE, |_| {}).await;
    let network = Proxy::before(cluster.node.coordinator_at()).await;
    cluster.worker.coordinator = network.address.clone();
    cluster.add_worker().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (old, fresh) = (cluster.client(|_| {}).await, cluster.client(|_| {}).await);
    make(&old, LEASE).await;
    assert!(is_one(&old, &fresh, 0).await);
    let mut round = 0;
    network.cut();
    assert!(nothing_vanishes(&old, &fresh, 3 * LEASE, &mut round).await > 0, "others go on");
    network.heal();
    nothing_vanishes(&old, &fresh, 2 * LEASE, &mut round).await;
    make(&old, Duration::from_secs(20)).await;
    assert!(is_one(&old, &fresh, 1).await && is_one(&fresh, &old, 2).await, "and it is one again");
}

/// A container of a worker that is well, in one of a worker that is lost: who remembers the way to it is not answered by what nobody else finds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_put_into_a_container_whose_parent_is_lost_does_not_vanish() {
    let mut cluster = Cluster::start_quick(3, LEASE, |_| {}).await;
    let (old, fresh) = (cluster.client(|_| {}).await, cluster.client(|_| {}).await);
    let inside = |number: usize| format!("{}/inside", directory(number));
    make(&old, LEASE).await;
    for number in 0..DIRECTORIES {
        old.nodes().create(&inside(number), CreateOptions::new(NodeType::Table)).await.unwrap();
        old.nodes().put(&format!("{}/k", inside(number)), "v").await.unwrap();
    }
    drop(cluster.node.workers.remove(1));
    let began = Instant::now();
    let mut round = 0;
    while began.elapsed() < 3 * LEASE {
        for number in 0..DIRECTORIES {
            for (path, kind) in [(directory(number), NodeType::Directory), (inside(number), NodeType::Table)] {
                let made = async { fresh.nodes().create(&path, CreateOptions::new(kind)).await };
                // It is there as a rule.
                let _ = tokio::time::timeout(Duration::from_millis(50), made).await;
            }
            round += 1;
            let path = format!("{}/r{round}", inside(number));
            let put = tokio::time::timeout(Duration::from_millis(100), async { old.nodes().put(&path, "v").await }).await;
            let Ok(Ok(())) = put else { continue };
            let got = tokio::time::timeout(Duration::from_millis(500), async { fresh.nodes().get(&path).await }).await;
            if let Ok(Err(error)) = got {
                assert_eq!(error.kind, NodeErrorKind::DataLost, "{path} was put: {error}");
            }
        }
    }
}

/// The coordinator is away for longer than a lease: no worker is lost, and what is asked for meanwhile is done when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_lease_workers_wait_for_the_coordinator_and_lose_nothing() {
    let mut cluster = Cluster::start_quick(3, LEASE, |_| {}).await;
    let client = cluster.client(|_| {}).await;
    make(&client, LEASE).await;
    assert!(is_one(&client, &client, 0).await);
    cluster.stop_coordinator().await;
    tokio::time::sleep(LEASE + Duration::from_millis(200)).await;
    let putting = tokio::spawn({
        let client = client.clone();
        async move { is_one(&client, &client, 1).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!putting.is_finished(), "nobody knows whether it would count");
    cluster.start_coordinator().await;
    assert!(putting.await.unwrap());
    for number in 0..DIRECTORIES {
        client.nodes().get(&format!("{}/k0", directory(number))).await.unwrap();
    }
}
