//! Parts of a file, each written at its place in a draft that gets its name at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Error, Key, ObjectInfo, Result};
use parking_lot::Mutex;

use super::Files;
use super::write::Draft;
use crate::backend::Parts;
use crate::counters::{count, count_by};
use crate::request::PutCondition;
use crate::upload::Upload;

const PART_BYTES: u64 = 16 << 20;

/// A file that is written in parts: each has its place, since all but the last are of one length.
pub(super) struct FileParts {
    files: Files,
    key: Key,
    draft: Arc<Mutex<Option<Draft>>>,
    /// Length of each part that is written.
    done: Mutex<BTreeMap<u32, u64>>,
}

impl FileParts {
    pub(super) fn new(files: Files, key: Key, draft: Draft) -> Self {
        Self { files, key, draft: Arc::new(Mutex::new(Some(draft))), done: Mutex::new(BTreeMap::new()) }
    }

    fn refuse<T>(&self, why: String) -> Result<T> {
        Err(Error::invalid(format!("{}: {why}", self.files.0.path(self.key.as_str()))))
    }

    /// The length that the parts make.
    fn size(&self, parts: u32) -> Result<u64> {
        let done = self.done.lock();
        let mut size = 0;
        for index in 0..parts {
            match done.get(&index) {
                None => return self.refuse(format!("part {index} of {parts} was not written")),
                Some(bytes) if index + 1 < parts && *bytes != PART_BYTES => {
                    return self.refuse(format!("part {index} of {parts} has {bytes} bytes instead of {PART_BYTES}"));
                }
                Some(bytes) => size += bytes,
            }
        }
        Ok(size)
    }
}

#[async_trait]
impl Parts for FileParts {
    fn part_bytes(&self) -> u64 {
        PART_BYTES
    }

    async fn put(&self, index: u32, payload: Vec<Bytes>) -> Result<()> {
        let bytes = payload.iter().map(|piece| piece.len() as u64).sum();
        if index >= Upload::PARTS_MAX || bytes > PART_BYTES {
            return self.refuse(format!("part {index} of {bytes} bytes is beyond what an upload takes"));
        }
        count(&self.files.0.tally.puts);
        count_by(&self.files.0.tally.bytes_out, bytes);
        let file = match &*self.draft.lock() {
            Some(draft) => draft.file.try_clone()?,
            None => return self.refuse("the upload has ended".into()),
        };
        let key = self.key.clone();
        let write = move |files: &super::Inner| files.write_at(&key, &file, &payload, u64::from(index) * PART_BYTES);
        self.files.aside_writing(bytes, write).await?;
        self.done.lock().insert(index, bytes);
        Ok(())
    }

    async fn commit(&self, parts: u32, condition: &PutCondition) -> Result<ObjectInfo> {
        let size = self.size(parts)?;
        let Some(draft) = self.draft.lock().take() else { return self.refuse("the upload has ended".into()) };
        let (key, condition) = (self.key.clone(), condition.clone());
        let publish = move |files: &super::Inner| {
            // A part that was written and not wanted may lie behind the end.
            rustix::fs::ftruncate(&draft.file, size).map_err(|errno| files.failed(key.as_str(), errno))?;
            files.publish(&key, draft, &condition)
        };
        self.files.aside_to_its_end(publish).await
    }

    async fn abort(&self) -> Result<()> {
        let draft = self.draft.lock().take();
        self.files
            .aside(move |_| {
                drop(draft);
                Ok(())
            })
            .await
    }
}
