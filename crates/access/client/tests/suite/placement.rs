//! Replicas that follow popularity, in a whole cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_coordinator::{CoordinatorSettings, PlacementSettings};
use forebay_protocol::SegmentStatus;
use forebay_testbed::until;
use forebay_types::ObjectVersion;

use crate::cluster::{Cluster, bytes, path, pause, put};

const LEN: usize = 3_000_000;
/// A lease that a machine with other things to do doesn't break.
const PATIENT: Duration = Duration::from_secs(60);

/// Objects that are in shared storage, and what clients need to read them.
async fn objects(cluster: &Cluster, client: &Client, count: u64) -> Vec<ObjectVersion> {
    let mut versions = Vec::new();
    for object in 0..count {
        cluster.store(&format!("o/{object}"), &bytes(object, LEN));
        versions.push(client.open(&path(&format!("o/{object}"))).await.unwrap().version);
    }
    versions
}

fn segment(cluster: &Cluster, key: &str) -> Option<SegmentStatus> {
    let status = cluster.node.coordinator.as_ref().unwrap().placement(100);
    status.segments.into_iter().find(|segment| segment.path.key().as_str() == key)
}

async fn wait_for(cluster: &Cluster, key: &str, what: &str, holds: impl Fn(&SegmentStatus) -> bool) -> SegmentStatus {
    let began = Instant::now();
    loop {
        if let Some(segment) = segment(cluster, key).filter(|segment| holds(segment)) {
            return segment;
        }
        let status = cluster.node.coordinator.as_ref().unwrap().placement(5);
        assert!(began.elapsed() < Duration::from_secs(20), "not {what}: {status:?}");
        pause(20).await;
    }
}

/// Reads the first object most of the time until it is stopped; every byte is compared.
struct Readers {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<usize>>,
}

