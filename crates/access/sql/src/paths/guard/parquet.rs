//! Parquet files, whose pages are checked by their headers before the engine's reader decodes them. The source stays the engine's own,
//! which others look for in plans: only where its readers get their bytes is another.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use forebay_table::{PageFault, ParquetColumn};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectMeta;

use super::bounds::decoded_bytes_max;
use super::fault::{self, Fault, damage};
use crate::scans::{config, parquet_source};

/// A part of a plan that came from another process, whose scans of Parquet files check pages as those do that are planned here.
pub(crate) fn with_checked_pages(plan: Arc<dyn ExecutionPlan>, runtime: &RuntimeEnv) -> Result<Arc<dyn ExecutionPlan>> {
    let page_bytes_max = decoded_bytes_max(runtime);
    plan.transform_up(|node| {
        Ok(match checked(&node, page_bytes_max) {
            Some(checked) => Transformed::yes(checked),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// A scan of Parquet files that checks pages, of one that doesn't; none of any other node.
pub(super) fn checked(node: &Arc<dyn ExecutionPlan>, page_bytes_max: u64) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = config(node)?;
    let source = parquet_source(scan)?;
    // Both planning and what reads plans of other processes set one.
    let own = Arc::clone(source.parquet_file_reader_factory()?);
    let mut scan = scan.clone();
    scan.file_source = Arc::new(source.clone().with_parquet_file_reader_factory(Arc::new(Files { own, page_bytes_max })));
    let node = node.downcast_ref::<DataSourceExec>()?.clone();
    Some(Arc::new(node.with_data_source(Arc::new(scan))))
}

/// Opens files whose pages are checked.
#[derive(Debug)]
struct Files {
    own: Arc<dyn ParquetFileReaderFactory>,
    page_bytes_max: u64,
}

impl ParquetFileReaderFactory for Files {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        footer_bytes: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let meta = file.object_meta.clone();
        let own = self.own.create_reader(partition, file, footer_bytes, metrics)?;
        Ok(Box::new(Checked { own, meta, page_bytes_max: self.page_bytes_max, footer: None }))
    }
}

/// A file that is being read.
struct Checked {
    own: Box<dyn AsyncFileReader + Send>,
    meta: ObjectMeta,
    page_bytes_max: u64,
    /// What the decoder has too; none where it may have been told more since.
    footer: Option<Arc<Footer>>,
}

impl Checked {
    async fn footer(&mut self) -> ParquetResult<Arc<Footer>> {
        if let Some(footer) = &self.footer {
            return Ok(Arc::clone(footer));
        }
        // With where pages are, which the decoder may have read on its own or for another reader of the file.
        let read = self.own.as_mut().get_metadata(None).await?;
        Ok(Arc::clone(self.footer.insert(Arc::new(Footer::of(read)))))
    }
}

impl AsyncFileReader for Checked {
    /// Filters and the index of pages come this way, and no pages.
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.footer = None;
        self.own.as_mut().get_bytes(range)
    }

    /// Pages come this way, and nothing else.
    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let footer = self.footer().await?;
            let bytes = self.own.as_mut().get_byte_ranges(ranges.clone()).await?;
            for (range, bytes) in ranges.iter().zip(&bytes) {
                let told = footer.check(range, bytes, self.page_bytes_max);
                told.map_err(|fault| ParquetError::External(Box::new(fault.of(&self.meta))))?;
            }
            Ok(bytes)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let read = self.own.as_mut().get_metadata(options).await?;
            self.footer = Some(Arc::new(Footer::of(Arc::clone(&read))));
            Ok(read)
        }
        .boxed()
    }
}

/// A footer, in which columns are found by where they are.
struct Footer {
    read: Arc<ParquetMetaData>,
    places: OnceLock<Vec<Place>>,
}

/// Where a column of a row group is.
struct Place {
    start: u64,
    end: u64,
    /// The greatest end of it and all that begin before it: columns may lie on each other, if a file means harm.
    end_max: u64,
    row_group: usize,
    column: usize,
}

impl Footer {
    fn of(read: Arc<ParquetMetaData>) -> Self {
        Self { read, places: OnceLock::new() }
    }

    /// Checks the pages of a range that a decoder has asked for: a column's, or some of its pages.
    fn check(&self, range: &Range<u64>, bytes: &Bytes, page_bytes_max: u64) -> fault::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if bytes.len() as u64 != range.end - range.start {
            return damage("it is shorter than its footer says");
        }
        let places = self.places.get_or_init(|| places(&self.read));
        let before = &places[..places.partition_point(|place| place.start <= range.start)];
        let mut is_known = false;
        for place in before.iter().rev().take_while(|place| place.end_max >= range.end).filter(|place| place.end >= range.end) {
            is_known = true;
            self.check_column(place, range, bytes, page_bytes_max)?;
        }
        if is_known { Ok(()) } else { damage("pages lie outside of its columns") }
    }

    fn check_column(&self, place: &Place, range: &Range<u64>, bytes: &Bytes, page_bytes_max: u64) -> fault::Result<()> {
        let chunk = self.read.row_group(place.row_group).column(place.column);
        let named = |why: String| Fault::Damage(format!("column '{}': {why}", chunk.column_path().string()));
        let mut starts = Vec::new();
        for page in pages_of(chunk).pages(bytes, page_bytes_max) {
            let page = page.map_err(|fault| match fault {
                PageFault::Damage(why) => named(why),
                PageFault::TooLarge { bytes, most } => Fault::TooLarge { bytes, most },
            })?;
            starts.push(range.start + page.start as u64);
        }
        // Of a column that is read as a whole, the decoder takes pages from where the index says that they are.
        if (range.start, range.end) != (place.start, place.end) {
            return Ok(());
        }
        let index = self.read.offset_index().and_then(|index| index.get(place.row_group)?.get(place.column));
        let is_start = |offset: i64| u64::try_from(offset).is_ok_and(|offset| starts.binary_search(&offset).is_ok());
        match index.is_none_or(|index| index.page_locations().iter().all(|page| is_start(page.offset))) {
            true => Ok(()),
            false => Err(named("its index has a page where none begins".to_string())),
        }
    }
}

fn pages_of(chunk: &ColumnChunkMetaData) -> ParquetColumn {
    ParquetColumn {
        physical_type: chunk.column_type() as i32,
        type_length: chunk.column_descr().type_length(),
        values: chunk.num_values(),
        is_compressed: !matches!(chunk.compression(), Compression::UNCOMPRESSED),
    }
}

/// Where all columns are, in the order of the file.
fn places(footer: &ParquetMetaData) -> Vec<Place> {
    let mut places = Vec::new();
    for (row_group, group) in footer.row_groups().iter().enumerate() {
        for (column, chunk) in group.columns().iter().enumerate() {
            let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
            let (Ok(start), Ok(length)) = (u64::try_from(start), u64::try_from(chunk.compressed_size())) else { continue };
            let end = start.saturating_add(length);
            places.push(Place { start, end, end_max: end, row_group, column });
        }
    }
    places.sort_by_key(|place| place.start);
    let mut end_max = 0;
    for place in &mut places {
        end_max = place.end.max(end_max);
        place.end_max = end_max;
    }
    places
}
