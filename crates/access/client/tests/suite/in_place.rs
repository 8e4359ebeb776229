//! Pins: kept, counted, given back, outlived.

use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_testbed::until;
use forebay_types::{ErrorKind, OperationId};

use crate::scripted::{Coordinator, Mood, Worker, object};

const OPERATION: OperationId = OperationId(77);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_read_of_pinned_bytes_needs_no_call_and_is_counted() {
    let objects = [object("a", 300_000)];
    let worker = Worker::start(1, &objects).await;
    let client = Coordinator::start(&[&worker]).await.client(|_| {}).await;
    let (info, bytes) = &objects[0];
    let read = client.read(OPERATION, &info.version, 10_000..200_000).await.unwrap();
    assert_eq!(read, bytes[10_000..200_000]);
    for range in [10_000..200_000, 10_000..10_001, 150_000..200_000, 77_777..88_888] {
        let read = client.read(OPERATION, &info.version, range.clone()).await.unwrap();
        assert_eq!(read, bytes[range.start as usize..range.end as usize]);
    }
    assert_eq!(worker.reads(), 1);
    // Past what is pinned the worker is asked, and then covers both.
    let read = client.read(OPERATION, &info.version, 5_000..250_000).await.unwrap();
    assert_eq!(read, bytes[5_000..250_000]);
    client.read(OPERATION, &info.version, 6_000..249_000).await.unwrap();
    assert_eq!(worker.reads(), 2);
    until("five reads in place are reported", || {
        worker.shared.counted.lock().get(&77) == Some(&(5, 190_000 + 1 + 50_000 + 11_111 + 243_000))
    })
    .await;
    let counters = client.counters();
    assert_eq!((counters.reads_cached, counters.reads_in_place, counters.reads_socket), (5, 2, 0));
    assert_eq!(counters.bytes_in_place, 190_000 * 2 + 1 + 50_000 + 11_111 + 245_000 + 243_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_pins_are_given_back_but_not_those_of_bytes_in_use() {
    let objects = [object("a", 100_000), object("b", 100_000)];
    let worker = Worker::start(1, &objects).await;
    let client = Coordinator::start(&[&worker]).await.client(|settings| settings.pin_idle = Duration::from_millis(100)).await;
    let held = client.read(OPERATION, &objects[0].0.version, 0..100_000).await.unwrap();
    drop(client.read(OPERATION, &objects[1].0.version, 0..100_000).await.unwrap());
    assert_eq!(worker.pins(), 2);
    until("the idle pin is given back", || worker.pins() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(worker.pins(), 1, "bytes in use keep their pin");
    assert_eq!(held, objects[0].1);
    drop(held);
    until("the last pin is given back", || worker.pins() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_outlive_their_client() {
    let objects = [object("a", 100_000)];
    let worker = Worker::start(1, &objects).await;
    let client = Coordinator::start(&[&worker]).await.client(|_| {}).await;
    let held = client.read(OPERATION, &objects[0].0.version, 0..100_000).await.unwrap();
    drop(client);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((worker.pins(), held.as_ref()), (1, objects[0].1.as_slice()));
    drop(held);
    until("the connection closes with the last pin", || worker.shared.sessions.load(Ordering::SeqCst) == 0).await;
    assert_eq!(worker.pins(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_nobody_waits_for_any_more_loses_no_pin() {
    let objects = [object("a", 100_000)];
    let worker = Worker::start(1, &objects).await;
    let client = Coordinator::start(&[&worker]).await.client(|settings| settings.pin_idle = Duration::from_millis(50)).await;
    client.read(OPERATION, &objects[0].0.version, 0..10).await.unwrap();
    worker.set(Mood::Slow(Duration::from_millis(100)));
    for _ in 0..20 {
        let read = client.read(OPERATION, &objects[0].0.version, 0..50_000);
        assert!(tokio::time::timeout(Duration::from_millis(20), read).await.is_err());
    }
    assert_eq!(worker.reads(), 21);
    tokio::time::sleep(Duration::from_millis(150)).await;
    until("all pins are given back", || worker.pins() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn number_and_bytes_of_kept_pins_are_bounded() {
    let objects: Vec<_> = (0..64).map(|ix| object(&format!("k{ix}"), 1 << 20)).collect();
    let worker = Worker::start(1, &objects).await;
    let client = Coordinator::start(&[&worker]).await.client(|settings| settings.pins_max = 8).await;
    for (info, bytes) in &objects {
        assert_eq!(client.read(OPERATION, &info.version, 0..1 << 20).await.unwrap(), bytes);
    }
    until("eight pins are left", || worker.pins() == 8).await;
    let client = Coordinator::start(&[&worker]).await.client(|_| {}).await;
    for (info, _) in &objects {
        client.read(OPERATION, &info.version, 0..1 << 20).await.unwrap();
    }
    // Three eighths of the worker's 64 MiB, beside the eight of the other client.
    until("24 MiB are left", || worker.pins() == 24 + 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_worker_answers_with_copies() {
    let objects = [object("a", 100_000)];
    let worker = Worker::start(1, &objects).await;
    worker.set(Mood::Full);
    let client = Coordinator::start(&[&worker]).await.client(|_| {}).await;
    for _ in 0..2 {
        let read = client.read(OPERATION, &objects[0].0.version, 5..99_999).await.unwrap();
        assert_eq!(read, objects[0].1[5..99_999]);
    }
    assert_eq!((worker.reads(), worker.pins(), client.counters().bytes_socket), (2, 0, 2 * 99_994));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_span_outside_the_tier_is_an_error_and_no_crash() {
    let objects = [object("a", 100_000)];
    let worker = Worker::start(1, &objects).await;
    worker.set(Mood::Lies);
    let client = Coordinator::start(&[&worker]).await.client(|_| {}).await;
    let error = client.read(OPERATION, &objects[0].0.version, 0..10).await.unwrap_err();
    assert!(error.to_string().contains("run one version of forebay"), "{error}");
    until("the pin is given back", || worker.pins() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turned_off_reads_come_over_tcp() {
    let objects = [object("a", 100_000)];
    let worker = Worker::start(1, &objects).await;
    let client = Coordinator::start(&[&worker]).await.client(|settings| settings.in_place = false).await;
    let read = client.read(OPERATION, &objects[0].0.version, 0..100_000).await.unwrap();
    assert_eq!(read, objects[0].1);
    let counters = client.counters();
    assert_eq!((worker.pins(), counters.bytes_in_place, counters.bytes_socket), (0, 0, 100_000));
    let error = client.read(OPERATION, &objects[0].0.version, 0..100_001).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
