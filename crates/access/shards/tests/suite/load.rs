//! Layers that come with load, and go when it has gone.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_shard_store::{ChangeIf, DatasetOrders, DatasetPin, Store};
use forebay_shards::{ReplicaStatus, Shards};
use forebay_types::ErrorKind;
use serde_json::json;
use tokio::task::JoinSet;

use crate::bed::{self, Bed, path};
use crate::changing::changes::{literal, record};

async fn replica(shards: &Shards) -> ReplicaStatus {
    shards.status().await.unwrap().remove(0).replicas.remove(0)
}

async fn until(shards: &Shards, what: &str, is_so: impl Fn(&ReplicaStatus) -> bool) -> ReplicaStatus {
    let mut status = bed::until(shards, what, |status| is_so(&status[0].replicas[0])).await;
    status.remove(0).replicas.remove(0)
}

/// A dataset of one shard, once its replica is about as large as it starts.
async fn at_rest(bed: &Bed, size: f64, about: Range<f64>) -> (Shards, ReplicaStatus) {
    let shards = bed.create("orders.shards", 1, vec![size]).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let rests = |replica: &ReplicaStatus| !replica.is_changing && replica.now.is_some_and(|now| about.contains(&now));
    let start = until(&shards, "it is where it starts", rests).await;
    (shards, start)
}

/// Searches that take long, from 64 who ask again and again.
struct Askers {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Askers {
    fn start(shards: &Shards) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asker = |_| {
            let (shards, stop) = (shards.clone(), Arc::clone(&stop));
            async move {
                let condition = json!({"attr": "note", "regex": "line [0-9]*7 (spring|winter)"});
                while !stop.load(Relaxed) {
                    assert!(!shards.search(&condition, None, None).await.unwrap().is_empty());
                }
            }
        };
        let tasks = (0..64).map(asker).collect();
        Self { stop, tasks }
    }

