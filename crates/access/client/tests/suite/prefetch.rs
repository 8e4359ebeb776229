//! The window moves with its reader and ends with its owner.

#![allow(clippy::single_range_in_vec_init, reason = "a plan is a list of ranges, of one here")]

use std::time::{Duration, Instant};

use forebay_testbed::{until, until_asked};
use forebay_types::{PAGE_BYTES, Standing};

use crate::cluster::{Cluster, bytes, path, pause, rate, start};

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_follows_the_reader() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|settings| settings.prefetch_bytes = 8 * MIB).await;
    let data = bytes(1, 24 << 20);
    cluster.store("x", &data);
    let version = client.open(&path("x")).await.unwrap().version;
    cluster.s3.reset_counters();
    let operation = client.operation();
    let prefetch = client.prefetch(operation, vec![(version.clone(), vec![0..24 * MIB])]);
    let fetched = || cluster.s3.counters().bytes_out;
    until("a window is fetched", || fetched() >= 8 * MIB).await;
    pause(200).await;
    assert!(fetched() <= 8 * MIB + PAGE_BYTES, "nothing past the window: {}", fetched());
    assert_eq!(prefetch.outstanding(), 8 * MIB);
    for at in 0..24 {
        let read = client.read(operation, &version, at * MIB..(at + 1) * MIB).await.unwrap();
        assert!(read == data[(at * MIB) as usize..((at + 1) * MIB) as usize]);
        if at == 5 {
            until("the window has moved", || fetched() >= 12 * MIB).await;
        }
    }
    assert_eq!((prefetch.outstanding(), prefetch.is_finished()), (0, true));
    assert_eq!(fetched(), 24 * MIB, "nothing twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_it_cancels() {
    let (cluster, client) = start(1).await;
    cluster.store("x", &bytes(1, 24 << 20));
    let version = client.open(&path("x")).await.unwrap().version;
    cluster.s3.set_bandwidth(Some(4 * MIB));
    cluster.s3.reset_counters();
    let prefetch = client.prefetch(client.operation(), vec![(version.clone(), vec![0..24 * MIB])]);
    until("it has begun", || cluster.s3.counters().bytes_out > MIB / 2).await;
    drop(prefetch);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = cluster.s3.counters().bytes_out;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let later = cluster.s3.counters().bytes_out;
    assert!(later - after < MIB, "{} bytes still came", later - after);
    assert!(later < 12 * MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_other_operations_don_t_move_it() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|settings| settings.prefetch_bytes = 4 * MIB).await;
    cluster.store("x", &bytes(1, 12 << 20));
    let version = client.open(&path("x")).await.unwrap().version;
    let prefetch = client.prefetch(client.operation(), vec![(version.clone(), vec![0..12 * MIB])]);
    until("the window is full", || prefetch.outstanding() == 4 * MIB).await;
    client.read(client.operation(), &version, 0..4 * MIB).await.unwrap();
    assert_eq!(prefetch.outstanding(), 4 * MIB);
}

