//! What clients asked and what they were told, with the times of both.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::contents::{self, Seen};

/// The way that a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// S3, through the gateway.
    Gateway,
    /// The client's API, in place where a worker allows it.
    InPlace,
    /// The client's API, over TCP alone.
    Remote,
    /// HTTP, of the coordinator.
    Http,
    /// SQL, in the process that asks.
    Local,
    /// SQL, on executors.
    Executors,
    /// Shared storage itself, past Forebay.
    Store,
}

/// One call of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When it was made, in microseconds since the history began.
    pub begin_us: u64,
    /// When it was answered or given up.
    pub end_us: u64,
    /// Its way.
    pub door: Door,
    /// What was asked, and what was answered.
    pub what: What,
    /// What was said instead of an answer.
    pub error: Option<Failure>,
}

/// What was asked, and what was answered where something was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An object was written. No two writes are of the same version.
    Write {
        /// The object.
        key: u32,
        /// The version.
        version: u32,
        /// Its ETag, where the answer has it.
        etag: Option<String>,
    },
    /// An object was deleted, which counts as a version of it: no write is of the same one.
    Delete {
        /// The object.
        key: u32,
        /// The version.
        version: u32,
    },
    /// Bytes of an object were read.
    Read {
        /// The object.
        key: u32,
        /// First byte.
        start: u64,
        /// What came, and the ETag that was said to be its.
        seen: Option<(Seen, String)>,
    },
    /// A temporary value was put.
    Put {
        /// Its path.
        path: String,
        /// The value.
        value: u64,
    },
    /// A temporary value was asked for.
    Get {
        /// Its path.
        path: String,
        /// The value; none when there is none.
        value: Option<u64>,
    },
    /// A temporary value was replaced if it is a certain one, or if there is none.
    Swap {
        /// Its path.
        path: String,
        /// What must be there.
        expected: Option<u64>,
        /// The new value.
        value: u64,
        /// Whether it was.
        done: Option<bool>,
    },
    /// A number was added to the end of a temporary file, which is there from the beginning.
    Append {
        /// Its path.
        path: String,
        /// The number.
        value: u64,
        /// Numbers in the file since then.
        count: Option<u64>,
    },
    /// A temporary file was read.
    Numbers {
        /// Its path.
        path: String,
        /// What is in it; none when there is no such file.
        numbers: Option<Vec<u64>>,
    },
}

/// An error as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind, as in `retry`, or the status of an S3 answer.
    pub kind: String,
    /// What it says.
    pub message: String,
    /// Nothing was changed, for certain.
    pub no_effect: bool,
}

impl Call {
    /// A word for what was asked.
    pub fn name(&self) -> &'static str {
        match &self.what {
            What::Write { .. } => "write",
            What::Delete { .. } => "delete",
            What::Read { .. } => "read",
            What::Put { .. } => "node put",
            What::Get { .. } => "node get",
            What::Swap { .. } => "node swap",
            What::Append { .. } => "node append",
            What::Numbers { .. } => "node read",
        }
    }

    /// The temporary node that it is about.
    pub fn node(&self) -> Option<&str> {
        match &self.what {
            What::Write { .. } | What::Delete { .. } | What::Read { .. } => None,
            What::Put { path, .. }
            | What::Get { path, .. }
            | What::Swap { path, .. }
            | What::Append { path, .. }
            | What::Numbers { path, .. } => Some(path),
        }
    }
}

/// Takes calls of all clients down.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    calls: Mutex<Vec<Call>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { began: Instant::now(), calls: Mutex::default() }
    }
}

impl Recorder {
    /// Microseconds since it began.
    pub fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Takes down a call that was made at `begin_us` and is over now.
    pub fn add(&self, begin_us: u64, door: Door, what: What, error: Option<Failure>) {
        self.add_until(begin_us, self.now_us(), door, what, error);
    }

    /// Takes down what a read of so many bytes from there on of an object said, with its ETag: it is over before that is looked at.
    pub fn add_read(
        &self,
        begin_us: u64,
        door: Door,
        (key, start, asked): (u32, u64, u64),
        read: Result<(Bytes, String), Failure>,
    ) {
        let end_us = self.now_us();
        let (seen, error) = match read {
            Ok((came, etag)) => (Some((contents::identify(key, start, asked, &came), etag)), None),
            Err(failure) => (None, Some(failure)),
        };
        assert!(seen.as_ref().is_none_or(|(seen, _)| *seen != Seen::Version(0)), "versions begin with 1");
        self.add_until(begin_us, end_us, door, What::Read { key, start, seen }, error);
    }

    fn add_until(&self, begin_us: u64, end_us: u64, door: Door, what: What, error: Option<Failure>) {
        assert!(begin_us <= end_us, "a call ends after it began");
        self.calls.lock().push(Call { begin_us, end_us, door, what, error });
    }

    /// All calls by the times that they were made, and nothing is left here.
    pub fn take(&self) -> Vec<Call> {
        let mut calls = std::mem::take(&mut *self.calls.lock());
        calls.sort_by_key(|call| (call.begin_us, call.end_us));
        calls
    }
}

/// Writes calls to a file, a line of JSON each.
pub fn save(calls: &[Call], file: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for call in calls {
        serde_json::to_writer(&mut out, call)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
