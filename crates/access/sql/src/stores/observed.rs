//! A store that remembers for one query: the first version seen of each object, bytes read, and the first error below.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::error::DataFusionError;
use forebay_types::Error;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use parking_lot::Mutex;

use crate::error::kind_of_store_error;
use crate::location::shown;
use crate::stores::footers::{self, Footers};

/// What one query has seen of its stores: the version of each object at its first listing or opening, the bytes that it
/// has read, and the first thing that went wrong below the engine.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    versions: Mutex<HashMap<Path, ObjectMeta>>,
    bytes_read: AtomicU64,
    error: Mutex<Option<Error>>,
    rows_error: Mutex<Option<Arc<DataFusionError>>>,
    given_up: AtomicBool,
    footers: Footers,
}

impl Seen {
    /// The version of `path` that this query reads.
    pub(crate) fn version(&self, path: &Path) -> Option<ObjectMeta> {
        self.versions.lock().get(path).cloned()
    }

    fn size(&self, path: &Path) -> Option<u64> {
        self.versions.lock().get(path).map(|meta| meta.size)
    }

    fn count(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that the query was given so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// The first error of a store, with the kind that the engine's wrapping may have lost.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.lock().clone()
    }

    /// Some of the objects seen, as their user would write them, in order, and how many more there are.
    pub(crate) fn named(&self, count: usize) -> (Vec<String>, usize) {
        let mut names: Vec<_> = self.versions.lock().keys().map(|path| shown(path.as_ref())).collect();
        names.sort();
        let more = names.len().saturating_sub(count);
        names.truncate(count);
        (names, more)
    }

    /// Keeps the version seen first; later sightings don't change what the query reads.
    pub(crate) fn note(&self, meta: &ObjectMeta) -> ObjectMeta {
        self.versions.lock().entry(meta.location.clone()).or_insert_with(|| meta.clone()).clone()
    }

    /// The rows that the query writes have failed: from now on it shows no file.
    pub(crate) fn rows_failed(&self, error: &Arc<DataFusionError>) {
        self.rows_error.lock().get_or_insert_with(|| Arc::clone(error));
    }

    /// Why the rows that the query writes have failed, if they have.
    pub(crate) fn rows_error(&self) -> Option<Arc<DataFusionError>> {
        self.rows_error.lock().clone()
    }

    /// Nobody waits any more for the rows that the query writes, or they panicked: it shows no file either.
    pub(crate) fn rows_given_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Refuses a file of which not all rows have come.
    fn check_rows(&self) -> Result<()> {
        let why = match self.rows_error() {
            Some(error) => error.to_string(),
            None if self.given_up.load(Ordering::Acquire) => "its rows were given up before their end".to_string(),
            None => return Ok(()),
        };
        Err(object_store::Error::Generic { store: "forebay", source: why.into() })
    }

    fn forget(&self, path: &Path) {
        self.versions.lock().remove(path);
    }

    fn check<T>(&self, result: Result<T>) -> Result<T> {
        // That something does not exist is an answer while a path is being resolved.
        result.inspect_err(|error| {
            if !matches!(error, object_store::Error::NotFound { .. }) {
                let known = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>()).cloned();
                let error = known.unwrap_or_else(|| Error::new(kind_of_store_error(error), error.to_string()));
                self.error.lock().get_or_insert(error);
            }
        })
    }
}

/// A store as one query sees it. Listings and headers are kept: asking a second time within a query costs nothing and
/// answers the same.
#[derive(Debug)]
pub(crate) struct Observed {
    inner: Arc<dyn ObjectStore>,
    seen: Arc<Seen>,
}

impl Observed {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, seen: Arc<Seen>) -> Self {
        Self { inner, seen }
    }

    /// Refuses a range that the file does not have. Stores give what there is of it, and readers that were led there by damaged
    /// metadata take that for what they asked for.
    fn check_range(&self, path: &Path, range: &Range<u64>) -> Result<()> {
        let Some(size) = self.seen.size(path).filter(|size| range.end > *size) else { return Ok(()) };
        let (shown, Range { start, end }) = (shown(path.as_ref()), range);
        let message = format!("'{shown}' is damaged or cut short: it says that it has bytes {start}..{end} and ends at {size}");
        self.seen.check(Err(object_store::Error::Generic { store: "forebay", source: Box::new(Error::corrupt(message)) }))
    }

    /// Refuses the footer of a Parquet file that says more than a reader may make room for.
    async fn check_footer(&self, path: &Path, range: &Range<u64>, bytes: &[u8]) -> Result<()> {
        let known = self.seen.size(path);
        let Err(fault) = self.seen.footers.look(path, range, known, bytes) else { return Ok(()) };
        // Values may look like the end of a file.
        if known.is_none() {
            let options = GetOptions { head: true, ..Default::default() };
            if !footers::may_end(range, self.get_opts(path, options).await?.meta.size) {
                return Ok(());
            }
        }
        let message = format!("'{}': {}", shown(path.as_ref()), Error::from(fault).message());
        self.seen.check(Err(object_store::Error::Generic { store: "forebay", source: Box::new(Error::corrupt(message)) }))
    }
}

forebay_types::shown_as!(Observed: inner);

