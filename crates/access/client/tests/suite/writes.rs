//! Writing, deleting, listing, loading, keeping, freeing.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_protocol::{AdminRequest, DataReply, DataRequest, decode, encode};
use forebay_transport::{Connection, Security};
use forebay_types::{ErrorKind, Key, Validate};
use futures::{FutureExt, TryStreamExt};

use crate::cluster::{Cluster, bytes, path, put, start};

/// A gateway's view is up to 20 s old.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_a_gateway_does_not_know_of_has_forgotten_when_the_gateway_has_told_all() {
    let mut cluster = Cluster::start_with(1, |options| options.validate = Validate::Immutable).await;
    let gateway = cluster.client(|_| {}).await;
    cluster.store("a", b"old");
    cluster.add_worker().await;
    let mount = gateway.known_mount("lake").unwrap().id;
    let connection = Connection::connect(&cluster.node.workers[1].address(), &Security::default()).await.unwrap();
    let version = async || {
        let request = DataRequest::Open { mount, key: Key::new("a").unwrap() };
        match decode(&connection.call(encode(&request), Vec::new()).await.unwrap().meta).unwrap() {
            DataReply::Info(info) => info.version,
            other => panic!("{other:?}"),
        }
    };
    let old = version().await;
    cluster.store("a", b"new");
    assert_eq!(version().await, old, "nobody has told it");
    assert_eq!(gateway.view().workers.len(), 1);
    gateway.changed(&path("a")).await.unwrap();
    assert_ne!(version().await, old);
    assert_eq!(gateway.view().workers.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_is_read_and_listed() {
    let (_cluster, client) = start(3).await;
    let keys = ["a", "a//b", "a/b", "dir/", "dir/x", "p c%20/é", "z"];
    for (seed, key) in keys.iter().enumerate() {
        let data = bytes(seed as u64, 10_000 + seed);
        let info = put(&client, key, data.clone()).await;
        assert_eq!((info.version.key.as_str(), info.version.size), (*key, data.len() as u64));
        assert!(client.read(client.operation(), &info.version, 0..info.version.size).await.unwrap() == data);
    }
    let listed: Vec<_> = client.list_all(&path("")).await.unwrap();
    let mut expected: Vec<_> = keys.iter().map(|key| Key::new(key).unwrap()).collect();
    expected.sort();
    assert_eq!(listed.iter().map(|info| info.version.key.clone()).collect::<Vec<_>>(), expected);
    let pages: Vec<_> = client.list(&path(""), true).await.unwrap().try_collect().await.unwrap();
    let folders: Vec<_> = pages.iter().flat_map(|page| page.folders.iter().map(Key::as_str)).collect();
    assert_eq!(folders, ["a/", "dir/", "p c%20/"]);
    client.delete(&path("a//b")).await.unwrap();
    client.delete(&path("never-there")).await.unwrap();
    assert_eq!(client.open(&path("a//b")).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(client.list_all(&path("a")).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_hold() {
    let (_cluster, client) = start(1).await;
    let data = Bytes::from_static(b"one");
    let first = client.put(&path("x"), data.clone(), PutCondition::Absent).await.unwrap();
    let error = client.put(&path("x"), data, PutCondition::Absent).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let over = PutCondition::Version(first.version.tag.clone());
    client.put(&path("x"), Bytes::from_static(b"two"), over.clone()).await.unwrap();
    let error = client.put(&path("x"), Bytes::from_static(b"three"), over).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let error = client.put(&path(""), Bytes::new(), PutCondition::Any).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_mount_refuses() {
    let cluster = Cluster::start_with(1, |options| options.read_only = true).await;
    let client = cluster.client(|_| {}).await;
    let error = client.put(&path("x"), Bytes::new(), PutCondition::Any).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(client.delete(&path("x")).await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(cluster.s3.counters().puts, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_objects_go_in_parts_and_unfinished_ones_leave_nothing() {
    let (_cluster, client) = start(1).await;
    let data = bytes(5, 21_000_003);
    let info = client.put(&path("whole"), Bytes::from(data.clone()), PutCondition::Any).await.unwrap();
    assert!(client.read(client.operation(), &info.version, 0..info.version.size).await.unwrap() == data);
    let mut writer = client.writer(&path("pieces")).await.unwrap();
    for piece in data.chunks(1_234_567) {
        writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    let info = writer.finish_if(PutCondition::Absent).await.unwrap();
    assert!(client.read(client.operation(), &info.version, 0..info.version.size).await.unwrap() == data);
    let mut writer = client.writer(&path("given-up")).await.unwrap();
    writer.write(Bytes::from(data)).await.unwrap();
    drop(writer);
    assert_eq!(client.open(&path("given-up")).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(client.list_all(&path("")).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_nobody_waits_for_any_more_loses_nothing() {
    let (_cluster, client) = start(1).await;
    let data = bytes(6, 100 << 20);
    let mut writer = client.writer(&path("hasty")).await.unwrap();
    let (first, rest) = data.split_at(10 << 20);
    writer.write(Bytes::copy_from_slice(first)).await.unwrap();
    let given_up = writer.write(Bytes::copy_from_slice(rest)).now_or_never();
    assert!(given_up.is_none(), "it waits for the parts that are under way");
    let info = writer.finish().await.unwrap();
    assert!(client.read(client.operation(), &info.version, 0..info.version.size).await.unwrap() == data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loaded_is_held_kept_and_freed() {
    let (cluster, client) = start(3).await;
    let mut versions = Vec::new();
    for ix in 0..20u64 {
        cluster.store(&format!("o{ix:02}"), &bytes(ix, 100_000));
        versions.push(client.open(&path(&format!("o{ix:02}"))).await.unwrap().version);
    }
    assert!(client.held(&versions).await.unwrap().iter().all(|held| held.bytes == 0));
    let most = AtomicU64::new(0);
    let progress = |done| _ = most.fetch_max(done, Ordering::Relaxed);
    let loaded = client.load(versions.clone(), true, progress).await.unwrap();
    assert_eq!((loaded.objects, loaded.bytes, most.into_inner()), (20, 2_000_000, 2_000_000));
    assert!(loaded.bytes_fetched >= 2_000_000, "{loaded:?}");
    let held = client.held(&versions).await.unwrap();
    assert!(held.iter().all(|held| held.bytes >= 100_000 && held.keep), "{held:?}");
    cluster.s3.reset_counters();
    assert_eq!(client.load(versions.clone(), false, |_| {}).await.unwrap().bytes_fetched, 0);
    client.keep(&versions, false).await.unwrap();
    assert!(client.held(&versions).await.unwrap().iter().all(|held| !held.keep));
    client.read(client.operation(), &versions[0], 0..100_000).await.unwrap();
    assert!(client.free(&versions).await.unwrap() >= 2_000_000);
    assert!(client.held(&versions).await.unwrap().iter().all(|held| held.bytes == 0));
    assert_eq!(cluster.s3.counters().gets, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pin_that_is_lifted_keeps_nothing_but_what_another_one_is_for() {
    let (cluster, client) = start(2).await;
    let mut versions = Vec::new();
    for key in ["p/a", "p/b", "p/other/c"] {
        cluster.store(key, &bytes(1, 100_000));
        versions.push(client.open(&path(key)).await.unwrap().version);
    }
    for pin in ["p/", "p/other/"] {
        client.control(AdminRequest::PinAdd { path: path(pin) }).await.unwrap();
    }
    client.load(versions.clone(), true, |_| {}).await.unwrap();
    let kept = async || client.held(&versions).await.unwrap().iter().map(|held| held.keep).collect::<Vec<_>>();
    assert_eq!(kept().await, [true, true, true]);
    client.unpin(&path("p/")).await.unwrap();
    assert_eq!(kept().await, [false, false, true]);
    client.unpin(&path("p/other/")).await.unwrap();
    assert_eq!(kept().await, [false, false, false]);
    assert_eq!(client.unpin(&path("p/")).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_of_what_is_pinned_are_kept_no_longer() {
    let (_cluster, client) = start(1).await;
    client.control(AdminRequest::PinAdd { path: path("p/") }).await.unwrap();
    let mut versions = Vec::new();
    for round in 0..3 {
        let info = put(&client, "p/a", bytes(round, 100_000)).await;
        client.load(vec![info.version.clone()], true, |_| {}).await.unwrap();
        versions.push(info.version);
    }
    let kept = async || client.held(&versions).await.unwrap().iter().map(|held| held.keep).collect::<Vec<_>>();
    assert_eq!(kept().await, [false, false, true]);
    client.delete(&path("p/a")).await.unwrap();
    assert_eq!(kept().await, [false, false, false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_each_segment_is_and_who_is_asked_for_it() {
    let (cluster, client) = start(2).await;
    cluster.store("large", &bytes(1, (64 << 20) + 1000));
    let version = client.open(&path("large")).await.unwrap().version;
    let places = client.segment_places(&version).await.unwrap();
    assert_eq!(places.iter().map(|place| (place.index, place.bytes)).collect::<Vec<_>>(), [(0, 64 << 20), (1, 1000)]);
    assert!(places.iter().all(|place| place.held.is_empty() && place.routed.is_empty()), "{places:?}");

    client.read(client.operation(), &version, (64 << 20)..(64 << 20) + 1000).await.unwrap();
    let places = client.segment_places(&version).await.unwrap();
    let [(holder, held)] = places[1].held.as_slice() else { panic!("{places:?}") };
    assert_eq!((Some(*holder), places[0].held.len()), (places[1].hashed, 0));
    assert!((1000..=4096).contains(&held.bytes), "in pages: {held:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_misses_an_object_says_so() {
    let (cluster, client) = start(1).await;
    cluster.store("a", &bytes(1, 1000));
    cluster.store("b", &bytes(2, 1000));
    let versions: Vec<_> = client.list_all(&path("")).await.unwrap().into_iter().map(|info| info.version).collect();
    cluster.store("a", &bytes(3, 1000));
    let error = client.load(versions.clone(), false, |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("1 of 2 objects") && error.message().contains("/lake/a"), "{error}");
    assert!(client.held(&versions[1..]).await.unwrap()[0].bytes >= 1000, "the other one is loaded");
}
