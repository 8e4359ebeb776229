//! Who reads objects through the gateway: all of them, ranges, and what has changed since.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_client::Client;
use forebay_oracle::contents::RANGE_BYTES_MIN;
use forebay_oracle::history::{Door, Failure};
use forebay_oracle::load::pause;
use http::{Method, StatusCode};
use rand::Rng;
use rand::rngs::StdRng;

use super::KEYS;
use super::asking::{Ask, Bucket, Said};
use crate::world::course::Course;
use crate::world::gateway::WRITER;
use crate::world::load::{ALL, BYTES_MAX, MOUNTS, PAST_ONE_IN, Past, READ_PAUSE, START_MAX, STILL, read, read_store};

/// What is asked for where all of an object is.
pub(super) const ALL_BYTES: u64 = u32::MAX as u64;

/// An object as it was read: its bytes, and its ETag.
type Read = (Bytes, String);

/// The way of a client to the mounts by the gateway.
#[derive(Clone)]
pub(super) struct Way {
    buckets: [Bucket; MOUNTS.len()],
    pub(super) course: Arc<Course>,
}

impl Way {
    pub(super) fn new(course: &Arc<Course>) -> Self {
        Self { buckets: MOUNTS.map(|name| Bucket::open(name, WRITER)), course: Arc::clone(course) }
    }

    /// The bucket of an object.
    pub(super) fn bucket(&self, key: u32) -> &Bucket {
        &self.buckets[key as usize % MOUNTS.len()]
    }

    /// A bucket by its name.
    pub(super) fn named(&self, name: &str) -> &Bucket {
        self.buckets.iter().find(|bucket| bucket.name == name).expect("a bucket of a mount")
    }

    /// Asks the bucket of an object for something, which counts as served if it was.
    pub(super) async fn ask(&self, key: u32, kind: &'static str, ask: Ask) -> Result<Said, Failure> {
        let said = self.bucket(key).ask(ask).await?;
        self.course.asked.note_served(kind);
        Ok(said)
    }

    /// Reads all of an object, or so many bytes from a place on.
    pub(super) async fn read(&self, key: u32, part: Option<(u64, u64)>) {
        let begin_us = self.course.calls.recorder.now_us();
        let ask = Ask::new(Method::GET, &name(key));
        let said = match part {
            None => self.ask(key, "get", ask).await,
            Some((start, bytes)) => {
                let range = format!("bytes={start}-{}", start + bytes - 1);
                self.ask(key, "get_range", ask.header("range", &range)).await
            }
        };
        let (start, bytes) = part.unwrap_or((0, ALL_BYTES));
        let read = said.map(|said| (said.body.clone(), said.etag()));
        self.course.calls.recorder.add_read(begin_us, Door::Gateway, (key, start, bytes), read);
    }

    /// Reads an object if it is another one than it was. What is still the same one is what was read before.
    async fn read_again(&self, key: u32, known: &mut BTreeMap<u32, Read>) {
        let before = known.get(&key).cloned();
        let begin_us = self.course.calls.recorder.now_us();
        let ask = Ask::new(Method::GET, &name(key));
        let said = match &before {
            Some((_, etag)) => self.ask(key, "get_if_none_match", ask.header("if-none-match", &quoted(etag))).await,
            None => self.ask(key, "get", ask).await,
        };
        let read = said.and_then(|said| match (said.status, before) {
            (StatusCode::NOT_MODIFIED, Some(before)) => {
                self.course.asked.note_served("not_modified");
                Ok(before)
            }
            // Nothing was said to be known.
            (StatusCode::NOT_MODIFIED, None) => {
                let (kind, message) = ("304".to_owned(), "not modified since nothing".to_owned());
                Err(Failure { kind, message, no_effect: true })
            }
            _ => Ok((said.body.clone(), said.etag())),
        });
        if let Ok(read) = &read {
            known.insert(key, read.clone());
        }
        self.course.calls.recorder.add_read(begin_us, Door::Gateway, (key, 0, ALL_BYTES), read);
    }
}

/// Reads through the gateway, and by the client's API what is written through it, until the load ends.
pub(super) async fn reads(way: Way, client: Client, past: Past, mut chance: StdRng) {
    let (course, mut known) = (Arc::clone(&way.course), BTreeMap::new());
    while course.calls.goes_on() {
        let key = chance.random_range(ALL.start..KEYS.end);
        if chance.random_ratio(1, PAST_ONE_IN) {
            read_store(&past, &course.calls, key).await;
        }
        let part = (chance.random_range(0..START_MAX), chance.random_range(RANGE_BYTES_MIN..BYTES_MAX));
        match chance.random_range(0..8) {
            0 | 1 => {
                let key = chance.random_range(KEYS);
                read(&client, &course.calls, key, part.0, part.1, None).await;
            }
            2 => way.read_again(chance.random_range(STILL), &mut known).await,
            3 | 4 => way.read_again(key, &mut known).await,
            5 => way.read(key, None).await,
            _ => way.read(key, Some(part)).await,
        }
        pause(&mut chance, course.paced(READ_PAUSE)).await;
    }
}

/// The key of an object in its bucket.
pub(super) fn name(key: u32) -> String {
    format!("objects/{key}")
}

/// An ETag as headers have it.
pub(super) fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}
