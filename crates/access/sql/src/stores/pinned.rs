//! Holds reads of buckets that no mount covers to the version that the query has seen first.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, coalesce_ranges,
};

use crate::stores::Seen;

/// Shared storage read without a mount: every read asks for the version that the query has seen first (`If-Match`), so
/// that bytes of two versions never mix here either.
#[derive(Debug)]
pub(crate) struct Pinned {
    inner: Arc<dyn ObjectStore>,
    seen: Arc<Seen>,
}

impl Pinned {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, seen: Arc<Seen>) -> Self {
        Self { inner, seen }
    }
}

forebay_types::shown_as!(Pinned: inner);

#[async_trait]
impl ObjectStore for Pinned {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        if options.if_match.is_none() {
            options.if_match = self.seen.version(location).and_then(|meta| meta.e_tag);
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let fetch = |range: Range<u64>| async move {
            let options = GetOptions { range: Some(range.into()), ..Default::default() };
            self.get_opts(location, options).await?.bytes().await
        };
        coalesce_ranges(ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
