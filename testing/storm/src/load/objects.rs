//! Objects: one writer a key, readers by all doors.

use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_types::ForebayPath;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload};
use rand::Rng;
use rand::rngs::StdRng;

use forebay_oracle::contents::{self, RANGE_BYTES_MIN};
use forebay_oracle::history::{Door, Failure, What};
use forebay_oracle::load::objects::{self, tag};
use forebay_oracle::load::{Shared, answered, pause, within};

use super::doors::of_s3;
use crate::cluster::{AGING, FRESH};

/// Keys of a load: in turn of the mount that is asked each time, of the other one, and of the other one while they are written
/// past Forebay.
pub(super) const KEYS: u32 = 9;
/// Where ranges begin at the latest: every version is longer.
const START_MAX: u64 = 30_000;
const BYTES_MAX: u64 = 100_000;
const WRITE_PAUSE: Duration = Duration::from_millis(250);
const READ_PAUSE: Duration = Duration::from_millis(25);

/// Whose rule a key is under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Each open asks the store.
    Fresh,
    /// What is known is taken for current for a while; writes through Forebay are seen at once.
    Aging,
    /// The same, and written past Forebay: seen when that while is over.
    AgingOutside,
}

/// The family of a key.
pub fn family(key: u32) -> Family {
    match key % 3 {
        0 => Family::Fresh,
        1 => Family::Aging,
        _ => Family::AgingOutside,
    }
}

fn mount(key: u32) -> &'static str {
    if family(key) == Family::Fresh { FRESH } else { AGING }
}

/// Who reads by one door.
#[derive(Clone)]
pub(super) enum Reader {
    Gateway { fresh: Arc<AmazonS3>, aging: Arc<AmazonS3> },
    Client { client: Client, door: Door },
    Store(Arc<AmazonS3>),
}

/// Where one key's versions are written.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) key: u32,
    pub(super) gateway: Arc<AmazonS3>,
    pub(super) client: Client,
    pub(super) store: Arc<AmazonS3>,
}

/// What an answer was: bytes and their ETag.
type Answer = Result<(bytes::Bytes, String), Failure>;

impl Writer {
    /// Writes version by version until the load ends. The first one is there before.
    pub(super) async fn run(self, shared: Arc<Shared>, first: u32, mut chance: StdRng) {
        let mut version = first;
        while shared.goes_on() {
            version += 1;
            self.write(&shared, version, chance.random_ratio(1, 4)).await;
            pause(&mut chance, WRITE_PAUSE).await;
        }
    }

    /// Writes one version: past Forebay where the key wants that, else through the gateway or by the client's API.
    pub(super) async fn write(&self, shared: &Shared, version: u32, by_client: bool) {
        let (key, body) = (self.key, contents::bytes(self.key, version));
        let begin_us = shared.recorder.now_us();
        let (door, written) = match family(key) {
            Family::AgingOutside => {
                let at = Path::from(format!("{}/{}", mount(key), name(key)));
                (Door::Store, within(put(&self.store, at, body)).await)
            }
            _ if by_client => (Door::Remote, answered(objects::put(&self.client, &path(key), body)).await),
            _ => (Door::Gateway, within(put(&self.gateway, Path::from(name(key)), body)).await),
        };
        shared.recorder.add(begin_us, door, What::Write { key, version, etag: written.clone().ok() }, written.err());
    }
}

impl Reader {
    /// Reads ranges of any keys until the load ends.
    pub(super) async fn run(self, shared: Arc<Shared>, mut chance: StdRng) {
        while shared.goes_on() {
            let (key, start) = (chance.random_range(0..KEYS), chance.random_range(0..START_MAX));
            let (start, bytes) = match chance.random_ratio(1, 8) {
                true => (0, u64::from(u32::MAX)),
                false => (start, chance.random_range(RANGE_BYTES_MIN..BYTES_MAX)),
            };
            let waits = chance.random_ratio(1, 4).then(|| Duration::from_millis(chance.random_range(0..50)));
            self.read(&shared, key, start, bytes, waits).await;
            pause(&mut chance, READ_PAUSE).await;
        }
    }

    /// Reads one range. With `waits` it opens a version, waits, and reads that one, as a query does.
    pub(super) async fn read(&self, shared: &Shared, key: u32, start: u64, bytes: u64, waits: Option<Duration>) {
        let begin_us = shared.recorder.now_us();
        let (door, answer) = match self {
            Self::Gateway { fresh, aging } => {
                let store = if family(key) == Family::Fresh { fresh } else { aging };
                (Door::Gateway, within(get(store, Path::from(name(key)), start, bytes)).await)
            }
            Self::Client { client, door } => (*door, answered(objects::get(client, &path(key), start, bytes, waits)).await),
            Self::Store(store) => {
                let at = Path::from(format!("{}/{}", mount(key), name(key)));
                (Door::Store, within(get(store, at, start, bytes)).await)
            }
        };
        shared.recorder.add_read(begin_us, door, (key, start, bytes), answer);
    }
}

fn name(key: u32) -> String {
    format!("objects/{key}")
}

fn path(key: u32) -> ForebayPath {
    format!("/{}/{}", mount(key), name(key)).parse().expect("a legal path")
}

async fn put(store: &AmazonS3, at: Path, body: bytes::Bytes) -> Result<String, Failure> {
    let put = store.put(&at, PutPayload::from_bytes(body)).await.map_err(|error| of_s3(&error))?;
    Ok(tag(put.e_tag.as_deref().unwrap_or_default()))
}

async fn get(store: &AmazonS3, at: Path, start: u64, bytes: u64) -> Answer {
    let range = GetRange::Bounded(start..start + bytes);
    let options = GetOptions { range: (bytes < u64::from(u32::MAX)).then_some(range), ..GetOptions::default() };
    let got = store.get_opts(&at, options).await.map_err(|error| of_s3(&error))?;
    let etag = tag(got.meta.e_tag.as_deref().unwrap_or_default());
    Ok((got.bytes().await.map_err(|error| of_s3(&error))?, etag))
}
