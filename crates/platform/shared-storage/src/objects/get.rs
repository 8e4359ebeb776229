//! Reads by `object_store`: the version asked for or none, and what its errors leave unsaid looked up.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use forebay_types::{Attributes, Error, ErrorKind, Key, ObjectInfo, Result, VersionTag};
use futures::StreamExt;
use object_store::{GetOptions, ObjectStoreExt};

use super::Objects;
use crate::backend::Opened;
use crate::request::{Class, Get, GetRange};
use crate::resume::{Chunks, Reopen, Resuming};
use crate::retry::{Failure, TryState};

impl Objects {
    pub(super) async fn open_object(&self, get: &Get<'_>) -> Result<Opened> {
        let demand = (get.class == Class::Demand).then(|| self.common.yielding.demand());
        let opened = match self.open_range(get.key, &get.range, get.if_match, get.class).await {
            // `object_store` has no error for a range past the end, so what the object is tells.
            Err(error) if error.kind() == ErrorKind::Retry && get.range != GetRange::All => self.explain(get, error).await,
            opened => opened,
        };
        let (info, range, chunks) = opened?;
        let version = Version { objects: self.clone(), key: get.key.clone(), tag: info.version.tag.clone(), class: get.class };
        let source = Resuming {
            path: self.path(get.key.as_str()),
            reopen: version,
            chunks: Some(chunks),
            left: range.clone(),
            tries: TryState::new(),
            policy: self.common.policy,
            tally: Arc::clone(&self.common.tally),
            class: get.class,
            yielding: Arc::clone(&self.common.yielding),
            _demand: demand,
        };
        Ok(Opened { info, attributes: Attributes { complete: true, ..Attributes::default() }, range, source: Box::new(source) })
    }

    async fn open_range(
        &self,
        key: &Key,
        wanted: &GetRange,
        if_match: Option<&VersionTag>,
        class: Class,
    ) -> Result<(ObjectInfo, Range<u64>, Chunks)> {
        let mut options = GetOptions { range: range_option(wanted), ..Default::default() };
        options.if_match = if_match.filter(|tag| !tag.as_str().starts_with('m')).map(|tag| tag.as_str().into());
        options.extensions.insert(class);
        let path = self.path(key.as_str());
        let answer = self.store.get_opts(&self.location(key)?, options).await;
        let answer = answer.map_err(|error| self.failed(key.as_str(), error))?;
        let info = self.info_of(key, &answer.meta);
        if let Some(tag) = if_match.filter(|tag| **tag != info.version.tag) {
            return Err(Error::conflict(format!("{path}: version {tag} was asked for, it is {} now", info.version.tag)));
        }
        let range = answer.range.clone();
        if wanted.of(info.version.size) != Some(range.clone()) {
            return Err(Error::internal(format!("{path}: the answer holds other bytes than were asked for")));
        }
        let failed = self.clone();
        let name = key.clone();
        let chunks =
            answer.into_stream().map(move |piece| piece.map_err(|error| Failure::transient(failed.failed(name.as_str(), error))));
        Ok((info, range, chunks.boxed()))
    }

    /// What a failed ranged read means: past the end, nothing of an empty object, or what it seemed.
    async fn explain(&self, get: &Get<'_>, error: Error) -> Result<(ObjectInfo, Range<u64>, Chunks)> {
        let Ok(meta) = self.store.head(&self.location(get.key)?).await else { return Err(error) };
        let info = self.info_of(get.key, &meta);
        match get.range.of(meta.size) {
            None => Err(Error::invalid(format!("{}: the range is past the object's end", self.path(get.key.as_str())))),
            Some(range) if range.is_empty() && get.if_match.is_none_or(|tag| *tag == info.version.tag) => {
                Ok((info, range, futures::stream::empty().boxed()))
            }
            Some(_) => Err(error),
        }
    }
}

fn range_option(range: &GetRange) -> Option<object_store::GetRange> {
    match range {
        GetRange::All | GetRange::From(0) => None,
        GetRange::Bounded(range) => Some(object_store::GetRange::Bounded(range.clone())),
        GetRange::From(start) => Some(object_store::GetRange::Offset(*start)),
        GetRange::Suffix(bytes) => Some(object_store::GetRange::Suffix(*bytes)),
    }
}

/// One version of an object, to read the rest of.
struct Version {
    objects: Objects,
    key: Key,
    tag: VersionTag,
    class: Class,
}

#[async_trait]
impl Reopen for Version {
    async fn reopen(&self, range: Range<u64>) -> Result<Chunks, Failure> {
        let opened = self.objects.open_range(&self.key, &GetRange::Bounded(range), Some(&self.tag), self.class).await;
        match opened {
            Ok((_, _, chunks)) => Ok(chunks),
            Err(error) if error.kind() == ErrorKind::Retry => Err(Failure::transient(error)),
            Err(error) => Err(error.into()),
        }
    }
}
