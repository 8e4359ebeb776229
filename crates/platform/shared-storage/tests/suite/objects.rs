//! GCS and Azure. GCS's interface is near enough to S3's that the server in process answers what is asked here.

use std::sync::Arc;

use forebay_demo::{Fault, S3Server, S3Settings};
use forebay_runtime::deadline::Waited;
use forebay_shared_storage::{GetRange, PutCondition, Storage};
use forebay_types::{ErrorKind, MountOptions};

use crate::lab::{get, get_version, key, mount, open, options, patient, pattern, put};

fn gcs() -> (S3Server, Storage) {
    let settings = S3Settings { buckets: vec!["lake".into()], anonymous: true, ..Default::default() };
    let server = S3Server::start(settings).unwrap();
    let options = MountOptions { anonymous: true, ..options(&server.endpoint()) };
    let storage = open("gs://lake/pre fix", options, patient());
    (server, storage)
}

#[tokio::test]
async fn objects_are_read_with_one_request() {
    let (server, storage) = gcs();
    storage.check().await.unwrap();
    let data = pattern(300_000);
    let written = put(&storage, "a/b+c %", data.clone()).await;
    server.reset_counters();
    assert_eq!(get(&storage, "a/b+c %", GetRange::Suffix(1000)).await.unwrap(), data.slice(299_000..));
    assert_eq!((server.counters().requests(), server.counters().bytes_out), (1, 1000));
    let tag = &written.version.tag;
    assert_eq!(get_version(&storage, "a/b+c %", GetRange::From(5), Some(tag)).await.unwrap(), data.slice(5..));
    assert_eq!(storage.head(&key("a/b+c %")).await.unwrap().version, written.version);
    let counters = storage.counters();
    assert_eq!((counters.gets, counters.heads, counters.puts, counters.bytes_out), (2, 1, 1, 300_000));
    assert!(counters.socket_bytes_in > counters.bytes_in && counters.bytes_in == 300_000 - 5 + 1000);
}

#[tokio::test]
async fn broken_bodies_and_old_versions_are_told_apart() {
    let (server, storage) = gcs();
    let data = pattern(1_000_000);
    let old = put(&storage, "x", data.clone()).await.version.tag;
    server.inject(Fault::CutAfter(400_000), 1);
    assert!(get(&storage, "x", GetRange::All).await.unwrap() == data);
    put(&storage, "x", "new").await;
    let error = get_version(&storage, "x", GetRange::All, Some(&old)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(get(&storage, "y", GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    storage.delete(&key("x")).await.unwrap();
    storage.delete(&key("x")).await.unwrap();
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_tried_again() {
    let (server, storage) = gcs();
    server.inject(Fault::Status(503), 2);
    let object = key("x");
    let write = || storage.put(&object, vec!["x".into()], PutCondition::Any);
    let error = Waited::by(Arc::default()).scope(write()).await.unwrap_err();
    assert_eq!((error.kind(), storage.counters().puts), (ErrorKind::Retry, 1), "{error}");
    write().await.unwrap();
    assert_eq!(storage.counters().puts, 3, "whoever waits has it tried again");
}

#[tokio::test]
async fn ranges_past_the_end_and_empty_objects_are_told_apart() {
    let (_server, storage) = gcs();
    put(&storage, "empty", "").await;
    put(&storage, "x", "12345").await;
    assert_eq!(get(&storage, "empty", GetRange::Bounded(0..10)).await.unwrap(), "");
    assert_eq!(get(&storage, "x", GetRange::Bounded(3..10)).await.unwrap(), "45");
    assert_eq!(get(&storage, "x", GetRange::Bounded(5..10)).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn listings_come_in_pages_and_folders() {
    let (_server, storage) = gcs();
    for text in ["a/1", "a/2", "b", "c/d/e"] {
        put(&storage, text, "x").await;
    }
    let first = storage.list(&key(""), false, None, 2).await.unwrap();
    assert_eq!(first.next, Some(key("a/2")));
    let rest = storage.list(&key(""), false, first.next.as_ref(), 10).await.unwrap();
    let shown: Vec<_> = rest.objects.iter().map(|object| object.version.key.as_str()).collect();
    assert_eq!((shown, rest.next), (vec!["b", "c/d/e"], None));
    let top = storage.list(&key(""), true, None, 10).await.unwrap();
    assert_eq!((top.objects.len(), &top.folders[..]), (1, &[key("a/"), key("c/")][..]));
}

#[tokio::test]
async fn keys_that_would_be_changed_are_refused() {
    let (server, storage) = gcs();
    for odd in ["a//b", "a/", "/a"] {
        let error = storage.put(&key(odd), vec![], PutCondition::Any).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("Google Cloud Storage"), "{odd}: {error}");
    }
    assert_eq!(server.counters().requests(), 0);
}

#[tokio::test]
async fn azure_says_what_it_needs() {
    let error = Storage::open(&mount("az://box/x", MountOptions::default()), patient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("mount lake") && error.message().contains("AZURE_STORAGE_ACCOUNT_NAME"), "{error}");
}