    /// Fails where one was not answered.
    async fn end(self) {
        self.stop.store(true, Relaxed);
        self.tasks.join_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_with_a_queue_gets_layers_and_gives_them_back() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(50)).await;
    let (shards, start) = at_rest(&bed, 0.7, 0.65..0.71).await;
    let askers = Askers::start(&shards);
    let grown = until(&shards, "it has grown", |replica| replica.now > start.now && !replica.is_changing).await;
    assert!(grown.bytes > start.bytes, "{grown:?}");
    askers.end().await;
    let back = until(&shards, "it is back", |replica| replica.now == start.now && !replica.is_changing).await;
    assert!(back.bytes < grown.bytes && back.why.is_some_and(|why| !why.is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_back_has_the_layers_that_its_load_had_brought() {
    let mut bed = Bed::start_as(1, 1 << 30, Duration::from_millis(200)).await;
    let (shards, start) = at_rest(&bed, 0.5, 0.45..0.55).await;
    let askers = Askers::start(&shards);
    let grown = until(&shards, "it has grown", |replica| replica.now > start.now && !replica.is_changing).await;
    askers.end().await;
    bed.take_worker(0).shutdown().await;
    bed.start_worker(0).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let after = replica(&shards).await;
    assert!(after.now >= grown.now, "{after:?} after {grown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_come_to_be_for_what_is_asked_without_a_queue() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(50)).await;
    let (shards, _) = at_rest(&bed, 1.1, 1.0..2.0).await;
    let kept = bed.folder().join("worker0/tiers/shards");
    let folder = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let condition = json!({"attr": "name", "eq": "clerk031"});
    for _ in 0..3000 {
        shards.search(&condition, None, Some(100)).await.unwrap();
    }
    let began = Instant::now();
    loop {
        let store = Store::open(&folder).unwrap();
        if store.what_was_asked().is_some() && !store.wants_other_layers().unwrap() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", store.layers());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!shards.search(&condition, None, Some(100)).await.unwrap().is_empty());
}

async fn order(bed: &Bed, name: &str, change: impl Fn(&mut DatasetOrders)) -> Shards {
    Shards::set_orders(&bed.client, &path(name), change).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pinned_comes_to_its_size_and_returns_when_it_is_unpinned() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(50)).await;
    let (shards, _) = at_rest(&bed, 0.5, 0.45..0.55).await;
    let pin = DatasetPin { size: Some(0.9) };
    let pinned = order(&bed, "orders.shards", |orders| orders.pin = Some(pin)).await;
    assert_eq!(
        (pinned.manifest(), pinned.orders()),
        (2, DatasetOrders { pin: Some(pin), frozen: false, ..DatasetOrders::default() })
    );
    let again = order(&bed, "orders.shards", |orders| orders.pin = Some(pin)).await;
    assert_eq!(again.manifest(), 2, "what holds already is not ordered anew");
    let up = until(&pinned, "it is where it is pinned", |replica| !replica.is_changing && replica.now > Some(0.85)).await;
    assert_eq!((up.size, up.least, up.is_frozen), (Some(0.5), Some(0.9), false));
    assert_eq!(pinned.bring().await, (1, 1));
    // Who has it open goes on, also with changes, and merges keep what is ordered.
    shards.put(&record(7, "changed"), ChangeIf::Always).await.unwrap();
    shards.merge_shard(0).await.unwrap();
    let merged = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_eq!((merged.manifest(), merged.orders()), (3, pinned.orders()));
    until(&merged, "it stays", |replica| !replica.is_changing && replica.now > Some(0.85)).await;
    let free = order(&bed, "orders.shards", |orders| orders.pin = None).await;
    until(&free, "it is back", |replica| !replica.is_changing && replica.now < Some(0.6)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_frozen_stays_as_it_is_under_load_until_it_is_thawed() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(50)).await;
    let (shards, start) = at_rest(&bed, 0.7, 0.65..0.71).await;
    let frozen = order(&bed, "orders.shards", |orders| orders.frozen = true).await;
    let is_told = |replica: &ReplicaStatus| replica.why.as_deref().is_some_and(|why| why.contains("frozen"));
    assert!(until(&frozen, "it is frozen", is_told).await.is_frozen);
    let askers = Askers::start(&shards);
    let loaded = until(&frozen, "it has a load", |replica| replica.answered > start.answered + 100).await;
    assert_eq!((loaded.now, loaded.is_changing), (start.now, false), "{loaded:?}");
    let thawed = order(&bed, "orders.shards", |orders| orders.frozen = false).await;
    until(&thawed, "it has grown", |replica| replica.now > start.now).await;
    askers.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pinned_does_not_go_for_others_over_a_restart_too() {
    let stored = {
        let bed = Bed::start(1).await;
        bed.create("a.shards", 1, vec![0.01]).await.status().await.unwrap()[0].stored_bytes
    };
    // Room for one of two.
    let mut bed = Bed::start_with(1, stored * 3 / 2).await;
    let (a, b) = (bed.create("a.shards", 1, vec![0.01]).await, bed.create("b.shards", 1, vec![0.01]).await);
    assert!(a.count(None).await.unwrap() > 0 && b.count(None).await.unwrap() > 0, "one after the other");
    let pinned = order(&bed, "a.shards", |orders| orders.pin = Some(DatasetPin::default())).await;
    assert!(pinned.count(None).await.unwrap() > 0);
    let hasty = b.clone().with_patience(Duration::from_secs(2));
    assert_eq!(hasty.count(None).await.unwrap_err().kind(), ErrorKind::Retry);
    assert!(replica(&pinned).await.bytes.is_some());
    bed.take_worker(0).shutdown().await;
    bed.start_worker(0).await;
    assert_eq!(hasty.count(None).await.unwrap_err().kind(), ErrorKind::Retry, "nobody has asked for the other one since");
    order(&bed, "a.shards", |orders| orders.pin = None).await;
    assert!(b.count(None).await.unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_with_a_queue_has_room_of_the_disk_tier_that_nobody_reads_from_and_gives_it_back() {
    let input = {
        let bed = Bed::start(1).await;
        bed.create("orders.shards", 1, vec![0.7]).await.status().await.unwrap()[0].input_bytes
    };
    // Room for the start, and for no step more.
    let own = input * 74 / 100;
    let bed = Bed::start_with_disk(own, 64 << 20, Duration::from_millis(50)).await;
    let (shards, start) = at_rest(&bed, 0.7, 0.65..0.71).await;
    let lent = || bed.cluster.node.workers[0].report().own.1;
    assert_eq!(lent(), 0);
    let askers = Askers::start(&shards);
    let grown = until(&shards, "it has grown", |replica| replica.now > start.now && !replica.is_changing).await;
    assert!(lent() > 0, "{grown:?}");
    askers.end().await;
    until(&shards, "it is back", |replica| replica.now == start.now && !replica.is_changing && lent() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_keeps_the_layers_that_a_shard_has() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_secs(10)).await;
    let (shards, before) = at_rest(&bed, 0.9, 0.8..2.0).await;
    for number in 0..3 {
        shards.put(&record(number, "changed"), ChangeIf::Always).await.unwrap();
        shards.merge_shard(0).await.unwrap();
        let merged = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
        // Nobody has asked for it since.
        let after = replica(&merged).await;
        assert_eq!((after.now, after.is_changing), (before.now, false), "{after:?}");
        assert!(after.bytes > Some(merged.dataset().shards[0].bytes()), "{after:?}");
        assert_eq!(merged.get(&literal(number), None).await.unwrap().unwrap()["name"], "changed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_spike_changes_nothing() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(500)).await;
    let shards = bed.create("orders.shards", 1, vec![0.7]).await;
    let start = until(&shards, "it is where it starts", |replica| !replica.is_changing && replica.bytes.is_some());
    assert!(shards.count(None).await.unwrap() > 0);
    let start = start.await;
    let condition = json!({"attr": "name", "eq": "clerk031"});
    let spike = (0..40).map(|_| shards.search(&condition, None, Some(5)));
    assert!(futures::future::join_all(spike).await.iter().all(Result::is_ok));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(replica(&shards).await.now, start.now);
}
