//! A worker among others: writes are told, views bring mounts and pins, and reads go on without the coordinator.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::StoreSettings;
use forebay_coordinator::CoordinatorSettings;
use forebay_node::Node;
use forebay_placement::holder;
use forebay_protocol::{
    AdminRequest, CAME_BYTES_MAX, ControlReply, ControlRequest, DataReply, DataRequest, MemberRequest, PeerRequest, PutCondition,
    WorkerState, decode,
};
use forebay_transport::Security;
use forebay_types::{
    BitRate, ErrorKind, Key, MountOptions, ObjectInfo, ObjectVersion, OperationId, RouteKey, SegmentId, Standing, Validate,
    VersionTag,
};

use crate::bed::{Bed, Client, MIB, Plan, add_mount, control, start_worker, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_hear_of_writes_before_the_writer_does() {
    let options = MountOptions { validate: Validate::Immutable, ..Default::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    bed.object("a", 100);
    let settings = StoreSettings::new(bed.folder.path().join("second"), 16 << 20);
    let second = start_worker(bed.node.coordinator_at(), settings, None).await;
    let (writer, reader) = (bed.client().await, Client::connect(&second.address(), bed.mount.id).await);
    let old = reader.version("a").await;
    // The first worker has to know of the second.
    let version = async || {
        let put = DataRequest::Put { mount: bed.mount.id, key: Key::new("a").unwrap(), condition: PutCondition::Any };
        writer.send(put, vec!["new".into()]).await.unwrap();
        reader.version("a").await
    };
    until("the second worker knows of the write", async || version().await != old).await;
    writer.call(DataRequest::Delete { mount: bed.mount.id, key: Key::new("a").unwrap() }).await.unwrap();
    assert_eq!(reader.open("a").await.unwrap_err().kind(), ErrorKind::NotFound);
    second.shutdown().await;
    let ControlReply::Status(status) = control(bed.node.coordinator_at(), ControlRequest::Status).await.unwrap() else {
        panic!()
    };
    let live = status.workers.iter().filter(|(_, state, _)| *state == WorkerState::Live).count();
    assert_eq!(live, 1, "a worker that stops leaves");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_home_of_a_key_hears_from_who_has_seen_it_that_a_version_is_gone() {
    let options = MountOptions { validate: Validate::Immutable, ..Default::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let settings = StoreSettings::new(bed.folder.path().join("second"), 16 << 20);
    let second = start_worker(bed.node.coordinator_at(), settings, None).await;
    let ids = [bed.worker().id(), second.id()];
    let clients = [bed.client().await, Client::connect(&second.address(), bed.mount.id).await];
    let number = AtomicUsize::new(0);
    for key in ["a", "b", "c", "d"] {
        let home = holder(RouteKey::of(bed.mount.id, &Key::new(key).unwrap(), 0), &ids);
        let (home, other) = if home == Some(ids[0]) { (&clients[0], &clients[1]) } else { (&clients[1], &clients[0]) };
        let overwrite = || bed.s3.put("lake", key, number.fetch_add(1, Relaxed).to_string().as_bytes()).unwrap();
        // The first worker has to know of the second.
        until("the next open asks, within the rule", async || {
            overwrite();
            let old = home.version(key).await;
            overwrite();
            // As long as it does not hear of writes it asks each time.
            if home.version(key).await != old {
                return false;
            }
            assert_eq!(other.read(&old, 0, 1).await.unwrap_err().kind(), ErrorKind::Conflict);
            home.version(key).await != old
        })
        .await;
        let never = ObjectVersion { tag: VersionTag::etag("never"), ..home.version(key).await };
        until("who reads versions that never were makes the home ask once", async || {
            other.read(&never, 0, 1).await.unwrap_err();
            home.version(key).await;
            other.read(&never, 0, 1).await.unwrap_err();
            let asked = bed.s3.counters().requests();
            home.version(key).await;
            bed.s3.counters().requests() == asked
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_taken_for_lost_forgets_what_it_knew() {
    let options = MountOptions { validate: Validate::Immutable, ..Default::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    bed.object("a", 100);
    let client = bed.client().await;
    let old = client.version("a").await;
    bed.s3.put("lake", "a", b"new").unwrap();
    assert_eq!(client.version("a").await, old, "nothing told it of the change");
    control(bed.node.coordinator_at(), MemberRequest::Leave(bed.worker().id())).await.unwrap();
    until("it asks anew", async || client.version("a").await != old).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_go_on_without_the_coordinator() {
    let mut bed = Bed::new(Plan::default()).await;
    let data = bed.object("a", MIB);
    let client = bed.client().await;
    bed.node.coordinator.take().unwrap().shutdown().await;
    let version = client.version("a").await;
    assert_eq!(client.read(&version, 0, MIB).await.unwrap(), data, "known mounts are read, new objects too");
    let listen = bed.node.coordinator_at().clone();
    let settings = Node::coordinator_in(bed.folder.path(), Security::default());
    let again = Node::lead(CoordinatorSettings { listen, ..settings }).await.unwrap();
    until("the worker has joined again", async || {
        let status = control(bed.node.coordinator_at(), ControlRequest::Status).await;
        matches!(status, Ok(ControlReply::Status(status)) if status.workers.iter().any(|(info, _, _)| info.id == bed.worker().id()))
    })
    .await;
    bed.node.coordinator = again.coordinator;
    assert_eq!(client.read(&version, 0, MIB).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mounts_come_change_and_go_with_the_view() {
    let bed = Bed::new(Plan::default()).await;
    bed.s3.create_bucket("other").unwrap();
    bed.s3.put("other", "b", b"bytes").unwrap();
    let options = bed.s3.mount_options();
    let mount = add_mount(bed.node.coordinator_at(), "other", "s3://other", options.clone()).await;
    // At once: a mount that is not known yet is asked for, not refused.
    let client = Client::connect(&bed.worker().address(), mount.id).await;
    let version = client.version("b").await;
    assert_eq!(client.read(&version, 0, 5).await.unwrap(), "bytes");
    let read_only = MountOptions { read_only: true, ..options };
    control(bed.node.coordinator_at(), AdminRequest::MountSet { name: mount.name.clone(), options: read_only }).await.unwrap();
    until("writes are refused", async || {
        let put = DataRequest::Put { mount: mount.id, key: Key::new("c").unwrap(), condition: PutCondition::Any };
        matches!(client.send(put, vec!["x".into()]).await, Err(error) if error.kind() == ErrorKind::Denied)
    })
    .await;
    assert_eq!(client.read(&version, 0, 5).await.unwrap(), "bytes");
    let report = bed.worker().report();
    let counters = report.storage.iter().find(|(id, _)| *id == mount.id).unwrap().1;
    assert!(counters.gets >= 1, "counters go on when options change: {counters:?}");
    let reads = report.mount_reads.iter().find(|(id, _)| *id == mount.id).unwrap().1;
    assert_eq!((reads.reads, reads.bytes_served), (2, 10), "and so do those of reads");
    let has_numbers = || bed.worker().storage().iter().any(|(name, _)| *name == mount.name);
    assert!(has_numbers());
    control(bed.node.coordinator_at(), AdminRequest::MountRemove { name: mount.name.clone() }).await.unwrap();
    until(
        "the mount is gone",
        async || matches!(client.read(&version, 0, 5).await, Err(error) if error.kind() == ErrorKind::NotFound),
    )
    .await;
    assert!(!has_numbers(), "they end with their mount");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pinned_prefixes_are_kept_from_the_start() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("dim/a", 10_000);
    bed.object("fact/a", 10_000);
    let path = "/lake/dim/".parse().unwrap();
    control(bed.node.coordinator_at(), AdminRequest::PinAdd { path }).await.unwrap();
    let client = bed.client().await;
    let held = async |key: &str| {
        let version = client.version(key).await;
        let segments = vec![forebay_types::SegmentId::of(&version, 0)];
        client.call(DataRequest::Free { segments: segments.clone() }).await.unwrap();
        client.read(&version, 0, 10_000).await.unwrap();
        match client.call(DataRequest::Held { segments }).await.unwrap().0 {
            DataReply::Held(held) => held[0].keep,
            other => panic!("{other:?}"),
        }
    };
    until("the pin has arrived", async || held("dim/a").await).await;
    assert!(!held("fact/a").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_with_the_word_of_an_object_of_a_log_is_as_long_as_that_and_no_longer_than_it_may_be() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let come = async |key: &str, size: usize, payload: usize| {
        let (key, tag) = (Key::new(key).unwrap(), VersionTag::etag("\"e1\""));
        let version = ObjectVersion { mount: bed.mount.id, key, tag, size: size as u64 };
        let came = PeerRequest::Came { info: ObjectInfo { version, modified_ms: 1 } };
        let answer = client.connection.call(came.encode(), vec![vec![7_u8; payload].into()]).await.unwrap();
        decode::<DataReply>(&answer.meta).unwrap()
    };
    let log = "x/log/0123456789abcdef/0001-0000000001";
    for (key, size, payload) in [(log, 10, 9), (log, CAME_BYTES_MAX + 1, CAME_BYTES_MAX + 1), ("x/data/1", 10, 10)] {
        let refused = come(key, size, payload).await;
        assert!(matches!(refused, DataReply::Failed { kind: ErrorKind::Invalid, .. }), "{key} of {size}: {refused:?}");
    }
    for bytes in [10, CAME_BYTES_MAX] {
        let heard = come(log, bytes, bytes).await;
        assert!(matches!(heard, DataReply::Heard { .. }), "what says nothing is looked for: {heard:?}");
    }
}

/// What is asked for at a second worker while a first one brings 60 MiB.
#[derive(Clone, Copy)]
enum Beside {
    Reads,
    EarlierPlan,
}

/// What is brought at one worker, held or not, leaves the bound to 16 MiB at another that go before it.
async fn leaves_the_bound(hold_ms: u32, beside: Beside) {
    const BOUND: usize = 16 * MIB;
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(BOUND as u64)), ..MountOptions::default() };
    let bed = Bed::new(Plan { dram_bytes: 128 << 20, options, ..Plan::default() }).await;
    bed.object("load", 60 * MIB);
    bed.object("read", 16 * MIB);
    let settings = StoreSettings::new(bed.folder.path().join("second"), 128 << 20);
    let second = start_worker(bed.node.coordinator_at(), settings, None).await;
    let (loader, reader) = (bed.client().await, Client::connect(&second.address(), bed.mount.id).await);
    let (load, read) = (loader.version("load").await, reader.version("read").await);
    let prefetch = |version: &ObjectVersion, bytes: usize, hold_ms, began_ms| {
        let (operation, version, ranges) = (OperationId(began_ms), version.clone(), vec![(0, bytes as u32)]);
        let standing = Standing { priority: 0, began_ms };
        DataRequest::Prefetch { operation, version, ranges, keep: false, urgent: false, hold_ms, standing }
    };
    let segments = vec![SegmentId::of(&load, 0)];
    let mut loading = Box::pin(loader.call(prefetch(&load, 60 * MIB, hold_ms, 2)));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut loading).await.is_err(), "it keeps the bound");
    let loaded = async || match loader.call(DataRequest::Held { segments: segments.clone() }).await.unwrap().0 {
        DataReply::Held(held) => held[0].bytes as usize,
        other => panic!("{other:?}"),
    };
    let (before, began) = (loaded().await, Instant::now());
    match beside {
        Beside::Reads => {
            let (first, last) = tokio::join!(reader.read(&read, 0, 8 * MIB), reader.read(&read, 8 * MIB as u64, 8 * MIB));
            assert_eq!(first.unwrap().len() + last.unwrap().len(), 16 * MIB);
        }
        Beside::EarlierPlan => {
            let (reply, _) = reader.call(prefetch(&read, 16 * MIB, 60_000, 1)).await.unwrap();
            assert_eq!(reply, DataReply::Fetched { bytes: 16 * MIB as u64 });
        }
    }
    let (beside, took) = (loaded().await - before, began.elapsed().as_secs_f64());
    // By halves it would be as much as what went before it; some goes on until the coordinator has heard of that, and its worker then.
    assert!(beside < 8 * MIB, "{beside} bytes were loaded beside 16 MiB that go before them");
    let most = took * 1.05 * BOUND as f64 + (3 * MIB) as f64;
    assert!((16 * MIB + beside) as f64 <= most, "{beside} and 16 MiB in {took} s are more than the bound");
    drop(loading);
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_at_one_worker_takes_the_bound_from_a_load_at_another() {
    leaves_the_bound(0, Beside::Reads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_at_one_worker_takes_the_bound_from_what_is_brought_ahead_at_another() {
    leaves_the_bound(60_000, Beside::Reads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plan_brings_at_one_worker_takes_the_bound_from_a_later_plan_at_another() {
    leaves_the_bound(60_000, Beside::EarlierPlan).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_much_waits_for_shared_storage_loads_are_told_to_come_later_and_readers_are_not() {
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(4 << 20)), ..MountOptions::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    bed.object("read", 12 * MIB);
    let data = bed.object("other", MIB);
    let mut node = Node::join(bed.node.coordinator_at().clone(), Security::default());
    let mut settings = node.worker_in(&bed.folder.path().join("second"), 128 << 20);
    settings.storage_queue_bytes = 16 << 20;
    let worker = std::sync::Arc::clone(node.start_worker(settings).await.unwrap());
    let client = Client::connect(&worker.address(), bed.mount.id).await;
    let (read, other) = (client.version("read").await, client.version("other").await);
    let ask = async |start: u64, hold_ms| {
        let (version, ranges, standing) = (other.clone(), vec![(start, 4096)], Standing::default());
        let (operation, keep, urgent) = (OperationId(9), false, false);
        client.call(DataRequest::Prefetch { operation, version, ranges, keep, urgent, hold_ms, standing }).await.unwrap().0
    };
    let is_busy = |reply: &DataReply| matches!(reply, DataReply::Busy { .. });
    assert_eq!(ask(0, 0).await, DataReply::Fetched { bytes: 4096 });
    let (long, ()) = tokio::join!(client.read(&read, 0, 12 * MIB), async {
        // One of three requests runs, and 8 MiB wait: a quarter of the queue for the first, half of it for the second.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(is_busy(&ask(8192, 0).await), "a load");
        assert!(is_busy(&ask(8192, 1000).await), "what is brought ahead");
        assert_eq!(ask(0, 0).await, DataReply::Fetched { bytes: 0 }, "it is here");
        assert!(client.read(&other, 8192, 4096).await.unwrap() == data[8192..12288], "who waits for it");
    });
    assert_eq!(long.unwrap().len(), 12 * MIB);
    assert_eq!(ask(16384, 0).await, DataReply::Fetched { bytes: 4096 }, "nothing waits any more");
    worker.shutdown().await;
}
