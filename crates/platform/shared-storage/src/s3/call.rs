//! One request to S3 as it is put together: which method on which key, and how it is counted.

use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use forebay_types::{Error, Result};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::counters::Tally;

/// How a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Head,
    List,
    Put,
    Delete,
}

impl Kind {
    pub(super) fn counter(self, tally: &Tally) -> &AtomicU64 {
        match self {
            Self::Get => &tally.gets,
            Self::Head => &tally.heads,
            Self::List => &tally.lists,
            Self::Put => &tally.puts,
            Self::Delete => &tally.deletes,
        }
    }
}

/// One request, before it is addressed and signed.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) kind: Kind,
    /// The key in the bucket; none for the bucket itself.
    pub(super) key: Option<String>,
    /// What it is about, for messages: the key below the mount, or the prefix.
    pub(super) about: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: HeaderMap,
    pub(super) payload: Vec<Bytes>,
}

impl Call {
    pub(super) fn object(method: Method, kind: Kind, full_key: String, about: &str) -> Self {
        Self { key: Some(full_key), ..Self::bucket(method, kind, about) }
    }

    pub(super) fn bucket(method: Method, kind: Kind, about: &str) -> Self {
        Self { method, kind, key: None, about: about.into(), query: Vec::new(), headers: HeaderMap::new(), payload: Vec::new() }
    }

    pub(super) fn payload_bytes(&self) -> u64 {
        self.payload.iter().map(|piece| piece.len() as u64).sum()
    }

    /// Adds a header. `Invalid` when its value can't stand in one.
    pub(super) fn header(&mut self, name: HeaderName, value: &str) -> Result<()> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| Error::invalid(format!("{}: {value:?} can't stand in the header {name}", self.about)))?;
        self.headers.insert(name, value);
        Ok(())
    }
}
