//! S3, against the server in process.

use forebay_demo::{ACCESS_KEY, S3Server, S3Settings};
use forebay_shared_storage::{AccessKey, GetRange, StorageSettings};
use forebay_types::{ErrorKind, MountOptions};

use crate::conformance::conformance;
use crate::lab::{BUCKET, Lab, get, get_version, hasty, key, open, options, patient, pattern, put};

conformance!(Lab::s3());

#[tokio::test]
async fn empty_parts_of_keys_are_what_they_are() {
    let lab = Lab::s3();
    let odd = ["a/b", "a//b", "a/b/", "/a", "//", "a///b//"];
    for text in odd {
        put(&lab.storage, text, format!("object {text}")).await;
    }
    for text in odd {
        assert_eq!(get(&lab.storage, text, GetRange::All).await.unwrap(), format!("object {text}"));
    }
    let listing = lab.storage.list(&key("a/"), true, None, 10).await.unwrap();
    assert_eq!(listing.objects.iter().map(|object| object.version.key.as_str()).collect::<Vec<_>>(), ["a/b"]);
    assert_eq!(listing.folders, [key("a//"), key("a/b/")]);
    assert_eq!(lab.storage.list(&key(""), false, None, 10).await.unwrap().objects.len(), odd.len());
}

#[tokio::test]
async fn an_unknown_object_costs_one_get() {
    let lab = Lab::s3();
    let data = pattern(100_000);
    put(&lab.storage, "x", data.clone()).await;
    lab.server().reset_counters();
    assert_eq!(get(&lab.storage, "x", GetRange::Suffix(1000)).await.unwrap(), data.slice(99_000..));
    let counters = lab.server().counters();
    assert_eq!((counters.gets, counters.requests(), counters.bytes_out), (1, 1, 1000));
}

#[tokio::test]
async fn the_server_itself_refuses_an_old_version() {
    let lab = Lab::s3();
    let old = put(&lab.storage, "x", pattern(10_000)).await.version.tag;
    put(&lab.storage, "x", pattern(10_001)).await;
    lab.server().reset_counters();
    let refused = get_version(&lab.storage, "x", GetRange::All, Some(&old)).await.unwrap_err();
    assert!(refused.message().contains("412"), "{refused}");
    assert_eq!((lab.server().counters().gets, lab.server().counters().bytes_out), (1, 0));
}

#[tokio::test]
async fn a_mount_of_a_whole_bucket_sees_all_of_it() {
    let server = S3Server::start(S3Settings { buckets: vec![BUCKET.into()], ..Default::default() }).unwrap();
    server.put(BUCKET, "top", b"x").unwrap();
    server.put(BUCKET, "deep/er", b"y").unwrap();
    let all = open("s3://lake", options(&server.endpoint()), patient());
    assert_eq!(get(&all, "deep/er", GetRange::All).await.unwrap(), "y");
    let listing = all.list(&key(""), true, None, 10).await.unwrap();
    assert_eq!((listing.objects.len(), &listing.folders[..]), (1, &[key("deep/")][..]));
}

#[tokio::test]
async fn wrong_credentials_are_denied_and_never_shown() {
    let lab = Lab::s3();
    let sign = |id: &str, secret: &str| StorageSettings {
        access_key: Some(AccessKey { id: id.into(), secret: secret.into() }),
        ..patient()
    };
    for (settings, says) in [(sign("nobody", "hush-hush"), "not known"), (sign(ACCESS_KEY, "hush-hush"), "secret key is wrong")] {
        let storage = open("s3://lake", options(&lab.server().endpoint()), settings);
        let error = storage.check().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.message().contains(says) && error.message().contains("AWS_ACCESS_KEY_ID"), "{error}");
        assert!(!format!("{error:?} {storage:?} {:?}", sign("nobody", "hush-hush")).contains("hush-hush"));
        assert_eq!(get(&storage, "x", GetRange::All).await.unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(storage.counters().retries, 0);
    }
    let unsigned = MountOptions { anonymous: true, ..options(&lab.server().endpoint()) };
    let error = open("s3://lake", unsigned, patient()).check().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Denied && error.message().contains("not signed"), "{error}");
}

#[tokio::test]
async fn an_open_bucket_needs_no_credentials() {
    let settings = S3Settings { buckets: vec![BUCKET.into()], anonymous: true, ..Default::default() };
    let server = S3Server::start(settings).unwrap();
    let unsigned = MountOptions { anonymous: true, ..options(&server.endpoint()) };
    let storage = open("s3://lake", unsigned, StorageSettings::default());
    storage.check().await.unwrap();
    put(&storage, "x", "open").await;
    assert_eq!(get(&storage, "x", GetRange::All).await.unwrap(), "open");
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_named() {
    let lab = Lab::s3();
    let storage = open("s3://nowhere/x", options(&lab.server().endpoint()), patient());
    for error in [
        storage.check().await.unwrap_err(),
        get(&storage, "x", GetRange::All).await.unwrap_err(),
        storage.delete(&key("x")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("\"nowhere\"") && error.message().contains(&lab.server().endpoint()), "{error}");
    }
}

#[tokio::test]
async fn an_endpoint_where_nothing_listens_is_named() {
    let mut lab = Lab::s3();
    let endpoint = lab.server().endpoint();
    lab.server.as_mut().unwrap().stop();
    let storage = open("s3://lake", options(&endpoint), hasty());
    let error = storage.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    assert!(error.message().contains(&endpoint) && error.message().contains("nothing listens"), "{error}");
}

#[tokio::test]
async fn what_is_no_mount_is_refused_at_once() {
    for (url, endpoint) in
        [("s3://", None), ("ftp://x", None), ("s3://lake", Some("localhost:9000")), ("s3://lake", Some("http://u:p@h"))]
    {
        let options = MountOptions { endpoint: endpoint.map(Into::into), ..Default::default() };
        let error = forebay_shared_storage::Storage::open(&crate::lab::mount(url, options), patient()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains("mount lake"), "{error}");
    }
}

#[tokio::test]
async fn a_read_only_mount_refuses_writes() {
    let lab = Lab::s3();
    let storage = open("s3://lake", MountOptions { read_only: true, ..options(&lab.server().endpoint()) }, patient());
    let put = storage.put(&key("x"), vec![], forebay_shared_storage::PutCondition::Any).await.unwrap_err();
    let upload = storage.begin_upload(&key("x")).await.unwrap_err();
    let delete = storage.delete(&key("x")).await.unwrap_err();
    for error in [put, upload, delete] {
        assert!(error.kind() == ErrorKind::Denied && error.message().contains("read-only"), "{error}");
    }
    assert_eq!(lab.server().counters().requests(), 0);
}