/// Bytes that were fetched more than once in a pass of four queries over 32 MiB, as a share of these, in a tier of `share` times what is
/// read again and again beside them and what is ahead of them.
async fn fetched_again(share: f64) -> f64 {
    const QUERIES: u64 = 4;
    const HOT: u64 = 32;
    let mut cluster = Cluster::start(0).await;
    cluster.worker.store.dram_bytes = ((HOT + QUERIES * 2) as f64 * share) as u64 * MIB;
    cluster.add_worker().await;
    let change = |settings: &mut forebay_client::ClientSettings| (settings.prefetch_bytes, settings.in_place) = (2 * MIB, false);
    let client = cluster.client(change).await;
    let mut versions = Vec::new();
    for object in 0..HOT + QUERIES * 8 {
        let key = format!("o/{object}");
        cluster.store(&key, &bytes(object, MIB as usize));
        versions.push(client.open(&path(&key)).await.unwrap().version);
    }
    // What is used again and again has most of the tier.
    for _ in 0..4 {
        for version in &versions[..HOT as usize] {
            client.read(client.operation(), version, 0..MIB).await.unwrap();
        }
    }
    cluster.s3.reset_counters();
    let query = |number: usize| {
        let (client, versions) = (client.clone(), versions[HOT as usize + number * 8..][..8].to_vec());
        async move {
            let operation = client.operation();
            let plan = versions.iter().map(|version| (version.clone(), vec![0..MIB])).collect();
            let ahead = client.prefetch(operation, plan);
            for (object, version) in versions.iter().enumerate() {
                // Others bring theirs meanwhile.
                pause(60).await;
                let read = client.read(operation, version, 0..MIB).await.unwrap();
                assert!(read == bytes(HOT + (number * 8 + object) as u64, MIB as usize));
            }
            assert!(ahead.is_finished());
        }
    };
    futures::future::join_all((0..QUERIES as usize).map(query)).await;
    let needed = QUERIES * 8 * MIB;
    let fetched = cluster.s3.counters().bytes_out;
    until("nothing is held any more", || cluster.pinned() == 0).await;
    (fetched as f64 - needed as f64) / needed as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_brought_ahead_was_evicted_before_it_was_read() {
    for share in [1.2, 1.0, 0.8] {
        let again = fetched_again(share).await;
        assert!(again.abs() < 0.005, "{:.1} % was fetched again in a tier of {share} times the working set", again * 100.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_brought_for_a_reader_that_stops_is_let_go() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|settings| settings.prefetch_bytes = 8 * MIB).await;
    cluster.store("x", &bytes(1, 24 << 20));
    let version = client.open(&path("x")).await.unwrap().version;
    let prefetch = client.prefetch(client.operation(), vec![(version.clone(), vec![0..24 * MIB])]);
    until("a window is held", || cluster.pinned() >= 8 * MIB).await;
    drop(prefetch);
    until("it is let go", || cluster.pinned() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_was_told_that_what_was_brought_had_left() {
    let mut cluster = Cluster::start(0).await;
    cluster.worker.store.dram_bytes = 16 * MIB;
    cluster.add_worker().await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    let worker = cluster.node.workers[0].id();
    cluster.store("x", &bytes(1, 1 << 20));
    cluster.store("y", &bytes(2, 40 << 20));
    let x = client.open(&path("x")).await.unwrap().version;
    let y = client.open(&path("y")).await.unwrap().version;
    let segment = forebay_types::SegmentId::of(&x, 0);
    let began = client.departed(worker, 0, Duration::from_millis(1)).await.unwrap();
    assert!(began.lost, "what left before this is not known");
    client.load(vec![x], false, |_| {}).await.unwrap();
    let told = async {
        let (mut since, mut pages) = (began.next, 0);
        while pages < 256 {
            let news = client.departed(worker, since, Duration::from_secs(20)).await.unwrap();
            assert!(!news.lost);
            pages += news.runs.iter().filter(|(of, _)| *of == segment).map(|(_, run)| run.len).sum::<u32>();
            since = news.next;
        }
        pages
    };
    let others = async {
        for at in 0..40 {
            client.read(client.operation(), &y, at * MIB..(at + 1) * MIB).await.unwrap();
        }
    };
    let (pages, ()) = tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(told, others) }).await.unwrap();
    assert_eq!(pages, 256, "each page once");
}

/// A query's plan, a later one of another process, a reader that waits, and a load, all of one worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_all_clients_are_brought_in_one_order_behind_demand_and_within_the_bound() {
    const BOUND: u64 = 8 * MIB;
    let cluster = Cluster::start_with(1, |options| options.bandwidth = rate(BOUND)).await;
    let [query, script, gateway, loader] = [0; 4].map(|_| cluster.client(|_| {}));
    let (query, script, gateway, loader) = (query.await, script.await, gateway.await, loader.await);
    let mut versions = Vec::new();
    for (number, (key, size)) in [("query", 12), ("script", 12), ("object", 4), ("load", 12)].into_iter().enumerate() {
        cluster.store(key, &bytes(number as u64, size << 20));
        versions.push(query.open(&path(key)).await.unwrap().version);
    }
    let held = async || -> Vec<u64> {
        let held = query.held(&versions).await.unwrap();
        held.iter().map(|held| held.bytes / MIB).collect()
    };
    cluster.s3.reset_counters();
    let (began, whole) = (Instant::now(), || 0..12 * MIB);
    let loading = {
        let (loader, load) = (loader.clone(), versions[3].clone());
        tokio::spawn(async move { loader.load(vec![load], false, |_| {}).await.unwrap() })
    };
    pause(100).await;
    let standing = |began_ms| Standing { priority: 0, began_ms };
    let later = script.prefetch_in_turn(script.operation(), standing(2), vec![(versions[1].clone(), vec![whole()])]);
    pause(100).await;
    let first = query.prefetch_in_turn(query.operation(), standing(1), vec![(versions[0].clone(), vec![whole()])]);
    pause(100).await;
    let asked = Instant::now();
    let read = gateway.read(gateway.operation(), &versions[2], 0..4 * MIB).await.unwrap();
    assert!(read == bytes(2, 4 << 20));
    // By an equal part of the bound it would take two seconds.
    assert!(asked.elapsed() < Duration::from_millis(1300), "demand took {:?}", asked.elapsed());
    until_asked("the first plan is brought", async || held().await[0] == 12).await;
    let [_, script_mib, _, load_mib] = held().await[..] else { panic!("four objects") };
    assert!(script_mib <= 8, "{script_mib} MiB of the later plan came before the end of the first");
    assert!(load_mib <= 8, "{load_mib} MiB were loaded before the plans were brought");
    until_asked("the later plan is brought", async || held().await[1] == 12).await;
    assert!(held().await[3] <= 9, "background waits for both");
    loading.await.unwrap();
    let (fetched, took) = (cluster.s3.counters().bytes_out, began.elapsed().as_secs_f64());
    assert_eq!(fetched, 40 * MIB, "nothing twice");
    assert!(fetched as f64 <= took * 1.02 * BOUND as f64 + (2 * MIB) as f64, "{fetched} bytes in {took} s");
    drop((first, later));
}
