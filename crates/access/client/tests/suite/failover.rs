//! Workers that are slow, refuse, fail or are gone; a coordinator that is away.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_protocol::{DataReply, DataRequest, DatasetId, decode, encode};
use forebay_testbed::{until, until_asked};
use forebay_types::{ErrorKind, ForebayPath, Key, OperationId, RouteKey};

use crate::cluster::{Cluster, bytes, rate};
use crate::scripted::{Coordinator, MOUNT, Mood, Worker, lose, object};

const OPERATION: OperationId = OperationId(78);

/// Two workers with the same object, the one that is asked first in front.
async fn pair(key: &str) -> (Worker, Worker, Coordinator, forebay_types::ObjectVersion, Vec<u8>) {
    let objects = [object(key, 50_000)];
    let (mut first, mut second) = (Worker::start(1, &objects).await, Worker::start(2, &objects).await);
    let (info, bytes) = objects[0].clone();
    let route = RouteKey::of(MOUNT, &info.version.key, 0);
    if forebay_placement::rank(route, &[first.info.id, second.info.id])[0] != first.info.id {
        std::mem::swap(&mut first, &mut second);
    }
    let coordinator = Coordinator::start(&[&first, &second]).await;
    (first, second, coordinator, info.version, bytes)
}

fn path(key: &str) -> ForebayPath {
    format!("/lake/{key}").parse().unwrap()
}

