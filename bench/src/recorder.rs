//! An object store that notes which bytes it is asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};

/// The ranges that were asked for, by path.
type Asked = BTreeMap<Path, Vec<Range<u64>>>;

/// Passes everything on and notes the ranges of every read.
#[derive(Debug)]
pub struct Recorder {
    store: Arc<dyn ObjectStore>,
    asked: Mutex<Asked>,
}

impl Recorder {
    /// A recorder before `store`.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, asked: Mutex::default() }
    }

    /// Bytes that were asked for, each counted once.
    pub fn union_bytes(&self) -> u64 {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        asked.values_mut().map(|ranges| union(ranges)).sum()
    }

    fn note(&self, path: &Path, range: Range<u64>) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).entry(path.clone()).or_default().push(range);
    }
}

/// Bytes of all ranges together, those that overlap counted once.
fn union(ranges: &mut [Range<u64>]) -> u64 {
    ranges.sort_by_key(|range| range.start);
    let (mut bytes, mut end) = (0, 0);
    for range in ranges {
        let start = range.start.max(end);
        bytes += range.end.saturating_sub(start);
        end = end.max(range.end);
    }
    bytes
}

impl fmt::Display for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({})", self.store)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Recorder {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.store.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let asked = options.range.clone();
        let result = self.store.get_opts(location, options).await?;
        if !head {
            // The answer's range is what was asked for, resolved against the object's size.
            let range = match asked {
                Some(GetRange::Bounded(range)) => range.start..range.end.min(result.meta.size),
                _ => result.range.clone(),
            };
            self.note(location, range);
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().for_each(|range| self.note(location, range.clone()));
        self.store.get_ranges(location, ranges).await
    }

    forebay_types::handed_on! {
        [store]
        fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>>;
        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>>;
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
