//! Layers that come with load, and go when it has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_shard_store::{ChangeIf, Store};
use forebay_shards::{ReplicaStatus, Shards};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::bed::{Bed, path};
use crate::changes::{literal, record};

async fn replica(shards: &Shards) -> ReplicaStatus {
    shards.status().await.unwrap().remove(0).replicas.remove(0)
}

async fn until(shards: &Shards, what: &str, is_so: impl Fn(&ReplicaStatus) -> bool) -> ReplicaStatus {
    let began = Instant::now();
    loop {
        let now = replica(shards).await;
        if is_so(&now) {
            return now;
        }
        assert!(began.elapsed() < Duration::from_secs(40), "not within 40 s: {what}: {now:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_with_a_queue_gets_layers_and_gives_them_back() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(50)).await;
    let shards = bed.create("orders.shards", 1, vec![0.7]).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let at_rest = |replica: &ReplicaStatus| !replica.is_changing && replica.now.is_some_and(|now| (0.65..0.71).contains(&now));
    let start = until(&shards, "it is where it starts", at_rest).await;
    let stop = Arc::new(AtomicBool::new(false));
    let askers = many_ask(&shards, &stop);
    let grown = until(&shards, "it has grown", |replica| replica.now > start.now && !replica.is_changing).await;
    assert!(grown.bytes > start.bytes, "{grown:?}");
    stop.store(true, Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    let back = until(&shards, "it is back", |replica| replica.now == start.now && !replica.is_changing).await;
    assert!(back.bytes < grown.bytes && back.why.is_some_and(|why| !why.is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_back_has_the_layers_that_its_load_had_brought() {
    let mut bed = Bed::start_as(1, 1 << 30, Duration::from_millis(200)).await;
    let shards = bed.create("orders.shards", 1, vec![0.5]).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let at_rest = |replica: &ReplicaStatus| !replica.is_changing && replica.now.is_some_and(|now| (0.45..0.55).contains(&now));
    let start = until(&shards, "it is where it starts", at_rest).await;
    let stop = Arc::new(AtomicBool::new(false));
    let askers = many_ask(&shards, &stop);
    let grown = until(&shards, "it has grown", |replica| replica.now > start.now && !replica.is_changing).await;
    stop.store(true, Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    bed.take_worker(0).shutdown().await;
    bed.start_worker(0).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let after = replica(&shards).await;
    assert!(after.now >= grown.now, "{after:?} after {grown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_come_to_be_for_what_is_asked_without_a_queue() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_millis(50)).await;
    let shards = bed.create("orders.shards", 1, vec![1.1]).await;
    assert!(shards.count(None).await.unwrap() > 0);
    until(&shards, "it is where it starts", |replica| !replica.is_changing && replica.now.is_some_and(|now| now > 1.0)).await;
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

/// Searches that take long, from 64 who ask again and again.
fn many_ask(shards: &Shards, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let asker = |_| {
        let (shards, stop) = (shards.clone(), Arc::clone(stop));
        tokio::spawn(async move {
            let condition = json!({"attr": "note", "regex": "line [0-9]*7 (spring|winter)"});
            while !stop.load(Relaxed) {
                assert!(!shards.search(&condition, None, None).await.unwrap().is_empty());
            }
        })
    };
    (0..64).map(asker).collect()
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
    let shards = bed.create("orders.shards", 1, vec![0.7]).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let at_rest = |replica: &ReplicaStatus| !replica.is_changing && replica.now.is_some_and(|now| (0.65..0.71).contains(&now));
    let start = until(&shards, "it is where it starts", at_rest).await;
    let lent = || bed.cluster.node.workers[0].report().own.1;
    assert_eq!(lent(), 0);
    let stop = Arc::new(AtomicBool::new(false));
    let askers = many_ask(&shards, &stop);
    let grown = until(&shards, "it has grown", |replica| replica.now > start.now && !replica.is_changing).await;
    assert!(lent() > 0, "{grown:?}");
    stop.store(true, Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    until(&shards, "it is back", |replica| replica.now == start.now && !replica.is_changing && lent() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_keeps_the_layers_that_a_shard_has() {
    let bed = Bed::start_as(1, 1 << 30, Duration::from_secs(10)).await;
    let shards = bed.create("orders.shards", 1, vec![0.9]).await;
    assert!(shards.count(None).await.unwrap() > 0);
    let at_rest = |replica: &ReplicaStatus| !replica.is_changing && replica.now.is_some_and(|now| now > 0.8);
    let before = until(&shards, "it is where it starts", at_rest).await;
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