async fn put(client: &Client, condition: PutCondition) -> Result<(), forebay_types::Error> {
    client.put(&path("x"), Bytes::from_static(b"bytes"), condition).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_can_not_now_is_passed_over() {
    let (first, second, coordinator, version, bytes) = pair("x").await;
    first.set(Mood::Fails(ErrorKind::Retry));
    let client = coordinator.client(|_| {}).await;
    assert_eq!(client.read(OPERATION, &version, 0..50_000).await.unwrap(), bytes);
    assert_eq!((first.reads(), second.reads()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_says_of_the_object_is_not_asked_elsewhere() {
    for kind in [ErrorKind::Conflict, ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::Invalid] {
        let (first, second, coordinator, version, _) = pair("x").await;
        first.set(Mood::Fails(kind));
        let client = coordinator.client(|_| {}).await;
        assert_eq!(client.read(OPERATION, &version, 0..10).await.unwrap_err().kind(), kind);
        assert_eq!((first.reads(), second.reads()), (1, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_lost_is_replaced_at_once_and_its_pins_are_not_used() {
    for in_place in [true, false] {
        let (mut first, second, coordinator, version, bytes) = pair("x").await;
        let client = coordinator.client(|settings| settings.in_place = in_place).await;
        let held = client.read(OPERATION, &version, 0..50_000).await.unwrap();
        assert_eq!(first.reads(), 1);
        first.stop().await;
        let began = Instant::now();
        assert_eq!(client.read(OPERATION, &version, 0..50_000).await.unwrap(), bytes);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(second.reads(), 1, "pins of a lost connection are not used");
        assert_eq!(held, bytes, "the mapping outlives the worker");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_lost_under_a_read_is_replaced() {
    let (mut first, second, coordinator, version, bytes) = pair("x").await;
    first.set(Mood::Hangs);
    let client = coordinator.client(|_| {}).await;
    let reading = tokio::spawn({
        let (client, version) = (client.clone(), version.clone());
        async move { client.read(OPERATION, &version, 1..49_999).await }
    });
    until("the first worker was asked", || first.reads() == 1).await;
    first.stop().await;
    assert_eq!(reading.await.unwrap().unwrap(), bytes[1..49_999]);
    assert_eq!(second.reads(), 1);
}

/// A worker that is stopped keeps its connections: who waits for it would wait until it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_goes_to_another_worker_when_its_own_says_nothing_at_all() {
    for in_place in [true, false] {
        let (first, second, coordinator, version, bytes) = pair("x").await;
        let client = coordinator.client(|settings| settings.in_place = in_place).await;
        client.read(OPERATION, &version, 0..10).await.unwrap();
        first.set(Mood::Stopped);
        let began = Instant::now();
        assert_eq!(client.read(OPERATION, &version, 20_000..50_000).await.unwrap(), bytes[20_000..50_000]);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        let (began, before) = (Instant::now(), second.reads());
        assert_eq!(client.read(OPERATION, &version, 100..200).await.unwrap(), bytes[100..200]);
        assert!(began.elapsed() < Duration::from_millis(250), "it is asked first then: {:?}", began.elapsed());
        assert_eq!((before, second.reads()), (1, 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_takes_long_is_left_to_its_worker_as_long_as_that_is_there() {
    let (first, second, coordinator, version, bytes) = pair("x").await;
    first.set(Mood::Slow(Duration::from_millis(1500)));
    let client = coordinator.client(|settings| settings.in_place = false).await;
    assert_eq!(client.read(OPERATION, &version, 0..100).await.unwrap(), bytes[..100]);
    assert_eq!((first.reads(), second.reads()), (1, 0), "to ask another one would fetch it twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_hangs_goes_on_elsewhere_when_its_worker_is_lost() {
    let (first, second, coordinator, version, bytes) = pair("x").await;
    first.set(Mood::Hangs);
    let client = coordinator.client(|settings| settings.in_place = false).await;
    lose(&coordinator, &first);
    let began = Instant::now();
    assert_eq!(client.read(OPERATION, &version, 0..100).await.unwrap(), bytes[..100]);
    assert!(began.elapsed() < Duration::from_secs(4), "the view is looked at before its time: {:?}", began.elapsed());
    assert_eq!((first.reads(), second.reads()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_to_a_shard_that_hangs_ends_when_its_worker_is_lost() {
    let (first, _second, coordinator, _, _) = pair("x").await;
    first.set(Mood::Stopped);
    let client = coordinator.client(|settings| settings.in_place = false).await;
    lose(&coordinator, &first);
    let dataset = DatasetId { mount: MOUNT, folder: Key::new("x.shards").unwrap(), manifest: 1, tag: 7 };
    let (began, question) = (Instant::now(), Bytes::from_static(b"{}\n"));
    let asked = client.shards().ask(first.info.id, &dataset, 0, question, Duration::from_secs(30)).await;
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::Retry);
    assert!(began.elapsed() < Duration::from_secs(4), "another worker has the shard: {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_hangs_ends_when_its_worker_is_lost_and_is_not_done_twice() {
    let (first, second, coordinator, _, _) = pair("x").await;
    first.set(Mood::Hangs);
    let client = coordinator.client(|settings| settings.in_place = false).await;
    lose(&coordinator, &first);
    let began = Instant::now();
    let error = put(&client, PutCondition::Any).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("unknown"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!((first.writes(), second.writes()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_the_wait_and_the_slow_one_is_tried_last_for_a_while() {
    let (first, second, coordinator, version, bytes) = pair("x").await;
    first.set(Mood::Hangs);
    let client = coordinator
        .client(|settings| {
            settings.read_deadline = Duration::from_millis(200);
            settings.in_place = false;
        })
        .await;
    for _ in 0..3 {
        assert_eq!(client.read(OPERATION, &version, 0..100).await.unwrap(), bytes[..100]);
    }
    assert_eq!((first.reads(), second.reads()), (1, 3));
    tokio::time::sleep(Duration::from_millis(2100)).await;
    first.set(Mood::Well);
    client.read(OPERATION, &version, 0..100).await.unwrap();
    assert_eq!((first.reads(), second.reads()), (2, 3), "after a while it gets its place back");
}

/// Shared storage hangs, say: whoever is asked waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_all_hang_are_not_waited_for_one_after_the_other() {
    const PATIENCE: Duration = Duration::from_secs(1);
    let objects = [object("x", 50_000)];
    let workers = [Worker::start(1, &objects).await, Worker::start(2, &objects).await, Worker::start(3, &objects).await];
    workers.iter().for_each(|worker| worker.set(Mood::Hangs));
    let coordinator = Coordinator::start(&workers.each_ref()).await;
    let client = coordinator.client(|settings| settings.read_deadline = PATIENCE).await;
    let began = Instant::now();
    let error = client.read(OPERATION, &objects[0].0.version, 0..100).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("did not answer within"), "{error}");
    assert!(began.elapsed() >= PATIENCE, "the first has all of its time");
    assert_eq!(workers.iter().map(Worker::reads).sum::<usize>(), 2, "the third is not waited for as well");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_goes_past_a_worker_that_was_stopped_and_it_does_not_do_it_later() {
    let (first, second, coordinator, version, _) = pair("x").await;
    let client = coordinator.client(|_| {}).await;
    client.read(OPERATION, &version, 0..10).await.unwrap();
    first.set(Mood::Stopped);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    put(&client, PutCondition::Any).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!((first.writes(), second.writes()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_go_on_without_coordinator() {
    let (_first, _second, mut coordinator, version, bytes) = pair("x").await;
    let client = coordinator.client(|settings| settings.view_poll = Duration::from_millis(50)).await;
    coordinator.stop().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.read(OPERATION, &version, 0..50_000).await.unwrap(), bytes);
    let unknown = client.open(&"/other/x".parse().unwrap()).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Retry, "{unknown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_mount_is_asked_for_once_more() {
    let (_first, _second, coordinator, _, _) = pair("x").await;
    let client = coordinator.client(|_| {}).await;
    let name = "late".parse().unwrap();
    assert_eq!(client.mount(&name).await.unwrap_err().kind(), ErrorKind::NotFound);
    {
        let mut view = coordinator.view.lock();
        let mut mount = view.mounts[0].clone();
        (mount.id, mount.name) = (forebay_types::MountId(2), name.clone());
        view.mounts.push(mount);
        view.version += 1;
    }
    assert_eq!(client.mount(&name).await.unwrap().id.0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_answer_both_reasons_are_told() {
    let (mut first, mut second, coordinator, version, _) = pair("x").await;
    let client = coordinator.client(|_| {}).await;
    first.stop().await;
    second.stop().await;
    let error = client.read(OPERATION, &version, 0..10).await.unwrap_err();
    // The mount's folder is not on this host, which says nothing about the object.
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    for reason in ["no worker could answer", "there is no folder", "/lake/x"] {
        assert!(error.message().contains(reason), "{error}");
    }
    let error = client.open(&path("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_what_shared_storage_says_of_them_are_told_as_such_once_no_worker_has_others() {
    let (first, second, coordinator, version, bytes) = pair("x").await;
    let client = coordinator.client(|settings| settings.in_place = false).await;
    first.set(Mood::Fails(ErrorKind::Corrupt));
    assert_eq!(client.read(OPERATION, &version, 0..50_000).await.unwrap(), bytes, "the other one has them");
    second.set(Mood::Fails(ErrorKind::Corrupt));
    let error = client.read(OPERATION, &version, 0..50_000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "to ask again helps nobody: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_lost_is_repeated_only_under_a_condition() {
    let (first, second, coordinator, _, _) = pair("x").await;
    first.set(Mood::Hangs);
    let client = coordinator.client(|settings| settings.read_deadline = Duration::from_millis(100)).await;
    let error = put(&client, PutCondition::Any).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("unknown"), "{error}");
    assert_eq!((first.writes(), second.writes()), (1, 0));
    tokio::time::sleep(Duration::from_millis(2100)).await;
    put(&client, PutCondition::Absent).await.unwrap();
    assert_eq!((first.writes(), second.writes()), (2, 1));
    // What the repetition says may be about the first attempt.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    second.set(Mood::Fails(ErrorKind::Conflict));
    let error = put(&client, PutCondition::Absent).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("first attempt"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_goes_to_the_next_worker_when_none_was_asked() {
    let (mut first, mut second, coordinator, _, _) = pair("x").await;
    let client = coordinator.client(|_| {}).await;
    first.stop().await;
    put(&client, PutCondition::Any).await.unwrap();
    assert_eq!((first.writes(), second.writes()), (0, 1));
    second.stop().await;
    let error = put(&client, PutCondition::Any).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("nothing was written"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_with_full_queues_have_readers_come_later_and_all_answers_are_right() {
    const READS: u64 = 40;
    let mut cluster = Cluster::start_with(0, |options| options.bandwidth = rate(16 << 20)).await;
    cluster.worker.storage_queue_bytes = 8 << 20;
    cluster.add_worker().await;
    cluster.add_worker().await;
    let client = cluster.client(|settings| settings.in_place = false).await;
    let mut versions = Vec::new();
    for (number, size) in (0..READS).map(|number| (number, 2usize << 20)).chain([(READS, 16 << 20), (READS + 1, 32 << 20)]) {
        let key = format!("o/{number}");
        cluster.store(&key, &bytes(number, size));
        versions.push(client.open(&path(&key)).await.unwrap().version);
    }
    let (load, probed) = (versions[READS as usize].clone(), versions[READS as usize + 1].clone());
    let reads = (0..READS).map(|number| {
        let (client, version) = (&client, &versions[number as usize]);
        async move {
            let read = client.read(client.operation(), version, 0..version.size).await.unwrap();
            assert!(read == bytes(number, 2 << 20), "object {number}");
        }
    });
    let (address, security) = (cluster.node.workers[0].address(), forebay_client::Security::default());
    let line = forebay_transport::Connection::connect(&address, &security).await.unwrap();
    let mut page = 0;
    // It is another page each time: one that has come is read whatever waits.
    let is_busy = async || {
        let (operation, version, start) = (client.operation(), probed.clone(), page * 4096);
        page += 1;
        let read = DataRequest::Read { operation, version, start, len: 4096, in_place: false };
        let answer = line.call(encode(&read), Vec::new()).await.unwrap();
        matches!(decode(&answer.meta), Ok(DataReply::Busy { after_ms: 50..=10_000, .. }))
    };
    let (_, loaded, ()) = tokio::join!(
        futures::future::join_all(reads),
        client.load(vec![load], false, |_| {}),
        until_asked("a reader is told to come later", is_busy)
    );
    assert_eq!(loaded.unwrap().bytes, 16 << 20, "a load waits until there is room");
    assert_eq!(client.counters().reads_fallback, 0, "nobody has gone to shared storage past the workers");
}
