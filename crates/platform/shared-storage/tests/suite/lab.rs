//! Mounts to test with.

use std::time::Duration;

use bytes::Bytes;
use forebay_demo::{ACCESS_KEY, S3Server, S3Settings, SECRET_KEY};
use forebay_shared_storage::{AccessKey, Class, Get, GetRange, Storage, StorageSettings};
use forebay_types::{Error, Key, Mount, MountId, MountOptions, ObjectInfo, VersionTag};
use tempfile::TempDir;

pub struct Lab {
    pub storage: Storage,
    pub server: Option<S3Server>,
    pub folder: Option<TempDir>,
}

pub const BUCKET: &str = "lake";

impl Lab {
    /// A mount of a prefix in a bucket of a server in process.
    pub fn s3() -> Self {
        let server = S3Server::start(S3Settings { buckets: vec![BUCKET.into()], ..Default::default() }).unwrap();
        let storage = open(&format!("s3://{BUCKET}/some prefix/%2B"), options(&server.endpoint()), patient());
        Self { storage, server: Some(server), folder: None }
    }

    /// A mount of a folder.
    pub fn files() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().display());
        Self { storage: open(&url, MountOptions::default(), patient()), server: None, folder: Some(folder) }
    }

    pub fn server(&self) -> &S3Server {
        self.server.as_ref().unwrap()
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.as_ref().unwrap().path()
    }
}

pub fn options(endpoint: &str) -> MountOptions {
    MountOptions { endpoint: Some(endpoint.into()), ..Default::default() }
}

/// Waits like a user, but not as long.
pub fn patient() -> StorageSettings {
    StorageSettings {
        request_timeout: Duration::from_secs(5),
        deadline: Duration::from_secs(20),
        access_key: Some(AccessKey { id: ACCESS_KEY.into(), secret: SECRET_KEY.into() }),
        ..Default::default()
    }
}

pub fn hasty() -> StorageSettings {
    StorageSettings { request_timeout: Duration::from_millis(300), max_retries: 1, ..patient() }
}

pub fn mount(url: &str, options: MountOptions) -> Mount {
    Mount { id: MountId(7), name: "lake".parse().unwrap(), url: url.into(), options }
}

pub fn open(url: &str, options: MountOptions, settings: StorageSettings) -> Storage {
    Storage::open(&mount(url, options), settings).unwrap()
}

pub fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Bytes that differ from place to place.
pub fn pattern(bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect::<Vec<_>>().into()
}

pub async fn put(storage: &Storage, text: &str, data: impl Into<Bytes>) -> ObjectInfo {
    storage.put(&key(text), vec![data.into()], forebay_shared_storage::PutCondition::Any).await.unwrap()
}

pub async fn get(storage: &Storage, text: &str, range: GetRange) -> Result<Bytes, Error> {
    get_version(storage, text, range, None).await
}

pub async fn get_version(storage: &Storage, text: &str, range: GetRange, if_match: Option<&VersionTag>) -> Result<Bytes, Error> {
    let key = key(text);
    let body = storage.get(Get { key: &key, range, if_match, class: Class::Demand }).await?;
    let promised = body.range.end - body.range.start;
    let bytes = body.collect().await?;
    assert_eq!(bytes.len() as u64, promised);
    Ok(bytes)
}
