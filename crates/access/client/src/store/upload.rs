//! Writing an object in parts, as the trait wants it.

use std::sync::Arc;

use async_trait::async_trait;
use forebay_protocol::PutCondition;
use forebay_types::{Error, ForebayPath, Result};
use futures::FutureExt;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};

use super::errors::to_store_error;
use super::versions::{Versions, put_result};
use crate::write::{PartBuffer, PartUpload, abandon};

/// An object in parts, as the trait wants it: parts of any size come in, parts of the upload's size go out.
pub(super) struct StoreUpload<V> {
    versions: V,
    path: ForebayPath,
    buffer: PartBuffer,
    upload: Option<Arc<PartUpload>>,
    parts: u32,
}

impl<V: Versions> StoreUpload<V> {
    pub(super) async fn begin(versions: V, path: ForebayPath) -> Result<Self> {
        let upload = PartUpload::begin(&versions.objects().writes, &path).await?;
        Ok(Self { versions, path, buffer: PartBuffer::default(), upload: Some(Arc::new(upload)), parts: 0 })
    }

    fn upload(&self) -> Result<Arc<PartUpload>> {
        let over = || Error::invalid(format!("{}: the upload is over already", self.path));
        self.upload.clone().ok_or_else(over)
    }

    async fn finish(&mut self) -> Result<PutResult> {
        let upload = self.upload()?;
        assert!(self.buffer.len() < upload.part_bytes, "{} bytes were held back as a part", self.buffer.len());
        let rest = self.buffer.take(usize::MAX);
        let info = if self.parts == 0 {
            // It fits in one request, and an upload of no part is none.
            upload.abort().await?;
            self.upload = None;
            self.versions.objects().writes.put_whole(&self.path, rest, PutCondition::Any).await?
        } else {
            if !rest.is_empty() {
                upload.send(self.parts, rest).await?;
                self.parts += 1;
            }
            let committed = upload.commit(self.parts, PutCondition::Any).await;
            self.upload = None;
            committed?
        };
        self.versions.written(&self.path, Some(&info));
        Ok(put_result(&info))
    }

    fn error(&self, error: Error) -> object_store::Error {
        to_store_error(self.path.to_string().trim_start_matches('/'), error)
    }
}

#[async_trait]
impl<V: Versions> MultipartUpload for StoreUpload<V> {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let upload = match self.upload() {
            Ok(upload) => upload,
            Err(error) => {
                let error = self.error(error);
                return async { Err(error) }.boxed();
            }
        };
        let location = self.path.to_string().trim_start_matches('/').to_string();
        send_full(upload, (&mut self.buffer, &mut self.parts), data, location)
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        self.finish().await.map_err(|error| self.error(error))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        if let Some(upload) = self.upload.take() { upload.abort().await.map_err(|error| self.error(error)) } else { Ok(()) }
    }
}

/// Takes in what comes of an upload, after so many parts, and sends the parts that are full, one after the other: how much is in flight is
/// for the caller to say, who holds several of these.
pub(super) fn send_full(
    upload: Arc<PartUpload>,
    (buffer, parts): (&mut PartBuffer, &mut u32),
    data: PutPayload,
    location: String,
) -> UploadPart {
    data.into_iter().for_each(|piece| buffer.push(piece));
    let mut sends = Vec::new();
    while buffer.len() >= upload.part_bytes {
        sends.push((*parts, buffer.take(upload.part_bytes)));
        *parts += 1;
    }
    async move {
        for (part, payload) in sends {
            upload.send(part, payload).await.map_err(|error| to_store_error(location.clone(), error))?;
        }
        Ok(())
    }
    .boxed()
}

impl<V> Drop for StoreUpload<V> {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            abandon(upload);
        }
    }
}

impl<V> std::fmt::Debug for StoreUpload<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreUpload").field("path", &self.path).field("parts", &self.parts).finish_non_exhaustive()
    }
}
