//! Writing a file of temporary data in parts, as the trait wants it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_types::{Error, ForebayPath, Result};
use futures::FutureExt;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};
use parking_lot::Mutex;

use super::Temporary;
use crate::nodes::NodeDraft;
use crate::store::errors::to_store_error;
use crate::store::versions::{Versions, put_result};

/// A file in parts: they are added to it in the order in which they were given, whichever is waited for first.
pub(in crate::store) struct TemporaryUpload<V> {
    versions: V,
    under_way: Arc<UnderWay>,
}

struct UnderWay {
    temporary: Temporary,
    path: ForebayPath,
    /// What is to be added next.
    waiting: Mutex<VecDeque<Bytes>>,
    /// None once it is over: whole, given up, or a part of it failed or was given up in the midst.
    draft: tokio::sync::Mutex<Option<NodeDraft>>,
}

impl<V: Versions> TemporaryUpload<V> {
    pub(in crate::store) async fn begin(versions: V, path: ForebayPath) -> Result<Self> {
        let temporary = versions.objects().temporary.clone();
        let draft = tokio::sync::Mutex::new(Some(temporary.file(&path).await?));
        let under_way = UnderWay { temporary, path, waiting: Mutex::default(), draft };
        Ok(Self { versions, under_way: Arc::new(under_way) })
    }
}

impl UnderWay {
    /// Adds what waits. Nothing is left of the file where that fails.
    async fn add(&self) -> Result<()> {
        let mut place = self.draft.lock().await;
        while let Some(next) = self.next() {
            let mut draft = place.take().ok_or_else(|| self.over())?;
            self.temporary.add(&self.path, &mut draft, next).await?;
            *place = Some(draft);
        }
        // The next part may come in an hour: blocks that no file has are kept for minutes.
        let Some(draft) = place.as_mut() else { return Ok(()) };
        let settled = self.temporary.settle(&self.path, draft).await;
        if settled.is_err() {
            *place = None;
        }
        settled
    }

    /// A function, for the lock to end with it.
    fn next(&self) -> Option<Bytes> {
        self.waiting.lock().pop_front()
    }

    async fn finish(&self) -> Result<forebay_types::ObjectInfo> {
        self.add().await?;
        let draft = self.draft.lock().await.take().ok_or_else(|| self.over())?;
        self.temporary.place(&self.path, draft, PutCondition::Any).await
    }

    fn over(&self) -> Error {
        Error::invalid(format!("{}: the upload is over already", self.path))
    }

    fn error(&self, error: Error) -> object_store::Error {
        to_store_error(self.path.to_string().trim_start_matches('/'), error)
    }
}

#[async_trait]
impl<V: Versions> MultipartUpload for TemporaryUpload<V> {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.under_way.waiting.lock().extend(data);
        let under_way = Arc::clone(&self.under_way);
        async move { under_way.add().await.map_err(|error| under_way.error(error)) }.boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let info = self.under_way.finish().await.map_err(|error| self.under_way.error(error))?;
        self.versions.written(&self.under_way.path, Some(&info));
        Ok(put_result(&info))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        let draft = self.under_way.draft.lock().await.take();
        if let Some(draft) = draft {
            draft.discard().await;
        }
        Ok(())
    }
}

impl<V> fmt::Debug for TemporaryUpload<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporaryUpload").field("path", &self.under_way.path).finish_non_exhaustive()
    }
}
