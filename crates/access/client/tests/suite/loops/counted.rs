//! What workers report of themselves, held against a load that is known.

use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_coordinator::PlacementSettings;
use forebay_protocol::SegmentStatus;
use forebay_types::ObjectVersion;

use super::paced::Paced;
use crate::cluster::{Cluster, bytes, path, pause};

const LEN: usize = 3_000_000;
/// Small beside what a slow network passes in a window, as an answer counts when it is sent; large beside what sockets take at once.
const PIECE: u64 = 500_000;

/// What was reported of one object, window by window.
#[derive(Debug, Default)]
struct Told {
    operations: u64,
    reads: u64,
    bytes: u64,
    now: (u64, u64, u64),
}

impl Told {
    /// Looks once. What is shown is of the last window, and begins anew with each.
    fn look(&mut self, segment: Option<SegmentStatus>) {
        let seen = segment.map_or((0, 0, 0), |it| (it.operations, it.reads, it.bytes_read));
        if seen.0 < self.now.0 {
            self.add();
        }
        self.now = seen;
    }

    fn add(&mut self) {
        let (operations, reads, bytes) = std::mem::take(&mut self.now);
        (self.operations, self.reads, self.bytes) = (self.operations + operations, self.reads + reads, self.bytes + bytes);
    }
}

/// Puts operations on a cluster, each of `reads` reads, and gives what was reported of them.
async fn reported(cluster: &Cluster, client: &Client, (operations, reads, len): (u64, u64, u64)) -> Told {
    cluster.store("o", &bytes(1, LEN));
    let version = client.open(&path("o")).await.unwrap().version;
    let coordinator = cluster.coordinator.as_ref().unwrap();
    let mut told = Told::default();
    let look = |told: &mut Told| told.look(coordinator.placement(10).segments.into_iter().next());
    let put = async {
        for operation in 0..operations {
            let id = client.operation();
            for read in 0..reads {
                let start = (operation * 7919 + read * len) % (LEN as u64 - len);
                client.read(id, &version, start..start + len).await.unwrap();
            }
            pause(1).await;
        }
    };
    tokio::pin!(put);
    let mut ended: Option<Instant> = None;
    // Two windows more, as the last reads are reported with the next one.
    while ended.is_none_or(|at| at.elapsed() < Duration::from_secs(2)) {
        tokio::select! {
            () = &mut put, if ended.is_none() => ended = Some(Instant::now()),
            () = pause(3) => {}
        }
        look(&mut told);
    }
    told.add();
    told
}

fn within_5_percent(what: &str, told: u64, issued: u64) {
    let error = told as f64 / issued as f64 - 1.0;
    assert!(error.abs() < 0.05, "{what}: {told} of {issued}");
}

async fn a_known_load(in_place: bool) {
    let (window, poll) = (Duration::from_millis(600), Duration::from_millis(200));
    // Without plans: an operation whose reads of a segment go to two holders is counted by each.
    let placement = PlacementSettings { policy: None, window, poll, ..PlacementSettings::default() };
    let cluster = Cluster::start_as(2, |_| {}, placement, Duration::from_secs(60), Duration::from_millis(50)).await;
    let client = cluster.client(|settings| settings.in_place = in_place).await;
    let (operations, reads, len) = (600, 3, 50_000);
    let told = reported(&cluster, &client, (operations, reads, len)).await;
    // An operation that goes on over a window's end is one of each window.
    within_5_percent("operations", told.operations, operations);
    within_5_percent("reads", told.reads, operations * reads);
    within_5_percent("bytes", told.bytes, operations * reads * len);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_over_a_socket_is_reported_in_operations_reads_and_bytes() {
    a_known_load(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_in_place_is_reported_in_operations_reads_and_bytes() {
    a_known_load(true).await;
}

/// Reads pieces of all objects, over and over for so long.
async fn read_for(client: &Client, versions: &[ObjectVersion], time: Duration) {
    let began = Instant::now();
    let read = |version: ObjectVersion| async move {
        let mut at = 0;
        while began.elapsed() < time {
            client.read(client.operation(), &version, at..at + PIECE).await.unwrap();
            at = (at + PIECE) % (LEN as u64 - PIECE + 1);
        }
    };
    futures::future::join_all(versions.iter().cloned().map(read)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_behind_a_slow_network_counted_as_fast_as_the_memory_that_it_read() {
    const SLOW: f64 = 4e6;
    let (window, poll) = (Duration::from_millis(2500), Duration::from_millis(200));
    let placement = PlacementSettings { policy: None, window, poll, ..PlacementSettings::default() };
    let mut cluster = Cluster::start_as(1, |_| {}, placement, Duration::from_secs(60), Duration::from_millis(50)).await;
    let network = Paced::start(SLOW).await;
    cluster.advertise = Some(network.address.clone());
    cluster.add_worker().await;
    let (quick, slow) = (cluster.workers[0].id(), cluster.workers[1].id());
    network.to(&cluster.workers[1].address().to_string());
    let client = cluster.client(|settings| settings.in_place = false).await;
    let mut versions = Vec::new();
    for object in 0..8 {
        cluster.store(&format!("o/{object}"), &bytes(object, LEN));
        versions.push(client.open(&path(&format!("o/{object}"))).await.unwrap().version);
    }
    client.load(versions.clone(), false, |_| {}).await.unwrap();
    // What is left of the window in which it began, and what the network takes at once.
    read_for(&client, &versions, window).await;
    let (began, before) = (Instant::now(), network.passed());
    read_for(&client, &versions, window * 2).await;
    let passed = (network.passed() - before) as f64 / began.elapsed().as_secs_f64();
    pause(400).await;
    let speeds = cluster.coordinator.as_ref().unwrap().placement(1).speeds;
    let of = |id| speeds.iter().find(|(worker, _)| *worker == id).map(|(_, speed)| *speed as f64);
    let error = of(slow).expect("it had enough to send") / passed - 1.0;
    assert!(error.abs() < 0.1, "{speeds:?}, and the network passed {passed} bytes a second");
    assert!(of(quick).is_none_or(|speed| speed > 2.0 * SLOW), "{speeds:?}");
}
