//! Parquet files, whose pages are checked before the engine's reader decodes them: their headers, what they become when they are
//! decompressed, and how many lengths text says that it has. The source stays the engine's own, which others look for in plans: only where its readers get their bytes is another.

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
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use forebay_parquet_pages::{column_of, look};
use forebay_table::{PageFault, ParquetPage};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectMeta;

use super::bounds::decoded_bytes_max;
use super::fault::{self, Fault, damage};
use crate::scans::{config, parquet_source};

/// Bytes of a page that are decoded however little SQL may use: one value alone may have as many, and what decoders hold is not what
/// queries count.
const PAGE_BYTES_MIN: u64 = 64 << 20;
/// Columns that lie at one place, whose bytes are checked once for each: none do in the files of writers.
const COLUMNS_AT_A_PLACE_MAX: usize = 8;

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
    let page_bytes_max = page_bytes_max.max(PAGE_BYTES_MIN);
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
        let without_index = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let mut read = self.own.as_mut().get_metadata(Some(&without_index)).await?;
        // The decoder may have read the index of pages on its own, or through another reader of the file.
        if read.offset_index().is_none() && has_index(&read) {
            read = self.own.as_mut().get_metadata(None).await?;
        }
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
        let over = before.iter().rev().take_while(|place| place.end_max >= range.end).filter(|place| place.end >= range.end);
        let mut columns = 0;
        for place in over {
            columns += 1;
            if columns > COLUMNS_AT_A_PLACE_MAX {
                return damage(format!("more than {COLUMNS_AT_A_PLACE_MAX} of its columns lie at one place"));
            }
            self.check_column(place, range, bytes, page_bytes_max)?;
        }
        if columns > 0 { Ok(()) } else { damage("pages lie outside of its columns") }
    }

    fn check_column(&self, place: &Place, range: &Range<u64>, bytes: &Bytes, page_bytes_max: u64) -> fault::Result<()> {
        let chunk = self.read.row_group(place.row_group).column(place.column);
        let named = |why: String| Fault::Damage(format!("column '{}': {why}", chunk.column_path().string()));
        let mut pages: Vec<Range<u64>> = Vec::new();
        let seen = |page: &ParquetPage, place: Range<usize>| look(chunk, page, bytes.slice(place), page_bytes_max);
        for page in column_of(chunk).pages(bytes, page_bytes_max, seen) {
            let page = page.map_err(|fault| match fault {
                PageFault::Damage(why) => named(why),
                PageFault::TooLarge { bytes, most } => Fault::TooLarge { bytes, most },
            })?;
            pages.push(range.start + page.start as u64..range.start + page.end as u64);
        }
        debug_assert!(pages.is_sorted_by(|one, next| one.end == next.start), "each page begins where the one before it ends");
        let index = self.read.offset_index().and_then(|index| index.get(place.row_group)?.get(place.column));
        let is_whole = (range.start, range.end) == (place.start, place.end);
        for said in index.into_iter().flat_map(|index| index.page_locations()) {
            let begins = u64::try_from(said.offset).ok();
            let page = begins.and_then(|begins| pages.binary_search_by_key(&begins, |page| page.start).ok());
            match page.map(|page| &pages[page]) {
                // The decoder takes what the index says, and what comes behind a page may be more of what is compressed.
                Some(page) if u64::try_from(said.compressed_page_size).is_ok_and(|size| size > page.end - page.start) => {
                    return Err(named("its index has a page that is longer than it says itself".to_string()));
                }
                // Of a column that is read as a whole, the decoder takes pages from where the index says that they are.
                None if is_whole => return Err(named("its index has a page where none begins".to_string())),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a file has an index of its pages, read or not.
fn has_index(footer: &ParquetMetaData) -> bool {
    footer.row_groups().iter().flat_map(|group| group.columns()).any(|chunk| chunk.offset_index_offset().is_some())
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
    let is_in_order = |two: &[Place]| two[0].start <= two[1].start && two[0].end_max <= two[1].end_max;
    debug_assert!(places.windows(2).all(is_in_order), "columns are found by where they begin, and how far those before them go");
    places
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::basic::Compression;
    use datafusion::parquet::file::metadata::ParquetMetaDataReader;
    use datafusion::parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
    use datafusion::parquet::file::properties::WriterProperties;

    use super::*;

    const MOST: u64 = 1 << 20;

    /// A file of two row groups with several pages, and its footer.
    fn file() -> (Bytes, ParquetMetaData) {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("word {}", row % 9))));
        let batch = RecordBatch::try_from_iter([("id", ids), ("word", words)]).unwrap();
        let properties = WriterProperties::builder().set_data_page_row_count_limit(100).set_write_batch_size(50);
        let properties = properties.set_max_row_group_row_count(Some(500)).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let bytes = Bytes::from(bytes);
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        let footer = reader.parse_and_finish(&bytes).unwrap();
        (bytes, footer)
    }

    fn told(footer: &Footer, file: &Bytes, range: Range<u64>) -> Option<String> {
        let bytes = file.slice(range.start as usize..range.end as usize);
        match footer.check(&range, &bytes, MOST) {
            Ok(()) => None,
            Err(Fault::Damage(why)) => Some(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn columns_and_some_of_their_pages_are_found_by_where_they_are() {
        let (file, read) = file();
        assert!(has_index(&read) && read.num_row_groups() == 2);
        let footer = Footer::of(Arc::new(read.clone()));
        for (row_group, group) in read.row_groups().iter().enumerate() {
            for (column, chunk) in group.columns().iter().enumerate() {
                let (start, length) = chunk.byte_range();
                assert_eq!(told(&footer, &file, start..start + length), None);
                let pages = read.offset_index().unwrap()[row_group][column].page_locations();
                let (first, last) = (pages[0].offset as u64, pages.last().unwrap().offset as u64);
                assert!(pages.len() > 2 && first > start, "a dictionary and pages: {pages:?}");
                for range in [start..first, first..last, last..start + length, start..start] {
                    assert_eq!(told(&footer, &file, range.clone()), None, "{range:?}");
                }
                for range in [start..first - 1, first + 1..last, start + 1..start + length] {
                    assert!(told(&footer, &file, range.clone()).is_some(), "{range:?}");
                }
                let short = footer.check(&(start..start + length), &file.slice(..9), MOST);
                assert!(matches!(short, Err(Fault::Damage(why)) if why.contains("shorter")));
                let large = footer.check(&(start..first), &file.slice(start as usize..first as usize), 8);
                assert!(matches!(large, Err(Fault::TooLarge { most: 8, .. })));
            }
        }
        for range in [0..file.len() as u64, 0..4, file.len() as u64 - 9..file.len() as u64] {
            assert_eq!(told(&footer, &file, range.clone()).unwrap(), "pages lie outside of its columns", "{range:?}");
        }
    }

    #[test]
    fn a_page_that_becomes_more_or_less_than_it_says_is_damage() {
        let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("word {}", row % 9))));
        let batch = RecordBatch::try_from_iter([("word", words)]).unwrap();
        let codecs = [
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
            Compression::BROTLI(Default::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
            Compression::ZSTD(Default::default()),
        ];
        for codec in codecs {
            let properties = WriterProperties::builder().set_compression(codec).build();
            let mut bytes = Vec::new();
            let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let read = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes.clone())).unwrap();
            let (start, length) = read.row_group(0).column(0).byte_range();
            let footer = Footer::of(Arc::new(read));
            assert_eq!(told(&footer, &Bytes::from(bytes.clone()), start..start + length), None, "{codec}");
            // The dictionary of nine words of ten bytes: that it is one, and that it becomes 90 bytes, as Thrift writes it.
            let at = start as usize;
            assert_eq!(bytes[at..at + 5], *b"\x15\x04\x15\xb4\x01", "{codec}");
            for (says, becomes) in [(89_u8, "more"), (91, "90")] {
                bytes[at + 3] = 0x80 | ((says << 1) & 0x7f);
                let why = told(&footer, &Bytes::from(bytes.clone()), start..start + length);
                if matches!(codec, Compression::LZ4 | Compression::LZ4_RAW | Compression::ZSTD(_)) {
                    assert_eq!(why, None, "{codec}: its decoder takes no more than the page says, and tells");
                    continue;
                }
                let says = format!("column 'word': a page says that what is compressed of it becomes {says} bytes");
                assert_eq!(why, Some(format!("{says}, and it becomes {becomes}")), "{codec}");
            }
        }
    }

    #[test]
    fn a_page_is_no_longer_than_it_says_whatever_the_index_says() {
        let (file, read) = file();
        let (start, length) = read.row_group(0).column(0).byte_range();
        let honest = read.offset_index().unwrap().clone();
        let said = |longer: i32| {
            let mut index = honest.clone();
            let pages = index[0][0].page_locations().iter().map(|page| {
                let compressed_page_size = page.compressed_page_size + longer;
                PageLocation { compressed_page_size, ..page.clone() }
            });
            index[0][0] = OffsetIndexMetaData { page_locations: pages.collect(), unencoded_byte_array_data_bytes: None };
            let read = read.clone().into_builder().set_offset_index(Some(index)).build();
            told(&Footer::of(Arc::new(read)), &file, start..start + length)
        };
        assert_eq!(said(0), None);
        assert_eq!(said(1).unwrap(), "column 'id': its index has a page that is longer than it says itself");
    }

    #[test]
    fn bytes_are_not_checked_for_any_number_of_columns_that_lie_there() {
        let (file, read) = file();
        let (start, length) = read.row_group(0).column(0).byte_range();
        let end = start + length;
        let over = |columns: usize| Footer {
            read: Arc::new(read.clone()),
            places: OnceLock::from(
                (0..columns).map(|_| Place { start, end, end_max: end, row_group: 0, column: 0 }).collect::<Vec<_>>(),
            ),
        };
        assert_eq!(told(&over(COLUMNS_AT_A_PLACE_MAX), &file, start..end), None);
        let why = told(&over(COLUMNS_AT_A_PLACE_MAX + 1), &file, start..end).unwrap();
        assert!(why.contains("lie at one place"), "{why}");
    }
}
