//! The client as an `object_store::ObjectStore`, live and as a snapshot.

use std::sync::Arc;

use forebay_testbed::until_asked;
use forebay_types::ErrorKind;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use crate::cluster::{bytes, path, start};

fn at(text: &str) -> Path {
    Path::parse(text).unwrap()
}

async fn names(store: &dyn ObjectStore, prefix: Option<&str>) -> Vec<String> {
    let prefix = prefix.map(at);
    store.list(prefix.as_ref()).map_ok(|meta| meta.location.to_string()).try_collect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gets_ranges_and_conditions() {
    let (_cluster, client) = start(1).await;
    let store = client.object_store();
    let data = bytes(1, 100_000);
    let put = store.put(&at("lake/dir/x y%.bin"), PutPayload::from(data.clone())).await.unwrap();
    let x = at("lake/dir/x y%.bin");
    let meta = store.head(&x).await.unwrap();
    assert_eq!((meta.size, &meta.e_tag, &meta.location), (100_000, &put.e_tag, &x));
    let whole = store.get(&x).await.unwrap();
    assert_eq!((whole.range.clone(), &whole.meta), (0..100_000, &meta));
    assert!(whole.bytes().await.unwrap() == data);
    for (range, expected) in [
        (GetRange::Bounded(10..20), 10..20),
        (GetRange::Bounded(99_990..200_000), 99_990..100_000),
        (GetRange::Offset(99_000), 99_000..100_000),
        (GetRange::Suffix(10), 99_990..100_000),
    ] {
        let options = GetOptions { range: Some(range), ..Default::default() };
        let got = store.get_opts(&x, options).await.unwrap();
        assert_eq!(got.range, expected);
        assert!(got.bytes().await.unwrap() == data[expected.start as usize..expected.end as usize]);
    }
    for range in [GetRange::Bounded(100_000..100_001), GetRange::Offset(100_001), GetRange::Bounded(5..5)] {
        let options = GetOptions { range: Some(range), ..Default::default() };
        assert!(store.get_opts(&x, options).await.is_err());
    }
    let ranges = [0..10, 50_000..60_000, 5..6, 99_999..100_000];
    let parts = store.get_ranges(&x, &ranges).await.unwrap();
    for (part, range) in parts.iter().zip(&ranges) {
        assert!(part == &data[range.start as usize..range.end as usize]);
    }
    let tag = put.e_tag.unwrap();
    for (if_match, if_none_match, fits) in
        [(Some(tag.clone()), None, true), (Some("\"no\"".into()), None, false), (None, Some("\"no\"".into()), true)]
    {
        let options = GetOptions { if_match, if_none_match, ..Default::default() };
        let got = store.get_opts(&x, options).await;
        assert_eq!(got.is_ok(), fits);
        assert!(fits || matches!(got, Err(Error::Precondition { .. })));
    }
    let options = GetOptions { if_none_match: Some(tag), ..Default::default() };
    assert!(matches!(store.get_opts(&x, options).await, Err(Error::NotModified { .. })));
    for missing in ["lake/none", "nolake/none", "NO/x", "lake"] {
        let error = store.get(&at(missing)).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. } | Error::Generic { .. }), "{missing}: {error}");
    }
    assert!(matches!(store.get(&at("lake/none")).await, Err(Error::NotFound { .. })));
    assert!(matches!(store.get(&at("nolake/x")).await, Err(Error::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_delimiters_and_offsets() {
    let (cluster, client) = start(1).await;
    let store = client.object_store();
    for key in ["a", "d/1", "d/2", "d/e/3", "d2/4", "odd//key", "dir/", "z"] {
        cluster.store(key, key.as_bytes());
    }
    let all = ["lake/a", "lake/d/1", "lake/d/2", "lake/d/e/3", "lake/d2/4", "lake/z"];
    assert_eq!(names(&store, Some("lake")).await, all);
    assert_eq!(names(&store, None).await, all);
    assert_eq!(names(&store, Some("lake/d")).await, ["lake/d/1", "lake/d/2", "lake/d/e/3"]);
    assert!(names(&store, Some("lake/nothing")).await.is_empty());
    let after = |prefix: Option<Path>, offset: &str| {
        let listed = store.list_with_offset(prefix.as_ref(), &at(offset));
        async move { listed.map_ok(|meta| meta.location.to_string()).try_collect::<Vec<_>>().await.unwrap() }
    };
    assert_eq!(after(Some(at("lake/d")), "lake/d/1").await, ["lake/d/2", "lake/d/e/3"]);
    assert_eq!(after(None, "lake/d2/4").await, ["lake/z"]);
    assert_eq!(after(None, "kake/x").await, all);
    assert!(after(None, "make").await.is_empty());
    let listed = store.list_with_delimiter(Some(&at("lake/d"))).await.unwrap();
    assert_eq!(listed.common_prefixes, [at("lake/d/e")]);
    assert_eq!(listed.objects.iter().map(|meta| meta.location.as_ref()).collect::<Vec<_>>(), ["lake/d/1", "lake/d/2"]);
    let root = store.list_with_delimiter(None).await.unwrap();
    assert_eq!((root.common_prefixes, root.objects.len()), (vec![at("lake")], 0));
    let lake = store.list_with_delimiter(Some(&at("lake"))).await.unwrap();
    assert!(lake.common_prefixes.contains(&at("lake/d")) && lake.common_prefixes.contains(&at("lake/odd")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_copies_parts_and_deletes() {
    let (_cluster, client) = start(1).await;
    let store = client.object_store();
    let mode = |mode: PutMode| PutOptions { mode, ..Default::default() };
    let x = at("lake/x");
    let first = store.put_opts(&x, "one".into(), mode(PutMode::Create)).await.unwrap();
    assert!(matches!(store.put_opts(&x, "two".into(), mode(PutMode::Create)).await, Err(Error::AlreadyExists { .. })));
    let update = PutMode::Update(UpdateVersion { e_tag: first.e_tag, version: None });
    store.put_opts(&x, "two".into(), mode(update.clone())).await.unwrap();
    assert!(matches!(store.put_opts(&x, "three".into(), mode(update)).await, Err(Error::Precondition { .. })));
    let (y, z) = (at("lake/y"), at("lake/sub/z"));
    store.copy(&x, &y).await.unwrap();
    assert_eq!(store.get(&y).await.unwrap().bytes().await.unwrap(), "two");
    let create = CopyOptions { mode: CopyMode::Create, ..Default::default() };
    assert!(matches!(store.copy_opts(&x, &y, create).await, Err(Error::AlreadyExists { .. })));
    store.rename(&y, &z).await.unwrap();
    assert_eq!(names(&store, None).await, ["lake/sub/z", "lake/x"]);
    for len in [0, 5, 12_000_001] {
        let data = bytes(7, len);
        let mut upload = store.put_multipart(&at("lake/parts")).await.unwrap();
        let parts: Vec<_> = data.chunks(1_000_003).map(|part| upload.put_part(PutPayload::from(part.to_vec()))).collect();
        futures::future::try_join_all(parts).await.unwrap();
        upload.complete().await.unwrap();
        assert!(store.get(&at("lake/parts")).await.unwrap().bytes().await.unwrap() == data, "{len}");
    }
    let mut upload = store.put_multipart(&at("lake/aborted")).await.unwrap();
    upload.put_part(PutPayload::from(bytes(8, 9_000_000))).await.unwrap();
    upload.abort().await.unwrap();
    assert!(matches!(store.head(&at("lake/aborted")).await, Err(Error::NotFound { .. })));
    let doomed = futures::stream::iter([Ok(at("lake/parts")), Ok(x.clone()), Ok(z)]).boxed();
    let deleted: Vec<_> = store.delete_stream(doomed).try_collect().await.unwrap();
    assert_eq!(deleted.len(), 3);
    assert!(names(&store, None).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_object_is_one_get_through_the_store() {
    let (cluster, client) = start(1).await;
    let data = bytes(2, 70_000);
    for (ix, store) in [client.object_store(), Arc::new(client.snapshot([])) as Arc<dyn ObjectStore>].into_iter().enumerate() {
        let key = format!("x{ix}");
        cluster.store(&key, &data);
        cluster.s3.reset_counters();
        let got = store.get_ranges(&at(&format!("lake/{key}")), &[0..100, 200..300]).await.unwrap();
        assert!(got[0] == data[..100] && got[1] == data[200..300]);
        let counters = cluster.s3.counters();
        assert_eq!((counters.gets, counters.heads, counters.lists), (1, 0, 0), "both are in one page");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_never_mixes_versions() {
    let (cluster, client) = start(3).await;
    let (old, new) = (bytes(1, 300_000), bytes(2, 300_000));
    for key in ["a", "b", "c"] {
        cluster.store(key, &old);
    }
    let opened = client.open(&path("a")).await.unwrap();
    let snapshot = client.snapshot([opened.clone()]);
    // b by its listing, c by its first read of one page.
    assert_eq!(names(&snapshot, Some("lake")).await, ["lake/a", "lake/b", "lake/c"]);
    let late = client.snapshot([]);
    assert!(late.get_range(&at("lake/c"), 0..100).await.unwrap() == old[..100]);
    assert_eq!((snapshot.pinned().len(), late.pinned().len()), (3, 1));
    assert_eq!(snapshot.pinned_at(&at("lake/a")), Some(opened));
    for key in ["a", "b", "c"] {
        cluster.store(key, &new);
    }
    for (store, location) in [(&snapshot, "lake/a"), (&snapshot, "lake/b"), (&late, "lake/c")] {
        // Nothing but what was read is held of the old version.
        let error = store.get_range(&at(location), 200_000..300_000).await.unwrap_err();
        assert!(matches!(error, Error::Precondition { .. }), "{location}: {error}");
        let original = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<forebay_types::Error>());
        assert_eq!(original.map(forebay_types::Error::kind), Some(ErrorKind::Conflict));
        assert_eq!(store.head(&at(location)).await.unwrap().size, 300_000);
    }
    let again = client.snapshot([]);
    for location in ["lake/a", "lake/b", "lake/c"] {
        assert!(again.get(&at(location)).await.unwrap().bytes().await.unwrap() == new);
    }
    // What is written through a snapshot is seen by it.
    again.put(&at("lake/a"), "mine".into()).await.unwrap();
    assert_eq!(again.get(&at("lake/a")).await.unwrap().bytes().await.unwrap(), "mine");
    again.delete(&at("lake/a")).await.unwrap();
    assert!(matches!(again.head(&at("lake/a")).await, Err(Error::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_data_is_objects_that_are_read_at_one_version() {
    let (_cluster, client) = start(2).await;
    let store = client.object_store();
    let mode = |mode: PutMode| PutOptions { mode, ..Default::default() };
    for (key, len) in [("none", 0), ("small", 10), ("value", 3_000_000), ("file", (32 << 20) + 5)] {
        let (x, old, new) = (at(&format!("tmp/dir/{key}")), bytes(1, len), bytes(2, len + 1));
        let put = store.put(&x, PutPayload::from(old.clone())).await.unwrap();
        let meta = store.head(&x).await.unwrap();
        assert_eq!((meta.size, &meta.e_tag), (len as u64, &put.e_tag), "{key}");
        assert!(store.get(&x).await.unwrap().bytes().await.unwrap() == old, "{key}");
        let snapshot = client.snapshot([]);
        assert!(names(&snapshot, Some("tmp/dir")).await.contains(&x.to_string()), "{key}");
        // Nothing of it is brought or decoded; executors are told its version.
        assert!(snapshot.pinned_at(&x).is_none() && snapshot.pinned_meta().iter().any(|pin| pin.e_tag == meta.e_tag), "{key}");
        let pins = snapshot.pinned();
        let elsewhere = client.snapshot(pins.clone());
        let part = len as u64 / 3..len as u64 / 2;
        let read = elsewhere.get_ranges(&x, std::slice::from_ref(&part)).await.unwrap();
        assert!(read[0] == old[part.start as usize..part.end as usize], "{key}");

        assert!(matches!(store.put_opts(&x, "y".into(), mode(PutMode::Create)).await, Err(Error::AlreadyExists { .. })));
        let update = PutMode::Update(UpdateVersion { e_tag: put.e_tag, version: None });
        store.put_opts(&x, PutPayload::from(new.clone()), mode(update.clone())).await.unwrap();
        assert!(matches!(store.put_opts(&x, "y".into(), mode(update)).await, Err(Error::Precondition { .. })), "{key}");
        let late = client.snapshot(pins);
        if len > 0 {
            let read = late.get_range(&x, 0..len as u64).await;
            assert!(matches!(read, Err(Error::Precondition { .. })), "{key}: it was pinned and is another one");
        }
        assert_eq!(late.head(&x).await.unwrap().size, len as u64);
        assert!(client.snapshot([]).get(&x).await.unwrap().bytes().await.unwrap() == new, "{key}");
        assert_ne!(store.head(&x).await.unwrap().e_tag, meta.e_tag, "{key}");
    }
    let listed = store.list_with_delimiter(Some(&at("tmp"))).await.unwrap();
    assert_eq!((listed.common_prefixes, listed.objects.len()), (vec![at("tmp/dir")], 0));
    store.put(&at("tmp/shuffle/x"), "passes between stages".into()).await.unwrap();
    for behind in ["tmp/dir/value", "tmp/shuffle", "tmp/shuffle/a"] {
        let listed = store.list_with_offset(Some(&at("tmp")), &at(behind)).try_collect::<Vec<_>>().await.unwrap();
        assert!(listed.is_empty(), "{behind}: {listed:?}");
    }
    let listed = store.list_with_offset(Some(&at("tmp/dir")), &at("tmp/dir/file"));
    let behind = listed.map_ok(|meta| meta.location.to_string()).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(behind, ["tmp/dir/none", "tmp/dir/small", "tmp/dir/value"]);
    assert!(names(&store, Some("tmp/nothing")).await.is_empty() && names(&store, None).await.is_empty());
    for missing in ["tmp/dir", "tmp/none", "tmp/dir/small/x", "tmp"] {
        assert!(matches!(store.get(&at(missing)).await, Err(Error::NotFound { .. } | Error::Generic { .. })), "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_data_is_written_in_parts_copied_and_deleted() {
    let (_cluster, client) = start(1).await;
    let (store, nodes) = (client.object_store(), client.nodes());
    let (x, data) = (at("tmp/dir/x"), bytes(3, 5_000_000));
    let mut upload = store.put_multipart(&x).await.unwrap();
    let parts: Vec<_> = data.chunks(1_700_000).map(|part| upload.put_part(PutPayload::from(part.to_vec()))).collect();
    // Whichever is waited for first.
    for part in parts.into_iter().rev() {
        part.await.unwrap();
    }
    assert!(matches!(store.head(&x).await, Err(Error::NotFound { .. })), "it is not there before it is whole");
    upload.complete().await.unwrap();
    assert!(store.get(&x).await.unwrap().bytes().await.unwrap() == data);
    let used = async || nodes.usage("/tmp/dir").await.unwrap().bytes;
    let before = used().await;
    assert_eq!(before, data.len() as u64);
    let mut given_up = store.put_multipart(&x).await.unwrap();
    given_up.put_part(PutPayload::from(data.clone())).await.unwrap();
    assert_eq!(used().await - before, 4 << 20, "a part's whole blocks wait for no other part");
    given_up.abort().await.unwrap();
    assert_eq!(used().await, before, "nothing stays of what was given up");
    assert!(given_up.complete().await.is_err());
    let mut dropped = store.put_multipart(&x).await.unwrap();
    dropped.put_part(PutPayload::from(data.clone())).await.unwrap();
    drop(dropped);
    until_asked("what was dropped is removed", async || used().await == before).await;

    store.copy(&x, &at("lake/x")).await.unwrap();
    store.copy(&at("lake/x"), &at("tmp/other/y")).await.unwrap();
    store.rename(&at("tmp/other/y"), &at("tmp/other/z")).await.unwrap();
    assert!(store.get(&at("tmp/other/z")).await.unwrap().bytes().await.unwrap() == data);
    let create = CopyOptions { mode: CopyMode::Create, ..Default::default() };
    assert!(matches!(store.copy_opts(&at("lake/x"), &x, create).await, Err(Error::AlreadyExists { .. })));
    store.delete(&x).await.unwrap();
    assert_eq!(names(&store, Some("tmp")).await, ["tmp/other/z"]);
    // A container of its name is no object of it.
    nodes.put("/tmp/dir/kept", "v").await.unwrap();
    store.delete(&at("tmp/dir")).await.unwrap();
    assert_eq!(names(&store, Some("tmp/dir")).await, ["tmp/dir/kept"]);
}
