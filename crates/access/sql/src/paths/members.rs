//! Compressed files of text, with all that they have. Several compressed files behind each other are one (pbzip2, pzstd and `cat` make such):
//! the engine's own reader gives the first one's text and ends there, but for gzip. What is damaged it says without the file's name.

use std::io;
use std::sync::Arc;

use async_compression::tokio::bufread::{BzDecoder, GzipDecoder, XzDecoder, ZstdDecoder};
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use forebay_types::Error;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use tokio_util::io::{ReaderStream, StreamReader};

use crate::location::shown;
use crate::scans::config;

/// Memory that a file of xz may ask for: it says itself how much, up to 4 GiB, and `xz -9` asks for 65 MiB. Zstandard has such a bound itself.
const XZ_BYTES_MAX: u64 = 256 << 20;

/// A plan that is ready to run, whose scans of compressed files read all of them. No optimizer sees it, and it is sent to nobody.
pub(crate) fn with_all_members(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let compressed = config(&node).filter(|scan| scan.file_compression_type.is_compressed());
        let whole = compressed.and_then(|scan| {
            let mut scan = scan.clone();
            scan.file_source = Arc::new(Members(scan.file_source));
            let node = node.downcast_ref::<DataSourceExec>()?.clone();
            Some(Arc::new(node.with_data_source(Arc::new(scan))) as Arc<dyn ExecutionPlan>)
        });
        Ok(if let Some(whole) = whole { Transformed::yes(whole) } else { Transformed::no(node) })
    })
    .data()
}

/// The text of a file, for who looks at how it begins.
pub(super) fn plain(
    compression: FileCompressionType,
    stored: BoxStream<'static, StoreResult<Bytes>>,
) -> BoxStream<'static, Result<Bytes>> {
    if !compression.is_compressed() {
        return stored.map_err(DataFusionError::from).boxed();
    }
    let of_stored = |error: io::Error| match error.downcast::<object_store::Error>() {
        Ok(stored) => DataFusionError::from(stored),
        Err(error) => DataFusionError::from(error),
    };
    decompressed(compression, stored).map_err(of_stored).boxed()
}

/// What the bytes of a file become. Errors of the store that they are from are within those here.
fn decompressed(
    compression: FileCompressionType,
    stored: BoxStream<'static, StoreResult<Bytes>>,
) -> BoxStream<'static, io::Result<Bytes>> {
    macro_rules! all_of {
        ($decoder:expr) => {{
            let mut decoder = $decoder;
            decoder.multiple_members(true);
            ReaderStream::new(decoder).map_err(early).boxed()
        }};
    }
    match compression.get_variant() {
        CompressionTypeVariant::GZIP => all_of!(GzipDecoder::new(StreamReader::new(stored))),
        CompressionTypeVariant::BZIP2 => all_of!(BzDecoder::new(StreamReader::new(stored))),
        CompressionTypeVariant::XZ => all_of!(XzDecoder::with_mem_limit(StreamReader::new(stored), XZ_BYTES_MAX)),
        CompressionTypeVariant::ZSTD => all_of!(ZstdDecoder::new(StreamReader::new(stored))),
        CompressionTypeVariant::UNCOMPRESSED => stored.map_err(io::Error::from).boxed(),
    }
}

/// That of xz says that memory is missing where bytes are.
fn early(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::OutOfMemory { io::ErrorKind::UnexpectedEof.into() } else { error }
}

/// The engine's source of text, whose reader is given the text of files in place of what is stored.
struct Members(Arc<dyn FileSource>);

impl FileSource for Members {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let store = Arc::new(Decompressed { stored: store, compression: config.file_compression_type });
        let mut config = config.clone();
        config.file_compression_type = FileCompressionType::UNCOMPRESSED;
        self.0.create_file_opener(store, &config, partition)
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self(self.0.with_batch_size(batch_size)))
    }

    fn fmt_extra(&self, kind: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt_extra(kind, f)
    }

    crate::plan_nodes::as_own_source!(0);
}

/// A store whose files are read as the text that they are compressed from; sizes and ranges are still those of what is stored.
#[derive(Debug)]
struct Decompressed {
    stored: Arc<dyn ObjectStore>,
    compression: FileCompressionType,
}

forebay_types::shown_as!(Decompressed: stored);

/// What a store said as it is; else what it gave is damaged.
fn fault(file: &Path, error: io::Error) -> object_store::Error {
    error.downcast::<object_store::Error>().unwrap_or_else(|error| {
        let name = shown(file.as_ref());
        let damaged = Error::corrupt(format!("'{name}' is damaged or cut short: {error}; write it again"));
        object_store::Error::Generic { store: "forebay", source: Box::new(damaged) }
    })
}

#[async_trait]
impl ObjectStore for Decompressed {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> StoreResult<PutResult> {
        self.stored.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> StoreResult<Box<dyn MultipartUpload>> {
        self.stored.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let got = self.stored.get_opts(location, options).await?;
        let (meta, range, attributes) = (got.meta.clone(), got.range.clone(), got.attributes.clone());
        let file = location.clone();
        let text = decompressed(self.compression, got.into_stream()).map_err(move |error| fault(&file, error));
        Ok(GetResult { payload: GetResultPayload::Stream(text.boxed()), meta, range, attributes })
    }

    forebay_types::handed_on! {
        [stored]
        fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>>;
        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>>;
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.stored.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.stored.copy_opts(from, to, options).await
    }
}
