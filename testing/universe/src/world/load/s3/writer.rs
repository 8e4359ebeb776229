//! Who writes objects through the gateway, in all of the ways that S3 has, by the client's API between that, and deletes them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_client::Client;
use forebay_oracle::history::{Door, Failure, What};
use forebay_oracle::load::{answered, objects, pause, within};
use forebay_oracle::{Rule, contents};
use http::Method;
use rand::Rng;
use rand::rngs::StdRng;

use super::asking::Ask;
use super::reads::{ALL_BYTES, Way, name, quoted};
use crate::world::load::{MOUNTS, WRITE_PAUSE, met, mount_of, path, write};

/// Between two pieces of a body that its program makes slowly.
const PIECE_PAUSE: Duration = Duration::from_millis(120);
/// A write that was not answered may come for so long.
const DOUBT_US: u64 = 60_000_000;

/// How a version is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Plain,
    /// In the place of the version that is known.
    Matching,
    /// If there is none.
    Absent,
    /// In parts.
    Upload,
    /// By the client's API.
    Native,
}

/// The only one who writes an object.
pub(super) struct Writer {
    way: Way,
    client: Client,
    key: u32,
    version: u32,
    copies: u32,
    /// The ETag of what was written last; none where it was deleted.
    there: Option<String>,
    /// That was answered, and nothing that was not answered may come after it.
    is_certain: bool,
    doubt_until_us: u64,
}

impl Writer {
    pub(super) fn new(way: Way, client: Client, key: u32) -> Self {
        // The first version is there.
        Self { way, client, key, version: 1, copies: 0, there: None, is_certain: false, doubt_until_us: 0 }
    }

    /// Writes until the load ends. Whoever begins at another step is at another one all the time.
    pub(super) async fn run(mut self, first: usize, mut chance: StdRng) {
        let course = Arc::clone(&self.way.course);
        for step in 2 * first.. {
            pause(&mut chance, course.paced(WRITE_PAUSE)).await;
            if !course.calls.goes_on() {
                return;
            }
            match step % 9 {
                0 => self.write(How::Plain).await,
                1 => self.list().await,
                2 => self.write(How::Matching).await,
                3 => self.copy().await,
                4 => self.write(How::Upload).await,
                6 => self.delete(chance.random_ratio(1, 3)).await,
                5 | 7 => self.write(How::Absent).await,
                _ => self.write(How::Native).await,
            }
        }
    }

    async fn write(&mut self, how: How) {
        self.version += 1;
        let (key, version, course) = (self.key, self.version, Arc::clone(&self.way.course));
        let begin_us = course.calls.recorder.now_us();
        let (door, written) = match how {
            How::Native => {
                let (at, body) = (path(key), contents::bytes(key, version));
                (Door::Remote, answered(objects::put(&self.client, &at, body)).await)
            }
            _ => (Door::Gateway, within(self.put(how, contents::bytes(key, version))).await),
        };
        let write = What::Write { key, version, etag: written.as_ref().ok().cloned() };
        course.calls.recorder.add(begin_us, door, write, written.as_ref().err().cloned());
        let is_there = self.there.is_some();
        let is_wrong = match &written {
            Ok(_) => how == How::Absent && is_there,
            Err(failure) => failure.kind == "conflict" && (how == How::Matching || (how == How::Absent && !is_there)),
        };
        if self.is_certain && is_wrong {
            let what =
                format!("object {key} at {begin_us} us: {written:?} of a write on a condition, where {:?} is there", self.there);
            course.wrong(Rule::Linearizable, what);
        }
        self.learn(begin_us, written.as_ref().map(|etag| Some(etag.clone())));
    }

    /// Writes through the gateway; the ETag.
    async fn put(&self, how: How, body: Bytes) -> Result<String, Failure> {
        if how == How::Upload {
            let asked = &self.way.course.asked;
            let etag = self.way.bucket(self.key).upload(asked, &name(self.key), body).await?;
            asked.note_served("upload");
            return Ok(etag);
        }
        let ask = Ask::new(Method::PUT, &name(self.key)).body(body);
        let said = match (how, &self.there) {
            (How::Absent, _) => self.way.ask(self.key, "put_if_none_match", ask.header("if-none-match", "*")).await?,
            (How::Matching, Some(etag)) => self.way.ask(self.key, "put_if_match", ask.header("if-match", &quoted(etag))).await?,
            _ => self.way.ask(self.key, "put", ask.slowly(PIECE_PAUSE)).await?,
        };
        Ok(said.etag())
    }