#[async_trait]
impl ObjectStore for Observed {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.seen.check_rows()?;
        self.seen.forget(location);
        self.seen.check(self.inner.put_opts(location, payload, opts).await)
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.seen.forget(location);
        let upload = self.seen.check(self.inner.put_multipart_opts(location, opts).await)?;
        Ok(Box::new(Upload { upload, seen: Arc::clone(&self.seen) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head && options.if_match.is_none() && options.if_none_match.is_none() {
            if let Some(meta) = self.seen.version(location) {
                let payload = GetResultPayload::Stream(futures::stream::empty().boxed());
                return Ok(GetResult { payload, range: 0..meta.size, meta, attributes: Default::default() });
            }
            let result = self.seen.check(self.inner.get_opts(location, options).await)?;
            self.seen.note(&result.meta);
            return Ok(result);
        }
        if let Some(GetRange::Bounded(range)) = &options.range {
            self.check_range(location, range)?;
        }
        let mut result = self.seen.check(self.inner.get_opts(location, options).await)?;
        self.seen.note(&result.meta);
        result.payload = match result.payload {
            // As it is taken: who looks at the first rows of a file opens all of it.
            GetResultPayload::Stream(bytes) => {
                let seen = Arc::clone(&self.seen);
                GetResultPayload::Stream(bytes.inspect_ok(move |bytes| seen.count(bytes.len() as u64)).boxed())
            }
            file => {
                self.seen.count(result.range.end - result.range.start);
                file
            }
        };
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if let Some(last) = ranges.iter().max_by_key(|range| range.end) {
            self.check_range(location, last)?;
        }
        let parts = self.seen.check(self.inner.get_ranges(location, ranges).await)?;
        for (range, bytes) in ranges.iter().zip(&parts) {
            self.check_footer(location, range, bytes).await?;
        }
        let bytes: usize = parts.iter().map(Bytes::len).sum();
        self.seen.count(bytes as u64);
        Ok(parts)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let seen = Arc::clone(&self.seen);
        let deleted = self.inner.delete_stream(locations);
        deleted.inspect(move |path| path.iter().for_each(|path| seen.forget(path))).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let seen = Arc::clone(&self.seen);
        self.inner.list(prefix).map(move |meta| seen.check(meta).map(|meta| seen.note(&meta))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.seen.check(self.inner.list_with_delimiter(prefix).await)?;
        for meta in &mut listed.objects {
            *meta = self.seen.note(meta);
        }
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.seen.forget(to);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.seen.forget(from);
        self.seen.forget(to);
        self.inner.rename_opts(from, to, options).await
    }
}

/// A file in parts, which is given up where its rows have failed.
#[derive(Debug)]
struct Upload {
    upload: Box<dyn MultipartUpload>,
    seen: Arc<Seen>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        if let Err(error) = self.seen.check_rows() {
            // What failed before is what the caller has to hear.
            let _ = self.upload.abort().await;
            return Err(error);
        }
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}

#[cfg(test)]
mod tests {
    use object_store::chunked::ChunkedStore;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn bytes_count_as_they_are_taken() {
        let (memory, path) = (Arc::new(InMemory::new()), Path::from("a"));
        memory.put_opts(&path, PutPayload::from(vec![0_u8; 1000]), PutOptions::default()).await.unwrap();
        let seen = Arc::new(Seen::default());
        let observed = Observed::new(Arc::new(ChunkedStore::new(memory, 100)), Arc::clone(&seen));
        let mut bytes = observed.get_opts(&path, GetOptions::default()).await.unwrap().into_stream();
        assert_eq!(seen.bytes_read(), 0, "it is open and nothing more");
        assert_eq!(bytes.next().await.unwrap().unwrap().len(), 100);
        drop(bytes);
        assert_eq!(seen.bytes_read(), 100, "the rest is not asked for");
        observed.get_ranges(&path, &[0..10, 20..40]).await.unwrap();
        assert_eq!(seen.bytes_read(), 130);
    }

    #[tokio::test]
    async fn values_that_look_like_the_end_of_a_file_are_none() {
        let (memory, path) = (Arc::new(InMemory::new()), Path::from("a"));
        // Four bytes of a footer that is none, its length, and the format's name; and more of the file.
        let file = [&[0xff; 4][..], &[4, 0, 0, 0], b"PAR1", &[0; 20]].concat();
        memory.put_opts(&path, PutPayload::from(file), PutOptions::default()).await.unwrap();
        for is_listed in [false, true] {
            let seen = Arc::new(Seen::default());
            let observed = Observed::new(Arc::clone(&memory) as Arc<dyn ObjectStore>, Arc::clone(&seen));
            if is_listed {
                observed.get_opts(&path, GetOptions { head: true, ..Default::default() }).await.unwrap();
            }
            observed.get_ranges(&path, std::slice::from_ref(&(0..12))).await.unwrap();
            assert!(seen.error().is_none(), "{:?}", seen.error());
        }
        let whole = [&[0xff; 4][..], &[4, 0, 0, 0], b"PAR1"].concat();
        memory.put_opts(&path, PutPayload::from(whole), PutOptions::default()).await.unwrap();
        let observed = Observed::new(memory, Arc::default());
        observed.get_ranges(&path, std::slice::from_ref(&(0..12))).await.unwrap_err();
    }
}
