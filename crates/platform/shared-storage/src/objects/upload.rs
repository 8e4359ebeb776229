//! Multipart uploads by `object_store`, part by part in any order.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Error, Key, ObjectInfo, Result};
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{MultipartId, PutPayload};
use parking_lot::Mutex;

use super::Objects;
use crate::backend::{Backend, Parts};
use crate::request::PutCondition;
use crate::upload::Upload;

const PART_BYTES: u64 = 16 << 20;

/// An object that is written in parts.
pub(super) struct ObjectParts {
    objects: Objects,
    key: Key,
    location: Path,
    id: MultipartId,
    done: Mutex<BTreeMap<u32, PartId>>,
}

impl ObjectParts {
    pub(super) async fn begin(objects: Objects, key: &Key) -> Result<Self> {
        let location = objects.location(key)?;
        let id = objects.uploads.create_multipart(&location).await;
        let id = id.map_err(|error| objects.failed(key.as_str(), error))?;
        Ok(Self { objects, key: key.clone(), location, id, done: Mutex::new(BTreeMap::new()) })
    }

    fn refuse<T>(&self, why: String) -> Result<T> {
        Err(Error::invalid(format!("{}: {why}", self.objects.path(self.key.as_str()))))
    }

    fn parts(&self, parts: u32) -> Result<Vec<PartId>> {
        let done = self.done.lock();
        let missing = (0..parts).find(|index| !done.contains_key(index));
        match missing {
            Some(index) => self.refuse(format!("part {index} of {parts} was not written")),
            None => Ok(done.range(..parts).map(|(_, part)| part.clone()).collect()),
        }
    }
}

#[async_trait]
impl Parts for ObjectParts {
    fn part_bytes(&self) -> u64 {
        PART_BYTES
    }

    async fn put(&self, index: u32, payload: Vec<Bytes>) -> Result<()> {
        if index >= Upload::PARTS_MAX {
            return self.refuse(format!("an upload has at most {} parts: split the object", Upload::PARTS_MAX));
        }
        let payload = PutPayload::from_iter(payload);
        let part = self.objects.uploads.put_part(&self.location, &self.id, index as usize, payload).await;
        let part = part.map_err(|error| self.objects.failed(self.key.as_str(), error))?;
        self.done.lock().insert(index, part);
        Ok(())
    }

    async fn commit(&self, parts: u32, condition: &PutCondition) -> Result<ObjectInfo> {
        if *condition != PutCondition::Any {
            return self.refuse(format!("{} makes no conditional objects of parts: write it in one piece", self.objects.service));
        }
        if parts == 0 {
            let info = self.objects.put(&self.key, Vec::new(), condition).await?;
            self.abort().await?;
            return Ok(info);
        }
        let parts = self.parts(parts)?;
        let done = self.objects.uploads.complete_multipart(&self.location, &self.id, parts).await;
        done.map_err(|error| self.objects.failed(self.key.as_str(), error))?;
        self.objects.head(&self.key).await.map(|(info, _)| info)
    }

    async fn abort(&self) -> Result<()> {
        match self.objects.uploads.abort_multipart(&self.location, &self.id).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.objects.failed(self.key.as_str(), error)),
        }
    }
}
