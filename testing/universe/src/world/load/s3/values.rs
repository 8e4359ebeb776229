//! Temporary values, of which some calls go through the gateway and others by the client's API: the oracle knows one order of all.

use std::sync::Arc;

use bytes::Bytes;
use forebay_client::{NodeErrorKind, Nodes};
use forebay_oracle::history::{Door, Failure, What};
use forebay_oracle::load::{GIVEN_UP_AFTER, given_up, of_nodes, pause, within};
use forebay_runtime::time::timeout;
use http::Method;
use rand::Rng;
use rand::rngs::StdRng;

use super::TEMPORARY;
use super::asking::{Ask, Bucket, Said};
use super::reads::quoted;
use crate::world::course::Course;
use crate::world::gateway::WRITER;
use crate::world::load::CALL_PAUSE;

/// Below this all are, which the load removes at its end.
const FOLDER: &str = "storm/gated";
/// A value is used for so long, then the next one: histories stay short enough to be searched for an order.
const WINDOW_US: u64 = 8_000_000;
/// Stands for bytes that nobody put.
const FOREIGN: u64 = u64::MAX;

/// One who uses them, and what he knows of the one of now.
struct Member {
    bucket: Bucket,
    nodes: Nodes,
    course: Arc<Course>,
    key: String,
    /// None where nothing is known; a value with its ETag, or that there is none.
    known: Option<Option<(u64, String)>>,
}

/// What was asked, with the answer, and what was told instead of one.
type Call = (What, Option<Failure>);

/// Puts, gets and replaces values until the load ends.
pub(super) async fn uses(course: Arc<Course>, nodes: Nodes, number: usize, mut chance: StdRng) {
    let bucket = Bucket::open(TEMPORARY, WRITER);
    let mut member = Member { bucket, nodes, course: Arc::clone(&course), key: String::new(), known: None };
    for count in 1_u64.. {
        pause(&mut chance, course.paced(CALL_PAUSE)).await;
        if !course.calls.goes_on() {
            return;
        }
        let begin_us = course.calls.recorder.now_us();
        let key = format!("{FOLDER}/{}", begin_us / WINDOW_US);
        if member.key != key {
            (member.key, member.known) = (key, None);
        }
        let value = (number as u64) << 32 | count;
        let (door, (what, error)) = match chance.random_range(0..9) {
            0 | 1 => (Door::Gateway, member.put(value).await),
            2 => (Door::Gateway, member.upload(value).await),
            3 | 4 => (Door::Gateway, member.swap(value).await),
            5 => (Door::Remote, member.put_natively(value).await),
            6 => (Door::Remote, member.get_natively().await),
            _ => (Door::Gateway, member.get().await),
        };
        course.calls.recorder.add(begin_us, door, what, error);
    }
}

impl Member {
    fn path(&self) -> String {
        format!("/{TEMPORARY}/{}", self.key)
    }

    /// Asks the gateway for something, which counts as served if it was.
    async fn ask(&self, kind: &'static str, ask: Ask) -> Result<Said, Failure> {
        let said = self.bucket.ask(ask).await?;
        self.course.asked.note_served(kind);
        Ok(said)
    }

    async fn put(&mut self, value: u64) -> Call {
        let put = self.ask("tmp_put", Ask::new(Method::PUT, &self.key).body(bytes_of(value))).await;
        self.known = put.as_ref().ok().map(|said| Some((value, said.etag())));
        (What::Put { path: self.path(), value }, put.err())
    }

    async fn upload(&mut self, value: u64) -> Call {
        let put = within(self.bucket.upload(&self.course.asked, &self.key, bytes_of(value))).await;
        self.known = put.as_ref().ok().map(|etag| Some((value, etag.clone())));
        if put.is_ok() {
            self.course.asked.note_served("tmp_upload");
        }
        (What::Put { path: self.path(), value }, put.err())
    }

    /// Replaces what is known, where something is; else asks what there is.
    async fn swap(&mut self, value: u64) -> Call {
        let Some(known) = self.known.take() else { return self.get().await };
        let ask = Ask::new(Method::PUT, &self.key).body(bytes_of(value));
        let ask = match &known {
            Some((_, etag)) => ask.header("if-match", &quoted(etag)),
            None => ask.header("if-none-match", "*"),
        };
        let (done, error) = match self.ask("tmp_swap", ask).await {
            Ok(said) => {
                self.known = Some(Some((value, said.etag())));
                (Some(true), None)
            }
            Err(failure) if failure.kind == "conflict" => (Some(false), None),
            // Also where it is said that there is none: it may have been the draft that was lost.
            Err(failure) => (None, Some(failure)),
        };
        (What::Swap { path: self.path(), expected: known.map(|(value, _)| value), value, done }, error)
    }

    async fn get(&mut self) -> Call {
        let (there, error) = match self.ask("tmp_get", Ask::new(Method::GET, &self.key)).await {
            Ok(said) => (Some(Some((value_in(&said.body), said.etag()))), None),
            Err(failure) if failure.kind == "not found" => (Some(None), None),
            Err(failure) => (None, Some(failure)),
        };
        let value = there.as_ref().and_then(|there| there.as_ref().map(|(value, _)| *value));
        self.known = there;
        (What::Get { path: self.path(), value }, error)
    }

    async fn put_natively(&self, value: u64) -> Call {
        let put = timeout(GIVEN_UP_AFTER, self.nodes.put(&self.path(), bytes_of(value))).await;
        let error = match put {
            Ok(put) => put.err().map(|error| of_nodes(&error)),
            Err(_) => Some(given_up()),
        };
        (What::Put { path: self.path(), value }, error)
    }

    async fn get_natively(&self) -> Call {
        let (value, error) = match timeout(GIVEN_UP_AFTER, self.nodes.get(&self.path())).await {
            Ok(Ok(bytes)) => (Some(value_in(&bytes)), None),
            Ok(Err(error)) if error.kind == NodeErrorKind::NotFound => (None, None),
            Ok(Err(error)) => (None, Some(of_nodes(&error))),
            Err(_) => (None, Some(given_up())),
        };
        (What::Get { path: self.path(), value }, error)
    }
}

/// Little enough to lie beside its name: what a gateway that ends was at leaves nothing in blocks.
fn bytes_of(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

fn value_in(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(FOREIGN, u64::from_le_bytes)
}
