//! Reads from S3: version and bytes by one request, also for what is empty or ends before the range does.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use forebay_types::{Attributes, Error, Key, ObjectInfo, Result, VersionTag};
use futures::StreamExt;
use http::header::{IF_MATCH, RANGE};
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;

use super::S3;
use super::answer::{self, info_of, is_etag, range_of};
use super::call::{Call, Kind};
use super::checked::{Checked, Sum};
use crate::backend::{Opened, Source};
use crate::request::{Class, Get, GetRange};
use crate::resume::{Chunks, Reopen, Resuming};
use crate::retry::{Failure, TryState};

impl S3 {
    /// One request gives the version and its bytes.
    pub(super) async fn open_object(&self, get: &Get<'_>) -> Result<Opened> {
        let demand = (get.class == Class::Demand).then(|| self.common.yielding.demand());
        let mut tries = TryState::new();
        let (info, attributes, range, chunks) = loop {
            match self.attempt_get(get.key, &get.range, get.if_match, get.class).await {
                Ok(opened) => break opened,
                Err(failure) => tries.pause(self.common.policy, &self.common.tally, failure).await?,
            }
        };
        let version = Version { s3: self.clone(), key: get.key.clone(), tag: info.version.tag.clone(), class: get.class };
        let source: Box<dyn Source> = Box::new(Resuming {
            path: self.path(get.key.as_str()),
            reopen: version,
            chunks: Some(chunks),
            left: range.clone(),
            tries,
            policy: self.common.policy,
            tally: Arc::clone(&self.common.tally),
            class: get.class,
            yielding: Arc::clone(&self.common.yielding),
            _demand: demand,
        });
        let size = info.version.size;
        let source: Box<dyn Source> = match Sum::told(&attributes).filter(|_| range == (0..size)) {
            Some(told) => Box::new(Checked::new(source, told, size, &self.common.name, get.key)),
            None => source,
        };
        Ok(Opened { info, attributes, range, source })
    }

    async fn attempt_get(
        &self,
        key: &Key,
        wanted: &GetRange,
        if_match: Option<&VersionTag>,
        class: Class,
    ) -> Result<(ObjectInfo, Attributes, Range<u64>, Chunks), Failure> {
        let mut call = Call::object(Method::GET, Kind::Get, self.bucket.full_key(key.as_str()), key.as_str());
        if let Some(tag) = if_match.filter(|tag| is_etag(tag)) {
            call.header(IF_MATCH, tag.as_str())?;
        }
        match range_header(wanted) {
            Some(range) => call.header(RANGE, &range)?,
            None => call.header(answer::CHECKSUM_MODE, "ENABLED")?,
        }
        let answer = match self.attempt(&call, class).await {
            Err(failure) if failure.is(416) && wanted.starts_at_first() => {
                // Only an empty object has no first byte, and its version is told by a GET of all of it.
                call.headers.remove(RANGE);
                call.header(answer::CHECKSUM_MODE, "ENABLED")?;
                self.attempt(&call, class).await?
            }
            other => other?,
        };
        let answer = match answer.status() {
            // By a proxy that passes it on in pieces: what answers a range tells the size.
            StatusCode::OK if answer::length(answer.headers()).is_none() && !call.headers.contains_key(RANGE) => {
                call.header(RANGE, "bytes=0-")?;
                self.attempt(&call, class).await?
            }
            _ => answer,
        };
        let path = self.path(key.as_str());
        let sent = range_of(&answer, wanted).map_err(|what| match answer.status() {
            StatusCode::PARTIAL_CONTENT => Error::internal(format!("{path}: the answer to a range has {what}")),
            _ if what == "no byte of the range" => Error::invalid(format!("{path}: the range is past the object's end")),
            _ => Error::internal(format!("{path}: the answer has {what}")),
        })?;
        let info = info_of(self, key, answer.headers(), Some(sent.size))?;
        if let Some(tag) = if_match.filter(|tag| **tag != info.version.tag) {
            return Err(Error::conflict(format!("{path}: version {tag} was asked for, it is {} now", info.version.tag)).into());
        }
        let whole = answer.status() == StatusCode::OK;
        let attributes = answer::attributes(answer.headers(), whole && !call.headers.contains_key(RANGE));
        Ok((info, attributes, sent.range, self.chunks(&path, answer, sent.skip)))
    }

    fn chunks(&self, path: &str, answer: Response<Incoming>, skip: u64) -> Chunks {
        let failed = format!("{path}: reading from {}", self.address.endpoint);
        let mut skip = skip;
        let bytes = self.common.http.stream(answer).map(move |piece| match piece {
            Ok(mut bytes) => {
                let skipped = skip.min(bytes.len() as u64);
                skip -= skipped;
                Ok(bytes.split_off(skipped as usize))
            }
            Err(error) => Err(Failure::transient(Error::retry(format!("{failed}: {error}")))),
        });
        bytes.boxed()
    }
}

/// One version of an object, to read the rest of.
struct Version {
    s3: S3,
    key: Key,
    tag: VersionTag,
    class: Class,
}

#[async_trait]
impl Reopen for Version {
    async fn reopen(&self, range: Range<u64>) -> Result<Chunks, Failure> {
        let (_, _, range_there, chunks) =
            self.s3.attempt_get(&self.key, &GetRange::Bounded(range.clone()), Some(&self.tag), self.class).await?;
        if range_there != range {
            let path = self.s3.path(self.key.as_str());
            return Err(Error::internal(format!("{path}: bytes {range:?} were asked for, and {range_there:?} came")).into());
        }
        Ok(chunks)
    }
}

fn range_header(range: &GetRange) -> Option<String> {
    match range {
        GetRange::All | GetRange::From(0) => None,
        GetRange::Bounded(range) => Some(format!("bytes={}-{}", range.start, range.end - 1)),
        GetRange::From(start) => Some(format!("bytes={start}-")),
        GetRange::Suffix(bytes) => Some(format!("bytes=-{bytes}")),
    }
}
