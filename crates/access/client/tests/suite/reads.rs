//! The right bytes, whatever way they come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use forebay_client::{Client, RangeSpec};
use forebay_testbed::{BUCKET, Fault, add_mount, until};
use forebay_types::{ErrorKind, ObjectInfo, SEGMENT_BYTES};
use futures::{StreamExt, stream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::cluster::{Cluster, bytes, path, pause, put, rate, start};

/// Reads random ranges of all objects at once and compares them.
async fn check_random(client: &Client, objects: &[(ObjectInfo, Vec<u8>)], reads: usize, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let operation = client.operation();
    let ranges: Vec<_> = (0..reads)
        .map(|_| {
            let (info, bytes) = &objects[random.random_range(0..objects.len())];
            let start = random.random_range(0..=bytes.len());
            let most = if random.random_bool(0.8) { 100_000 } else { usize::MAX };
            let len = random.random_range(0..=most.min(bytes.len() - start));
            (info, &bytes[start..start + len], start as u64..(start + len) as u64)
        })
        .collect();
    let reads = ranges.into_iter().map(|(info, expected, range)| async move {
        let read =
            client.read(operation, &info.version, range.clone()).await.unwrap_or_else(|error| panic!("{range:?}: {error}"));
        assert!(read == expected, "seed {seed}, {} {range:?}", info.version.key);
    });
    stream::iter(reads).buffer_unordered(16).collect::<()>().await;
}

async fn objects(cluster: &Cluster, client: &Client) -> Vec<(ObjectInfo, Vec<u8>)> {
    let mut objects = Vec::new();
    for (ix, len) in [1usize, 4095, 4096, 50_000, 3_000_001].into_iter().enumerate() {
        let (key, bytes) = (format!("o{ix}"), bytes(ix as u64 + 1, len));
        cluster.store(&key, &bytes);
        objects.push((client.open(&path(&key)).await.unwrap(), bytes));
    }
    objects
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_ranges_in_place_and_by_socket() {
    for workers in [1, 3] {
        let cluster = Cluster::start(workers).await;
        for in_place in [true, false] {
            let client = cluster.client(|settings| settings.in_place = in_place).await;
            let objects = objects(&cluster, &client).await;
            for seed in 0..3 {
                check_random(&client, &objects, 100, seed).await;
            }
            let counters = client.counters();
            assert_eq!(counters.bytes_in_place > 0, in_place, "{counters:?}");
            assert_eq!(counters.reads_fallback, 0, "{counters:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_over_several_segments() {
    let cluster = Cluster::start(3).await;
    let data = bytes(9, SEGMENT_BYTES as usize + 1_000_000);
    cluster.store("large", &data);
    for in_place in [true, false] {
        let client = cluster.client(|settings| settings.in_place = in_place).await;
        let version = client.open(&path("large")).await.unwrap().version;
        let border = SEGMENT_BYTES - 70_000..SEGMENT_BYTES + 70_000;
        let read = client.read(client.operation(), &version, border.clone()).await.unwrap();
        assert!(read == data[border.start as usize..border.end as usize]);
        let (info, range, read) = client
            .read_latest(client.operation(), &path("large"), RangeSpec::Bounded { start: SEGMENT_BYTES - 5, len: 1 << 40 })
            .await
            .unwrap();
        assert_eq!((info.version, range), (version, SEGMENT_BYTES - 5..data.len() as u64));
        assert!(read == data[SEGMENT_BYTES as usize - 5..]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_object_takes_one_get() {
    let (cluster, client) = start(1).await;
    let data = bytes(3, 60_000);
    cluster.store("new", &data);
    cluster.s3.reset_counters();
    let read = client.read_latest(client.operation(), &path("new"), RangeSpec::From { start: 0 }).await.unwrap();
    assert!(read.2 == data && read.1 == (0..60_000));
    let counters = cluster.s3.counters();
    assert_eq!((counters.gets, counters.heads, counters.bytes_out), (1, 0, 60_000));
    for (range, expected) in [
        (RangeSpec::Suffix { len: 8 }, 59_992..60_000),
        (RangeSpec::Suffix { len: 1 << 30 }, 0..60_000),
        (RangeSpec::Bounded { start: 10, len: 0 }, 10..10),
        (RangeSpec::Bounded { start: 59_999, len: 100 }, 59_999..60_000),
    ] {
        let (_, range, read) = client.read_latest(client.operation(), &path("new"), range).await.unwrap();
        assert_eq!((range.clone(), &read[..]), (expected, &data[range.start as usize..range.end as usize]));
    }
    let past = RangeSpec::From { start: 60_001 };
    let error = client.read_latest(client.operation(), &path("new"), past).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = client.read_latest(client.operation(), &path("none"), past).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_object_has_no_bytes() {
    let (_cluster, client) = start(1).await;
    let info = put(&client, "empty", Vec::new()).await;
    assert_eq!(client.read(client.operation(), &info.version, 0..0).await.unwrap().len(), 0);
    for range in [RangeSpec::From { start: 0 }, RangeSpec::Suffix { len: 5 }, RangeSpec::Bounded { start: 0, len: 5 }] {
        let (latest, range, read) = client.read_latest(client.operation(), &path("empty"), range).await.unwrap();
        assert_eq!((latest.version.size, range, read.len()), (0, 0..0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_object_is_a_conflict_for_who_opened_it_before() {
    let (cluster, client) = start(1).await;
    let first = put(&client, "x", bytes(1, 100_000)).await;
    cluster.store("x", &bytes(2, 100_000));
    // What is still held of the old version may be read; what is not is a conflict, never the new bytes.
    let read = client.read(client.operation(), &first.version, 0..100_000).await;
    match read {
        Ok(read) => assert!(read == bytes(1, 100_000)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
    }
    client.free([first.version.clone()]).await.unwrap();
    let error = client.read(client.operation(), &first.version, 0..100_000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let (info, _, read) = client.read_latest(client.operation(), &path("x"), RangeSpec::From { start: 0 }).await.unwrap();
    assert!(read == bytes(2, 100_000) && info.version != first.version);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_go_and_the_bytes_stay_right() {
    let (mut cluster, client) = start(3).await;
    let objects = objects(&cluster, &client).await;
    check_random(&client, &objects, 50, 1).await;
    let gone = AtomicBool::new(false);
    let reading = async {
        for seed in 0.. {
            let last = gone.load(Ordering::SeqCst);
            check_random(&client, &objects, 50, seed).await;
            if last {
                return;
            }
        }
    };
    let going = async {
        for _ in 0..2 {
            pause(50).await;
            cluster.node.workers.remove(0).shutdown().await;
        }
        gone.store(true, Ordering::SeqCst);
    };
    tokio::join!(reading, going);
    assert_eq!(client.counters().reads_fallback, 0, "one worker was left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_workers_shared_storage_is_read_within_a_budget() {
    let mut cluster = Cluster::start_with(1, |options| options.bandwidth = rate(2 << 20)).await;
    let client = cluster.client(|_| {}).await;
    let data = bytes(4, 3 << 20);
    cluster.store("x", &data);
    let version = client.open(&path("x")).await.unwrap().version;
    cluster.stop_workers().await;
    let began = Instant::now();
    let read = client.read(client.operation(), &version, 0..3 << 20).await.unwrap();
    assert!(read == data);
    // 3 MiB at 2 MiB/s, of which at most the burst of 1 MiB at once.
    let took = began.elapsed().as_secs_f64();
    assert!((0.9..20.0).contains(&took), "{took} s");
    let (info, _, read) = client.read_latest(client.operation(), &path("x"), RangeSpec::Suffix { len: 100 }).await.unwrap();
    assert!(info.version == version && read == data[data.len() - 100..]);
    let names: Vec<_> = client.list_all(&path("")).await.unwrap().into_iter().map(|info| info.version.key).collect();
    assert_eq!(names.len(), 1);
    assert_eq!(client.open(&path("none")).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(client.counters().bytes_fallback >= 3 << 20);
    cluster.store("x", &bytes(5, 3 << 20));
    let error = client.read(client.operation(), &version, 0..10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_coordinator_reads_go_on_and_the_budget_is_a_twentieth() {
    let mut cluster = Cluster::start_with(1, |options| options.bandwidth = rate(4 << 20)).await;
    let client = cluster.client(|_| {}).await;
    let data = bytes(4, 500_000);
    cluster.store("x", &data);
    let version = client.open(&path("x")).await.unwrap().version;
    cluster.stop_coordinator().await;
    assert!(client.read(client.operation(), &version, 0..250_000).await.unwrap() == data[..250_000]);
    cluster.stop_workers().await;
    let began = Instant::now();
    assert!(client.read(client.operation(), &version, 0..500_000).await.unwrap() == data);
    let took = began.elapsed().as_secs_f64();
    assert!((1.5..20.0).contains(&took), "500 kB at 205 kB/s took {took} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pins_are_released_when_idle() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client(|settings| settings.pin_idle = std::time::Duration::from_millis(200)).await;
    let info = put(&client, "x", bytes(1, 1_000_000)).await;
    let read = client.read(client.operation(), &info.version, 0..1_000_000).await.unwrap();
    assert!(read == bytes(1, 1_000_000));
    if client.counters().bytes_in_place == 0 {
        client.read(client.operation(), &info.version, 0..1_000_000).await.unwrap();
    }
    assert!(client.counters().bytes_in_place > 0, "{:?}", client.counters());
    drop(read);
    until("nothing is pinned", || cluster.pinned() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_back_is_read_in_place_again() {
    let (mut cluster, client) = start(1).await;
    let objects = objects(&cluster, &client).await;
    check_random(&client, &objects, 50, 1).await;
    cluster.stop_workers().await;
    check_random(&client, &objects, 20, 2).await;
    let before = client.counters();
    assert!(before.reads_fallback > 0);
    cluster.start_worker(0).await;
    for seed in 3..100 {
        check_random(&client, &objects, 20, seed).await;
        if client.counters().bytes_in_place > before.bytes_in_place {
            return;
        }
        pause(50).await;
    }
    panic!("never in place again: {:?}", client.counters());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_starts_again_sends_nobody_to_shared_storage() {
    let mut cluster = Cluster::start(3).await;
    let client = cluster.client(|settings| settings.view_poll = std::time::Duration::from_millis(20)).await;
    let objects = objects(&cluster, &client).await;
    let epoch = client.view().epoch;
    cluster.stop_coordinator().await;
    check_random(&client, &objects, 20, 1).await;
    cluster.start_coordinator().await;
    // Its first views lack the workers, which register again with their next heartbeats.
    for seed in 2..1000 {
        check_random(&client, &objects, 20, seed).await;
        let view = client.view();
        if view.epoch > epoch && view.workers.len() == 3 {
            break;
        }
        pause(5).await;
    }
    assert!(client.view().epoch > epoch && client.view().workers.len() == 3, "{:?}", client.view());
    assert_eq!(client.counters().reads_fallback, 0, "{:?}", client.counters());
    put(&client, "after", bytes(1, 10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_that_a_worker_has_waited_for_is_not_waited_for_as_long_once_more() {
    let mut cluster = Cluster::empty(|_| {}).await;
    cluster.tuning.storage.max_retries = 3;
    cluster.add_worker().await;
    let client = cluster.client(|settings| settings.storage.max_retries = 8).await;
    add_mount(&client, "lake", &format!("s3://{BUCKET}"), cluster.s3.mount_options()).await;
    cluster.store("x", &bytes(1, 1000));
    cluster.s3.inject(Fault::Status(503), 1000);
    let error = client.open(&path("x")).await.unwrap_err();
    cluster.s3.clear_faults();
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    for said in ["gave up after 4 tries", "gave up after 2 tries"] {
        assert!(error.message().contains(said), "{error}");
    }
    client.open(&path("x")).await.unwrap();
}