impl Readers {
    fn start(client: &Client, versions: &[ObjectVersion]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let task = |reader: usize| {
            let (client, versions, stop) = (client.clone(), versions.to_vec(), Arc::clone(&stop));
            tokio::spawn(async move {
                let contents: Vec<_> = (0..versions.len() as u64).map(|object| bytes(object, LEN)).collect();
                let mut reads = reader;
                while !stop.load(Relaxed) {
                    let object = if reads.is_multiple_of(4) { reads / 4 % versions.len() } else { 0 };
                    let start = reads * 7919 % (LEN - 50_000);
                    let range = start as u64..start as u64 + 50_000;
                    let read = client.read(client.operation(), &versions[object], range).await.unwrap();
                    assert!(read == contents[object][start..start + 50_000], "wrong bytes");
                    reads += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                reads
            })
        };
        Self { tasks: (0..4).map(task).collect(), stop }
    }

    async fn stop(self) {
        self.stop.store(true, Relaxed);
        for task in self.tasks {
            assert!(task.await.unwrap() > 4, "it read nothing");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_segment_is_copied_from_a_peer_and_read_from_several_workers() {
    let cluster = Cluster::start_quick(3, PATIENT, |_| {}).await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    let versions = objects(&cluster, &client, 9).await;
    client.load(versions.clone(), false, |_| {}).await.unwrap();
    cluster.s3.reset_counters();
    let readers = Readers::start(&client, &versions);
    let hot = wait_for(&cluster, "o/0", "replicated", |hot| hot.routing.len() >= 2).await;
    assert!(hot.in_table && hot.routing.iter().map(|(_, percent)| percent).sum::<u32>() == 100, "{hot:?}");
    assert!(hot.held.iter().all(|(_, bytes)| *bytes as usize >= LEN / 2), "{hot:?}");
    let served =
        |cluster: &Cluster| cluster.node.workers.iter().filter(|worker| worker.report().bytes_served > 2_000_000).count();
    until("all workers serve", || served(&cluster) == 3).await;
    readers.stop().await;
    assert_eq!(cluster.s3.counters().gets, 0, "what workers have is copied between them");
    assert_eq!(client.counters().reads_fallback, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_go_on_when_a_holder_and_then_the_coordinator_go() {
    let mut cluster = Cluster::start_quick(3, CoordinatorSettings::LEASE, |_| {}).await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    let versions = objects(&cluster, &client, 9).await;
    let readers = Readers::start(&client, &versions);
    wait_for(&cluster, "o/0", "replicated", |hot| hot.routing.len() >= 2).await;
    // Gone without a word.
    drop(cluster.node.workers.remove(0));
    let lost = |cluster: &Cluster| {
        let status = cluster.node.coordinator.as_ref().unwrap().status();
        status.workers.iter().filter(|(_, state, _)| *state == forebay_protocol::WorkerState::Live).count() == 2
    };
    until("it is lost", || lost(&cluster)).await;
    let before = wait_for(&cluster, "o/0", "replicated again", |hot| hot.routing.len() == 2 && hot.popularity > 20.0).await;
    pause(900).await;
    cluster.stop_coordinator().await;
    pause(300).await;
    cluster.start_coordinator().await;
    let after = wait_for(&cluster, "o/0", "known", |_| true).await;
    assert!(after.popularity > before.popularity / 8.0, "{after:?}");
    wait_for(&cluster, "o/0", "read and planned", |hot| hot.operations > 0 && hot.planned.len() == 2).await;
    readers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_in_place_are_counted() {
    let cluster = Cluster::start_quick(1, PATIENT, |_| {}).await;
    let client = cluster.client(|_| {}).await;
    let versions = objects(&cluster, &client, 1).await;
    for _ in 0..50 {
        client.read(client.operation(), &versions[0], 0..LEN as u64).await.unwrap();
    }
    assert!(client.counters().reads_cached > 40, "{:?}", client.counters());
    let counted = wait_for(&cluster, "o/0", "counted", |it| it.popularity >= 50.0).await;
    assert!(counted.popularity <= 50.0, "each once: {counted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eager_mount_s_new_object_is_there_before_anyone_reads_it() {
    let cluster = Cluster::start_quick(3, PATIENT, |options| options.eager = true).await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    let mut away = 0;
    for object in 0..12 {
        let key = format!("new/{object}");
        let info = put(&client, &key, bytes(object, LEN)).await;
        // At once, in full, whoever holds it by now.
        assert!(client.read(client.operation(), &info.version, 0..LEN as u64).await.unwrap() == bytes(object, LEN));
        let placed = wait_for(&cluster, &key, "held where it was placed", |it| {
            it.loading.is_empty() && it.planned.iter().all(|(worker, _)| it.held.iter().any(|(held, _)| held == worker))
        })
        .await;
        away += usize::from(placed.in_table);
        assert!(client.read(client.operation(), &info.version, 0..LEN as u64).await.unwrap() == bytes(object, LEN));
    }
    assert!(away > 2, "{away} of 12 are not at home");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_is_sent_to_leaves_a_full_worker_first() {
    // Without plans, which would move segments meanwhile.
    let placement = PlacementSettings { policy: None, window: Duration::from_millis(400), ..PlacementSettings::default() };
    let cluster = Cluster::start_as(2, |_| {}, placement, PATIENT, Duration::from_millis(50)).await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    let content = bytes(0, LEN);
    let mut versions = Vec::new();
    for object in 0..80 {
        cluster.store(&format!("o/{object}"), &content);
        versions.push(client.open(&path(&format!("o/{object}"))).await.unwrap().version);
    }
    // Both workers have all of it: by a read that went to the wrong one, as it were.
    for worker in &cluster.node.workers {
        let line = forebay_transport::Connection::connect(&worker.address(), &forebay_client::Security::default()).await.unwrap();
        for version in &versions {
            let request = forebay_protocol::DataRequest::Prefetch {
                operation: client.operation(),
                version: version.clone(),
                ranges: vec![(0, LEN as u32)],
                keep: false,
                urgent: false,
                hold_ms: 0,
                standing: forebay_types::Standing::default(),
            };
            line.call(forebay_protocol::encode(&request), Vec::new()).await.unwrap();
            let read = forebay_protocol::DataRequest::Read {
                operation: client.operation(),
                version: version.clone(),
                start: 0,
                len: 10,
                in_place: false,
            };
            line.call(forebay_protocol::encode(&read), Vec::new()).await.unwrap();
        }
    }
    // 80 x 3 MB of 256 MiB are 89 %.
    let full = |worker: &forebay_worker::Worker| worker.report().dram.1 as f64 / worker.report().dram.0 as f64;
    until("room is made", || cluster.node.workers.iter().all(|worker| full(worker) <= 0.8)).await;
    cluster.s3.reset_counters();
    for version in &versions {
        assert!(client.read(client.operation(), version, 0..LEN as u64).await.unwrap() == content);
    }
    assert_eq!(cluster.s3.counters().gets, 0, "what readers are sent to is all there");
}
