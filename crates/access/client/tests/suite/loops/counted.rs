//! What workers report of themselves, held against a load that is known.

use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_coordinator::PlacementSettings;
use forebay_protocol::SegmentStatus;

use crate::cluster::{Cluster, bytes, path, pause};

const LEN: usize = 3_000_000;

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
    let coordinator = cluster.node.coordinator.as_ref().unwrap();
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
