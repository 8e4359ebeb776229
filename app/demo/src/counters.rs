//! What was asked of the server and what went over its link, so that a test can say how much was fetched.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::{Method, Request};

/// What the server was asked and what it moved, since start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct S3Counters {
    /// GET requests of objects.
    pub gets: u64,
    /// HEAD requests.
    pub heads: u64,
    /// List requests, of objects or buckets.
    pub lists: u64,
    /// PUT and POST requests, parts among them.
    pub puts: u64,
    /// DELETE requests.
    pub deletes: u64,
    /// Bytes of bodies sent in answers to GETs of objects.
    pub bytes_out: u64,
    /// Bytes of bodies received.
    pub bytes_in: u64,
}

impl S3Counters {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.gets + self.heads + self.lists + self.puts + self.deletes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Head,
    List,
    Put,
    Delete,
}

impl Kind {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or("");
        let path = request.uri().path().trim_start_matches('/');
        let names_object = path.split_once('/').is_some_and(|(_, key)| !key.is_empty());
        match *request.method() {
            Method::HEAD => Self::Head,
            Method::DELETE => Self::Delete,
            Method::GET if names_object && !query.contains("uploadId=") => Self::Get,
            Method::GET => Self::List,
            _ => Self::Put,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: [AtomicU64; 5],
    bytes_out: AtomicU64,
    bytes_in: AtomicU64,
}

impl Tally {
    pub(crate) fn request(&self, kind: Kind) {
        self.requests[kind as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.bytes_in.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn read(&self) -> S3Counters {
        let requests = |kind: Kind| self.requests[kind as usize].load(Relaxed);
        S3Counters {
            gets: requests(Kind::Get),
            heads: requests(Kind::Head),
            lists: requests(Kind::List),
            puts: requests(Kind::Put),
            deletes: requests(Kind::Delete),
            bytes_out: self.bytes_out.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
        }
    }

    pub(crate) fn reset(&self) {
        self.requests.iter().chain([&self.bytes_out, &self.bytes_in]).for_each(|counter| counter.store(0, Relaxed));
    }
}
