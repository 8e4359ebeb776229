//! Bytes that one worker has and another one is asked for: shared storage gives them once.

use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_coordinator::PlacementSettings;
use forebay_placement::holder;
use forebay_protocol::{DataReply, DataRequest, decode, encode};
use forebay_transport::Connection;
use forebay_types::{ObjectVersion, RouteKey, WorkerId};
use forebay_worker::Worker;

use crate::cluster::{Cluster, bytes, path, pause};

const LEN: usize = 5_000_000;

/// Without plans, which would route reads to who has the bytes.
async fn start(workers: usize) -> (Cluster, Client) {
    let placement = PlacementSettings { policy: None, poll: Duration::from_millis(100), ..PlacementSettings::default() };
    let change = |options: &mut forebay_types::MountOptions| options.validate = forebay_types::Validate::Immutable;
    let cluster = Cluster::start_as(workers, change, placement, Duration::from_secs(60), Duration::from_millis(50)).await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    // Everyone knows of everyone.
    pause(300).await;
    (cluster, client)
}

fn home(cluster: &Cluster, version: &ObjectVersion) -> WorkerId {
    let ids: Vec<WorkerId> = cluster.node.workers.iter().map(|worker| worker.id()).collect();
    holder(RouteKey::of(version.mount, &version.key, 0), &ids).unwrap()
}

/// Reads at this worker, wherever reads are routed to, as a schedule has it.
async fn read_at(worker: &Worker, version: &ObjectVersion, start: usize, len: usize) -> Vec<u8> {
    let line = Connection::connect(&worker.address(), &forebay_client::Security::default()).await.unwrap();
    let operation = forebay_types::OperationId(7);
    let request =
        DataRequest::Read { operation, version: version.clone(), start: start as u64, len: len as u32, in_place: false };
    let answer = line.call(encode(&request), Vec::new()).await.unwrap();
    let reply: DataReply = decode(&answer.meta).unwrap();
    assert!(matches!(reply, DataReply::Read { .. }), "{reply:?}");
    answer.payload.to_vec()
}

async fn object(cluster: &Cluster, client: &Client, seed: u64) -> (ObjectVersion, Vec<u8>) {
    let (key, content) = (format!("o/{seed}"), bytes(seed, LEN));
    cluster.store(&key, &content);
    (client.open(&path(&key)).await.unwrap().version, content)
}

async fn each_byte_comes_once(workers: usize) {
    let (cluster, client) = start(workers).await;
    for seed in 0..8 {
        let (version, content) = object(&cluster, &client, seed).await;
        cluster.s3.reset_counters();
        let home = home(&cluster, &version);
        let mut others = cluster.node.workers.iter().filter(|worker| worker.id() != home);
        let x = others.next().unwrap();
        // A schedule brings a part to another worker than the home, then everybody reads everything.
        assert!(read_at(x, &version, 1_000_000, 3_000_000).await == content[1_000_000..4_000_000]);
        assert!(client.read(client.operation(), &version, 0..LEN as u64).await.unwrap() == content);
        for worker in &cluster.node.workers {
            assert!(read_at(worker, &version, 0, LEN).await == content);
        }
        let fetched = cluster.s3.counters().bytes_out;
        assert!(fetched <= (LEN as u64).next_multiple_of(4096), "{fetched} bytes of {LEN} were fetched");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_worker_had_was_fetched_from_shared_storage_again_by_two() {
    each_byte_comes_once(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_worker_had_was_fetched_from_shared_storage_again_by_four() {
    each_byte_comes_once(4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_workers_have_of_what_a_third_one_misses_was_asked_of_one_of_them() {
    let (cluster, client) = start(4).await;
    for seed in 0..4 {
        let (version, content) = object(&cluster, &client, seed).await;
        cluster.s3.reset_counters();
        let home = home(&cluster, &version);
        let others: Vec<_> = cluster.node.workers.iter().filter(|worker| worker.id() != home).collect();
        // None of the first two has anything that the other one misses, and the home has nothing at all.
        for (worker, start, end) in [(0, 0, 2_000_000), (1, 3_000_000, LEN), (2, 1_000_000, 4_000_000)] {
            assert!(read_at(others[worker], &version, start, end - start).await == content[start..end]);
        }
        assert_eq!(cluster.s3.counters().bytes_out, LEN as u64, "each byte once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_joins_gets_what_it_is_the_home_of_from_who_was_that_before() {
    let (mut cluster, client) = start(2).await;
    let mut objects = Vec::new();
    for seed in 0..12 {
        let (version, content) = object(&cluster, &client, seed).await;
        assert!(client.read(client.operation(), &version, 0..LEN as u64).await.unwrap() == content);
        objects.push((version, content));
    }
    cluster.s3.reset_counters();
    cluster.add_worker().await;
    let joined = cluster.node.workers.last().unwrap().id();
    pause(500).await;
    let mut moved = 0;
    for (version, content) in &objects {
        moved += usize::from(home(&cluster, version) == joined);
        assert!(client.read(client.operation(), version, 0..LEN as u64).await.unwrap() == *content);
    }
    assert!(moved > 0, "it is nobody's home");
    assert!(cluster.node.workers.last().unwrap().report().bytes_served as usize >= moved * LEN, "it serves what is its own");
    assert_eq!(cluster.s3.counters().bytes_out, 0, "the others had all of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_gone_or_has_evicted_it_keeps_nobody_from_shared_storage() {
    let (mut cluster, client) = start(3).await;
    let (version, content) = object(&cluster, &client, 1).await;
    let home = home(&cluster, &version);
    let away = cluster.node.workers.iter().position(|worker| worker.id() != home).unwrap();
    read_at(&cluster.node.workers[away], &version, 0, LEN).await;
    drop(cluster.node.workers.remove(away));
    assert!(client.read(client.operation(), &version, 0..LEN as u64).await.unwrap() == content);
    let (version, content) = object(&cluster, &client, 2).await;
    let home = holder(
        RouteKey::of(version.mount, &version.key, 0),
        &client.view().workers.iter().map(|worker| worker.id).collect::<Vec<_>>(),
    );
    let other = cluster.node.workers.iter().find(|worker| Some(worker.id()) != home).unwrap();
    read_at(other, &version, 0, LEN).await;
    let line = Connection::connect(&other.address(), &forebay_client::Security::default()).await.unwrap();
    let free = DataRequest::Free { segments: vec![forebay_types::SegmentId::of(&version, 0)] };
    line.call(encode(&free), Vec::new()).await.unwrap();
    assert!(client.read(client.operation(), &version, 0..LEN as u64).await.unwrap() == content);
    assert_eq!(client.counters().reads_fallback, 0);
}

/// Those who wait for the same pages at two workers at once don't wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_miss_the_same_pages_at_once_both_get_them() {
    let (cluster, client) = start(2).await;
    let cluster = Arc::new(cluster);
    for seed in 0..6 {
        let (version, content) = object(&cluster, &client, seed).await;
        let reads =
            cluster.node.workers.iter().flat_map(|worker| (0..3).map(|_| read_at(worker, &version, 0, LEN)).collect::<Vec<_>>());
        let all =
            tokio::time::timeout(Duration::from_secs(20), futures::future::join_all(reads)).await.expect("nobody waits for ever");
        assert!(all.iter().all(|read| *read == content));
    }
}