    async fn delete(&mut self, is_native: bool) {
        self.version += 1;
        let (key, version, course) = (self.key, self.version, Arc::clone(&self.way.course));
        let begin_us = course.calls.recorder.now_us();
        let (door, deleted) = match is_native {
            true => (Door::Remote, answered(self.client.delete(&path(key))).await),
            false => {
                let ask = Ask::new(Method::DELETE, &name(key));
                (Door::Gateway, self.way.ask(key, "delete", ask).await.map(drop))
            }
        };
        let delete = What::Delete { key, version };
        course.calls.recorder.add(begin_us, door, delete, deleted.as_ref().err().cloned());
        self.learn(begin_us, deleted.as_ref().map(|()| None));
    }

    /// What was written last is listed, with its ETag. On a mount whose listings may be remembered nothing is expected of them.
    async fn list(&self) {
        let prefix = name(self.key);
        let ask = Ask::of_bucket(Method::GET).query("list-type", "2").query("prefix", &prefix);
        let Ok(said) = self.way.ask(self.key, "list", ask).await else { return };
        let listed: Vec<_> =
            said.fields("Key").into_iter().zip(said.fields("ETag").iter().map(|tag| objects::tag(tag))).collect();
        let expected: Vec<_> = self.there.iter().map(|etag| (prefix.clone(), etag.clone())).collect();
        if self.is_certain && mount_of(self.key) == MOUNTS[0] && listed != expected {
            self.way.course.wrong(Rule::NotStale, format!("{listed:?} is listed, and {expected:?} is there"));
        }
    }

    /// A copy is a read of what is copied, at some time while it is made.
    async fn copy(&mut self) {
        self.copies += 1;
        let (key, course) = (self.key, Arc::clone(&self.way.course));
        let to = format!("copies/{key}-{}", self.copies);
        let source = format!("/{}/{}", mount_of(key), name(key));
        let begin_us = course.calls.recorder.now_us();
        let copy = Ask::new(Method::PUT, &to).header("x-amz-copy-source", &source);
        let copied = self.way.ask(key, "copy", copy).await.and_then(|said| said.field("ETag"));
        let whole = (key, 0, ALL_BYTES);
        match copied {
            Err(failure) => course.calls.recorder.add_read(begin_us, Door::Gateway, whole, Err(failure)),
            Ok(_) => match self.way.ask(key, "get", Ask::new(Method::GET, &to)).await {
                Ok(said) => {
                    let read = (said.body.clone(), said.etag());
                    course.calls.recorder.add_read(begin_us, Door::Gateway, whole, Ok(read));
                }
                Err(failure) if failure.kind == "not found" => {
                    course.wrong(Rule::NotLost, format!("{to} was made of object {key} at {begin_us} us: {}", failure.message));
                }
                Err(failure) => tracing::debug!(%to, ?failure, "a copy was not read"),
            },
        }
        // Nobody asks for it again.
        let _ = self.way.ask(key, "delete", Ask::new(Method::DELETE, &to)).await;
    }

    fn learn(&mut self, begin_us: u64, told: Result<Option<String>, &Failure>) {
        match told {
            Ok(there) => {
                self.there = there;
                self.is_certain = begin_us >= self.doubt_until_us;
            }
            Err(failure) if failure.no_effect => {}
            Err(_) => {
                self.is_certain = false;
                self.doubt_until_us = self.way.course.calls.recorder.now_us() + DOUBT_US;
            }
        }
    }
}

/// Writes an object that others write at the same time, through the gateway as often as not.
pub(super) async fn meets(way: Way, client: Client, key: u32, number: usize, mut chance: StdRng) {
    let course = Arc::clone(&way.course);
    while course.calls.goes_on() {
        let version = met(&course, number, &mut chance).await;
        if chance.random() {
            write(&client, &course.calls, key, version).await;
            continue;
        }
        let begin_us = course.calls.recorder.now_us();
        let ask = Ask::new(Method::PUT, &name(key)).body(contents::bytes(key, version));
        let written = way.ask(key, "put", ask).await.map(|said| said.etag());
        let what = What::Write { key, version, etag: written.as_ref().ok().cloned() };
        course.calls.recorder.add(begin_us, Door::Gateway, what, written.err());
    }
}
