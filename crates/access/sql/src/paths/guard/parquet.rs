//! Parquet files, whose pages are checked before the engine's reader decodes them: their headers, what they become when they are
//! decompressed, how many lengths text says that it has, and what the rows of a batch take. The source stays the engine's
//! own, which others look for in plans: only where its readers get their bytes is another.

mod lacking;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetFileReaderFactory};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{Encoding, Type};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use forebay_parquet_pages::{column_of, look};
use forebay_table::{PageFault, ParquetCopies, ParquetPage};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectMeta;

use self::lacking::lacking;
use super::decoded_bytes_max;
use super::fault::{self, Fault, damage};
use crate::paths::widths::width;
use crate::scans::{config, parquet_source, with_nan};
use crate::settings::FOOTER_HINT_BYTES;

/// Bytes of a page that are decoded however little SQL may use: one value alone may have as many, and what decoders hold is not what
/// queries count.
const PAGE_BYTES_MIN: u64 = 64 << 20;
/// Rows of a batch, of a scan that was planned by a release that does not say it.
const BATCH_ROWS: usize = 8192;
/// Columns that lie at one place, whose bytes are checked once for each: none do in the files of writers.
const COLUMNS_AT_A_PLACE_MAX: usize = 8;

/// A part of a plan that came from another process, whose scans of Parquet files check pages as those do that are planned here.
pub(crate) fn with_checked_pages(plan: Arc<dyn ExecutionPlan>, runtime: &RuntimeEnv) -> Result<Arc<dyn ExecutionPlan>> {
    let page_bytes_max = decoded_bytes_max(runtime);
    plan.transform_up(|node| {
        Ok(match checked(&node, page_bytes_max, BATCH_ROWS, false) {
            Some(checked) => Transformed::yes(checked),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// A scan of Parquet files that checks pages, of one that doesn't; none of any other node. Its batches have `batch_rows` rows, if it says
/// nothing else; `filters_inside` says that its reader may be given filters later.
pub(super) fn checked(
    node: &Arc<dyn ExecutionPlan>,
    page_bytes_max: u64,
    batch_rows: usize,
    filters_inside: bool,
) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = config(node)?;
    let source = parquet_source(scan)?;
    // Both planning and what reads plans of other processes set one.
    let own = Arc::clone(source.parquet_file_reader_factory()?);
    let batch_rows = scan.batch_size.unwrap_or(batch_rows).max(1);
    let fields = scan.file_schema().fields().iter();
    let views = fields.filter(|field| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView));
    let page_bytes_max = page_bytes_max.max(PAGE_BYTES_MIN);
    let bounds = Arc::new(Bounds {
        page_bytes_max,
        batch_rows: batch_rows as u64,
        filters_inside: filters_inside || source.table_parquet_options().global.pushdown_filters,
        views: views.map(|field| field.name().clone()).collect(),
        wide: wide(scan, page_bytes_max / batch_rows as u64),
    });
    let mut scan = scan.clone();
    // Executors are told, too.
    scan.batch_size = Some(batch_rows);
    scan.file_source = Arc::new(source.clone().with_parquet_file_reader_factory(Arc::new(Files { own, bounds })));
    let node = node.downcast_ref::<DataSourceExec>()?.clone();
    Some(Arc::new(node.with_data_source(Arc::new(scan))))
}

/// The columns that are asked for, if nulls of all of them take more than so many bytes a row.
fn wide(scan: &FileScanConfig, row_bytes_max: u64) -> Vec<FieldRef> {
    let fields = scan.file_schema().fields();
    let asked: Vec<FieldRef> = match scan.file_source().projection() {
        Some(projection) => projection.column_indices().into_iter().filter_map(|place| fields.get(place).cloned()).collect(),
        None => fields.iter().cloned().collect(),
    };
    let row = asked.iter().fold(0_u64, |sum, field| sum.saturating_add(width(field.data_type())));
    if row > row_bytes_max { asked } else { Vec::new() }
}

/// What pages may take.
#[derive(Debug)]
struct Bounds {
    page_bytes_max: u64,
    batch_rows: u64,
    /// Whether rows of a batch may be from anywhere in a row group, since filters leave out those between.
    filters_inside: bool,
    /// Columns of text that is not copied for each row that has it.
    views: HashSet<String>,
    /// Columns that are asked for, where a batch of nulls of them may be too much for a file that lacks them.
    wide: Vec<FieldRef>,
}

impl Bounds {
    /// What the values of a column of a row group take in a batch is counted by this. If `is_scattered`, they may be from anywhere in it.
    fn copies(&self, chunk: &ColumnChunkMetaData, is_scattered: bool) -> ParquetCopies {
        let in_views = match chunk.column_path().parts() {
            [name] => chunk.column_type() == Type::BYTE_ARRAY && self.views.contains(name),
            _ => false,
        };
        let copies = ParquetCopies::new(column_of(chunk), self.batch_rows, self.page_bytes_max, in_views);
        if is_scattered { copies.scattered() } else { copies }
    }

    /// Refuses a file of which nulls of what it lacks are too much for a batch.
    fn check_lacking(&self, read: &ParquetMetaData) -> fault::Result<()> {
        let (row, column) = lacking(&self.wide, read.file_metadata().schema_descr().root_schema());
        // As they are read. What a file says that all of them have together is another word.
        let rows = read.row_groups().iter().filter_map(|group| u64::try_from(group.num_rows()).ok());
        let rows = rows.fold(0_u64, u64::saturating_add).min(self.batch_rows);
        let (bytes, most) = (row.saturating_mul(rows), self.page_bytes_max);
        if bytes > most { Err(Fault::Lacking { column: column.to_string(), bytes, most }) } else { Ok(()) }
    }

    /// A footer without the index of its pages, if rows of a column that are far apart would be too many: all of it is read then, from its
    /// start to its end, which takes a batch at a time. Filters leave rows out all the same, and fewer pages are read of which there is an index.
    fn indexed(&self, read: Arc<ParquetMetaData>) -> ParquetResult<Arc<ParquetMetaData>> {
        let in_deltas = |encoding| matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY);
        let fits = |chunk: &ColumnChunkMetaData| {
            let in_deltas = chunk.encodings().any(in_deltas);
            // What begins as the one before it is longer than what stands there.
            let text = chunk.unencoded_byte_array_data_bytes().filter(|_| in_deltas).unwrap_or(0);
            self.copies(chunk, true).fits_whole(chunk.uncompressed_size().max(text), in_deltas)
        };
        if self.filters_inside || !has_index(&read) || read.row_groups().iter().flat_map(|group| group.columns()).all(fits) {
            return Ok(read);
        }
        let bare = |chunk: &ColumnChunkMetaData| {
            let bare = chunk.clone().into_builder().set_offset_index_offset(None).set_offset_index_length(None);
            bare.set_column_index_offset(None).set_column_index_length(None).build()
        };
        let groups = read.row_groups().iter().map(|group| {
            let columns = group.columns().iter().map(bare).collect::<ParquetResult<Vec<_>>>()?;
            group.clone().into_builder().set_column_metadata(columns).build()
        });
        let groups = groups.collect::<ParquetResult<Vec<_>>>()?;
        let bare = read.as_ref().clone().into_builder().set_row_groups(groups);
        Ok(Arc::new(bare.set_column_index(None).set_offset_index(None).build()))
    }
}

/// What was counted of each column of each row group, of which pages are read together.
type Copies = HashMap<(usize, usize), ParquetCopies>;

/// Opens files whose pages are checked.
#[derive(Debug)]
struct Files {
    own: Arc<dyn ParquetFileReaderFactory>,
    bounds: Arc<Bounds>,
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
        // Plans of other processes come without it: the last eight bytes, the rest of the footer and its index would be a request each.
        let footer_bytes = footer_bytes.or(Some(FOOTER_HINT_BYTES));
        let own = self.own.create_reader(partition, file, footer_bytes, metrics)?;
        Ok(Box::new(Checked { own, meta, bounds: Arc::clone(&self.bounds), footer: None }))
    }
}

/// A file that is being read.
struct Checked {
    own: Box<dyn AsyncFileReader + Send>,
    meta: ObjectMeta,
    bounds: Arc<Bounds>,
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
            let mut copies = Copies::new();
            for (range, bytes) in ranges.iter().zip(&bytes) {
                let told = footer.check(range, bytes, &self.bounds, &mut copies);
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
            let told = self.bounds.check_lacking(&read);
            told.map_err(|fault| ParquetError::External(Box::new(fault.of(&self.meta))))?;
            let read = self.bounds.indexed(with_nan(read)?)?;
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

impl Place {
    fn is_all_of(&self, range: &Range<u64>) -> bool {
        (range.start, range.end) == (self.start, self.end)
    }
}

impl Footer {
    fn of(read: Arc<ParquetMetaData>) -> Self {
        Self { read, places: OnceLock::new() }
    }

    /// Checks the pages of a range that a decoder has asked for: a column's, or some of its pages.
    fn check(&self, range: &Range<u64>, bytes: &Bytes, bounds: &Bounds, copies: &mut Copies) -> fault::Result<()> {
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
            let chunk = self.read.row_group(place.row_group).column(place.column);
            // Of a column that is not read as a whole, the index of pages has left rows out.
            let is_scattered = bounds.filters_inside || !place.is_all_of(range);
            let counted = copies.entry((place.row_group, place.column)).or_insert_with(|| bounds.copies(chunk, is_scattered));
            self.check_column(place, (range, bytes), bounds.page_bytes_max, counted).map_err(|fault| match fault {
                Fault::LargeColumn { column, bytes, most, .. } => Fault::LargeColumn { column, bytes, most, is_scattered },
                fault => fault,
            })?;
        }
        if columns > 0 { Ok(()) } else { damage("pages lie outside of its columns") }
    }

    fn check_column(
        &self,
        place: &Place,
        (range, bytes): (&Range<u64>, &Bytes),
        page_bytes_max: u64,
        copies: &mut ParquetCopies,
    ) -> fault::Result<()> {
        let chunk = self.read.row_group(place.row_group).column(place.column);
        let named = |why: String| Fault::Damage(format!("column '{}': {why}", chunk.column_path().string()));
        let mut pages: Vec<Range<u64>> = Vec::new();
        let mut has_dictionary = false;
        let seen = |page: &ParquetPage, at: Range<usize>| {
            has_dictionary |= page.dictionary.is_some();
            // With an index the decoder takes the first one for all pages, without one the last one before a page.
            match page.dictionary.is_some() && range.start + at.start as u64 != place.start {
                true => Err(PageFault::Damage("it has a dictionary that is not its first page".to_string())),
                false => look(chunk, page, bytes.slice(at), copies),
            }
        };
        for page in column_of(chunk).pages(bytes, page_bytes_max, seen) {
            let page = page.map_err(|fault| match fault {
                PageFault::Damage(why) => named(why),
                PageFault::TooLarge { bytes, most } => {
                    Fault::LargeColumn { column: chunk.column_path().string(), bytes, most, is_scattered: false }
                }
            })?;
            pages.push(range.start + page.start as u64..range.start + page.end as u64);
        }
        debug_assert!(pages.is_sorted_by(|one, next| one.end == next.start), "each page begins where the one before it ends");
        let index = self.read.offset_index().and_then(|index| index.get(place.row_group)?.get(place.column));
        let is_whole = place.is_all_of(range);
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
        if is_whole && let Some(said) = index.map(|index| index.page_locations()) {
            // Pages were counted as they lie there. The dictionary is none of them, or the first.
            let is_in_order = said.windows(2).all(|two| two[0].offset < two[1].offset);
            let is_said = said.first().is_some_and(|first| u64::try_from(first.offset) == Ok(place.start));
            if !is_in_order || said.len() + usize::from(has_dictionary && !is_said) != pages.len() {
                return Err(named("its index leaves pages out, or has them in another order".to_string()));
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
mod tests;
