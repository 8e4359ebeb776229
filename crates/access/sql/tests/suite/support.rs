//! An engine over a store in memory that writes down what it is asked for, and ways to ask and to make files.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use forebay_sql::{Engine, EngineSettings};
use forebay_types::Error;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// A store in memory that writes down what it is asked for.
#[derive(Debug, Default)]
pub struct Recorder {
    inner: InMemory,
    pub reads: Mutex<Vec<(String, Range<u64>)>>,
    pub lists: Mutex<Vec<String>>,
    pub heads: Mutex<Vec<String>>,
    /// How long reads take.
    pub delay: Mutex<Duration>,
    /// Reads under way, and the most of them at once, where they take any time.
    under_way: AtomicUsize,
    pub most_at_once: AtomicUsize,
}

impl Recorder {
    async fn wait(&self) {
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(under_way, Ordering::SeqCst);
            forebay_runtime::time::sleep(delay).await;
            self.under_way.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Forgets what was asked so far.
    pub fn clear(&self) {
        self.reads.lock().unwrap().clear();
        self.lists.lock().unwrap().clear();
        self.heads.lock().unwrap().clear();
    }

    /// Distinct bytes that were asked for.
    pub fn bytes(&self) -> u64 {
        let mut reads = self.reads.lock().unwrap().clone();
        reads.sort_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
        let (mut total, mut last) = (0, (String::new(), 0));
        for (path, range) in reads {
            let from = if last.0 == path { range.start.max(last.1) } else { range.start };
            total += range.end.saturating_sub(from);
            last = (path, from.max(range.end));
        }
        total
    }
}

impl fmt::Display for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

#[async_trait]
impl ObjectStore for Recorder {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        self.wait().await;
        let result = self.inner.get_opts(location, options).await?;
        match head {
            true => self.heads.lock().unwrap().push(location.to_string()),
            false => self.reads.lock().unwrap().push((location.to_string(), result.range.clone())),
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.wait().await;
        self.reads.lock().unwrap().extend(ranges.iter().map(|range| (location.to_string(), range.clone())));
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.lists.lock().unwrap().push(prefix.map(ToString::to_string).unwrap_or_default());
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// An engine whose `/lake` is a store in memory.
pub struct Lake {
    pub store: Arc<Recorder>,
    pub engine: Engine,
}

pub fn settings() -> EngineSettings {
    EngineSettings { target_partitions: Some(2), ..Default::default() }
}

impl Lake {
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: EngineSettings) -> Self {
        let store = Arc::new(Recorder::default());
        let url = "forebay:///lake".parse().unwrap();
        Self { engine: Engine::over_object_store(vec![(url, Arc::clone(&store) as _)], settings), store }
    }

    pub async fn put(&self, path: &str, bytes: impl Into<Bytes>) {
        self.store.put(&Path::parse(path).unwrap(), bytes.into().into()).await.unwrap();
    }

    /// A file's bytes.
    pub async fn store_bytes(&self, path: &str) -> Bytes {
        self.store.get(&Path::parse(path).unwrap()).await.unwrap().bytes().await.unwrap()
    }

    /// The names of all files.
    pub async fn names(&self) -> Vec<String> {
        let listed = self.store.list(None).try_collect::<Vec<_>>().await.unwrap();
        listed.into_iter().map(|meta| meta.location.to_string()).collect()
    }

    pub async fn rows(&self, sql: &str) -> String {
        rows(&self.engine, sql).await
    }

    pub async fn error(&self, sql: &str) -> Error {
        error(&self.engine, sql).await
    }
}

/// The rows of a query: a line each, values separated by spaces.
pub async fn rows(engine: &Engine, sql: &str) -> String {
    let mut query = engine.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {} {error}", error.kind()));
    let batches = query.collect().await.unwrap_or_else(|error| panic!("{sql}: {} {error}", error.kind()));
    text(&batches)
}

pub fn text(batches: &[RecordBatch]) -> String {
    let table = pretty_format_batches(batches).unwrap().to_string();
    let line = |line: &str| line.split('|').map(str::trim).filter(|value| !value.is_empty()).collect::<Vec<_>>().join(" ");
    table.lines().filter(|line| line.starts_with('|')).skip(1).map(line).collect::<Vec<_>>().join("\n")
}

/// What a query fails with, wherever it does.
pub async fn error(engine: &Engine, sql: &str) -> Error {
    match engine.execute(sql).await {
        Err(error) => error,
        Ok(mut query) => query.collect().await.map(|rows| panic!("{sql} answered {rows:?}")).unwrap_err(),
    }
}

/// A Parquet file of some batches.
pub fn parquet(batches: &[RecordBatch], rows_a_group: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows_a_group))
        .set_data_page_row_count_limit((rows_a_group / 4).max(1))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    bytes.into()
}
