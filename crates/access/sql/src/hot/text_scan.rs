//! What a scan takes the lines of CSV and JSON for, and where it cuts files so that its ranges are those of decoded chunks.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{CsvSource, FileGroup, FileScanConfig, JsonSource};
use datafusion_datasource::projection::SplitProjection;
use forebay_table::schema_to_bytes;
use forebay_types::{CsvLines, TEXT_CHUNK_BYTES, TextForm, TextLines};

use crate::hot::cells::{Cells, any_file};

/// What a scan of text files needs of each: what it takes the lines for, and which columns.
#[derive(Debug)]
pub(crate) struct TextScan {
    pub(super) form: Arc<TextForm>,
    /// The scan's projection, cut into columns of the file and what is made of them as the engine's own readers do it.
    pub(super) split: SplitProjection,
    /// The columns to read, ascending: those of the projection, or one of the file's when only rows count.
    pub(super) columns: Vec<usize>,
    /// Their schema.
    pub(super) stream: SchemaRef,
}

impl TextScan {
    /// None for what decoded columns can't answer: compressed files, values with lines of their own, nested columns.
    pub(crate) fn of(config: &FileScanConfig) -> Option<Self> {
        let source = config.file_source();
        let table = source.table_schema();
        if config.file_compression_type != FileCompressionType::UNCOMPRESSED || !table.virtual_columns().is_empty() {
            return None;
        }
        let lines = lines(source.as_ref())?;
        let file = table.file_schema();
        let split = SplitProjection::new(file, source.projection()?);
        let is_plain = |column: &usize| file.fields().get(*column).is_some_and(|field| !field.data_type().is_nested());
        let mut columns = split.file_indices.clone();
        if columns.is_empty() {
            columns.extend((0..file.fields().len()).find(is_plain));
        }
        if columns.is_empty() || !columns.iter().all(is_plain) {
            return None;
        }
        // What is said of columns beside their types does not change them.
        let fields = file.fields().iter().map(|field| field.as_ref().clone().with_metadata(Default::default()));
        let schema = schema_to_bytes(&Schema::new(fields.collect::<Vec<_>>())).ok()?;
        let form = TextForm { lines, schema };
        form.check().ok()?;
        Some(Self { form: Arc::new(form), stream: Arc::new(file.project(&columns).ok()?), split, columns })
    }

    /// Whether any of a scan's files may have decoded columns.
    pub(super) fn may_have(&self, config: &FileScanConfig, cells: &Cells) -> bool {
        any_file(config, |file| cells.text(&file.object_meta, &self.form).is_some())
    }

    /// The same files, each range that the optimizer has cut moved to where chunks begin. A file's ranges are all moved in the
    /// same way, so that each row is still read once, in the same order.
    pub(super) fn moved(&self, groups: &[FileGroup], cells: &Cells) -> Vec<FileGroup> {
        let of_file = |file: &PartitionedFile| {
            let mut file = file.clone();
            if file.range.is_some() && cells.text(&file.object_meta, &self.form).is_some() {
                let range = chunk_range(&file);
                file.range = Some(file_range(&range)?);
                return (!range.is_empty()).then_some(file);
            }
            Some(file)
        };
        groups.iter().map(|group| FileGroup::new(group.files().iter().filter_map(of_file).collect())).collect()
    }

    /// The parts of a file that are to be fetched: those that were not decoded when the engine last looked.
    pub(crate) fn left(&self, file: &PartitionedFile, cells: &Cells) -> Vec<Vec<Range<u64>>> {
        let Some(source) = cells.text(&file.object_meta, &self.form) else {
            let (start, end) = file.range();
            return if start < end { vec![vec![start..end]] } else { Vec::new() };
        };
        let range = chunk_range(file);
        let mut left: Vec<Range<u64>> = Vec::new();
        for chunk in chunks(&range) {
            let is_after_raw = is_whole(&range, file) && !left.is_empty();
            if !is_after_raw && cells.had(&source, chunk, &self.columns) {
                continue;
            }
            let bytes = chunk_bytes(chunk, &range);
            match left.last_mut() {
                Some(last) if last.end == bytes.start => last.end = bytes.end,
                _ => left.push(bytes),
            }
        }
        debug_assert!(left.windows(2).all(|pair| pair[0].end < pair[1].start), "what is left lies apart: {left:?}");
        left.into_iter().map(|range| vec![range]).collect()
    }
}

/// What the engine's reader is told of lines; none where a line may be less than a row.
fn lines(source: &dyn Any) -> Option<TextLines> {
    if source.is::<JsonSource>() {
        return Some(TextLines::Json);
    }
    let csv = source.downcast_ref::<CsvSource>().filter(|csv| !csv.newlines_in_values())?;
    Some(TextLines::Csv(CsvLines {
        header: csv.has_header(),
        delimiter: csv.delimiter(),
        quote: csv.quote(),
        escape: csv.escape(),
        comment: csv.comment(),
        terminator: csv.terminator(),
        truncated_rows: csv.truncate_rows(),
    }))
}

/// The bytes that are read of a file, from where a chunk begins to where one begins or to the file's end.
pub(super) fn chunk_range(file: &PartitionedFile) -> Range<u64> {
    let size = file.object_meta.size;
    let at = |byte: u64| if byte >= size { size } else { byte / TEXT_CHUNK_BYTES * TEXT_CHUNK_BYTES };
    let (start, end) = file.range();
    at(start)..at(end)
}

/// Whether a range is all of its file, which the engine then reads in one piece.
pub(super) fn is_whole(range: &Range<u64>, file: &PartitionedFile) -> bool {
    *range == (0..file.object_meta.size)
}

/// The chunks of such a range.
pub(super) fn chunks(range: &Range<u64>) -> Range<usize> {
    let chunk = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX);
    chunk(range.start / TEXT_CHUNK_BYTES)..chunk(range.end.div_ceil(TEXT_CHUNK_BYTES))
}

/// The bytes of one of them.
pub(super) fn chunk_bytes(chunk: usize, range: &Range<u64>) -> Range<u64> {
    let start = chunk as u64 * TEXT_CHUNK_BYTES;
    start..(start + TEXT_CHUNK_BYTES).min(range.end)
}

pub(super) fn file_range(range: &Range<u64>) -> Option<FileRange> {
    Some(FileRange { start: i64::try_from(range.start).ok()?, end: i64::try_from(range.end).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = TEXT_CHUNK_BYTES;

    #[test]
    fn moved_ranges_have_each_chunk_once_and_in_order() {
        for size in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5 * CHUNK + 7] {
            for pieces in [1, 2, 3, 7, 40] {
                let mut found = Vec::new();
                let mut end = 0;
                for piece in 0..pieces {
                    let (from, to) = (size * piece / pieces, size * (piece + 1) / pieces);
                    let range = chunk_range(&PartitionedFile::new("a", size).with_range(from as i64, to as i64));
                    if range.is_empty() {
                        continue;
                    }
                    assert_eq!(range.start, end, "{size} in {pieces}");
                    end = range.end;
                    found.extend(chunks(&range).map(|chunk| chunk_bytes(chunk, &range)));
                }
                let whole = chunk_range(&PartitionedFile::new("a", size));
                assert_eq!((whole.clone(), end), (0..size, size));
                assert_eq!(found, chunks(&whole).map(|chunk| chunk_bytes(chunk, &whole)).collect::<Vec<_>>());
            }
        }
    }
}
