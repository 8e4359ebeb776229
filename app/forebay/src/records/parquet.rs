//! Records of Parquet files, with only the wanted columns read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use datafusion::parquet::basic::Type;
use datafusion::parquet::file::metadata::ColumnChunkMetaData;
use forebay_parquet_pages::{column_of, is_looked_at, look};
use forebay_table::{PageFault, ParquetColumn, ParquetCopies, ParquetPage};
use forebay_types::{Error, Result};

use super::arrow::{Rows, cut};
use super::footer::check_footer;
use super::{Input, Piece, Wanted};

/// Rows that are decoded together: each may take as much as all before it, where they are kept as what differs from the one before.
const ROWS_TOGETHER: usize = 256;
/// Bytes that a page takes at most when it is decoded, which is all at once: writers make pages of one or a few MiB, and one value alone
/// may have 64.
const PAGE_BYTES_MAX: u64 = 256 << 20;
/// The same of a file with many columns, each of which has a page in memory at a time, and of all these together.
const PAGE_BYTES_MIN: u64 = 16 << 20;
const PAGES_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a page's header that are read first, and those that it has at most: it may have the least and the greatest value.
const HEADER_BYTES: u64 = 4 << 10;
const HEADER_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a value of fixed length at most.
const FIXED_BYTES_MAX: i32 = 1 << 15;

pub(super) fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Input> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    check_footer(&file, bytes)?;
    let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(invalid)?;
    let names: Vec<&str> = found.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let places = wanted.places(&names)?;
    let columns = found.parquet_schema();
    for (leaf, column) in columns.columns().iter().enumerate() {
        if column.type_length() > FIXED_BYTES_MAX && places.contains(&columns.get_column_root_idx(leaf)) {
            let most = FIXED_BYTES_MAX >> 10;
            return Err(Error::invalid(format!("values of column {} have more than {most} KiB, each of them", column.name())));
        }
    }
    let most = page_bytes_max(places.len());
    for (leaf, column) in columns.columns().iter().enumerate() {
        if !places.contains(&columns.get_column_root_idx(leaf)) {
            continue;
        }
        let chunks: Vec<_> = found.metadata().row_groups().iter().map(|group| group.column(leaf)).collect();
        check_column(&file, bytes, &chunks, most).map_err(|error| error.context(format!("column {}", column.path().string())))?;
    }
    let fields: Vec<FieldRef> = found.schema().fields().iter().map(in_views).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, found.schema().metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(&schema));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options).map_err(invalid)?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mut rows = Rows::new(&schema, &places, wanted)?;
    let total = reader.metadata().file_metadata().num_rows().max(1) as u64;
    let mask = ProjectionMask::roots(reader.parquet_schema(), places);
    let batches = reader.with_projection(mask).with_batch_size(ROWS_TOGETHER).build().map_err(invalid)?;
    let parts = batches.flat_map(|batch| -> Vec<Result<RecordBatch>> {
        match batch.map_err(invalid).and_then(|batch| cut(&batch)) {
            Ok(parts) => parts.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    });
    let columns = rows.columns.clone();
    let records = parts.map(move |part| {
        let records = rows.records(&part?)?;
        Ok(Piece { bytes: bytes * records.len() as u64 / total, records })
    });
    Ok(Input { columns, bytes, records: Box::new(records) })
}

/// Bytes of a page at most where so many columns are read side by side.
fn page_bytes_max(columns: usize) -> u64 {
    (PAGES_BYTES_MAX / columns.max(1) as u64).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
}

/// Checks a column of all row groups, whose rows may be decoded together.
fn check_column(file: &File, file_bytes: u64, chunks: &[&ColumnChunkMetaData], most: u64) -> Result<()> {
    let Some(first) = chunks.first() else { return Ok(()) };
    let values = chunks.iter().fold(0_i64, |values, chunk| values.saturating_add(chunk.num_values()));
    let in_views = first.column_path().parts().len() == 1 && first.column_type() == Type::BYTE_ARRAY;
    let mut copies = ParquetCopies::new(ParquetColumn { values, ..column_of(first) }, ROWS_TOGETHER as u64, most, in_views);
    copies.check_fixed()?;
    chunks.iter().try_for_each(|chunk| check_pages(file, file_bytes, chunk, most, &mut copies))
}

/// Checks a column's pages, each of `most` bytes at most, as far as a decoder makes room for what they say or become.
fn check_pages(file: &File, file_bytes: u64, chunk: &ColumnChunkMetaData, most: u64, copies: &mut ParquetCopies) -> Result<()> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let place = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    let place = place.filter(|(start, length)| start.checked_add(*length).is_some_and(|end| end <= file_bytes));
    let (mut at, mut left) = place.ok_or_else(|| Error::corrupt("it lies outside of the file"))?;
    let column = column_of(chunk);
    while left > 0 {
        let page = page_at(file, &column, (at, left), most)?;
        if is_looked_at(chunk, &page, copies) {
            let whole = HEADER_BYTES_MAX + most;
            if page.bytes > whole {
                return Err(PageFault::TooLarge { bytes: page.bytes, most: whole }.into());
            }
            let mut bytes = vec![0; page.bytes as usize];
            file.read_exact_at(&mut bytes, at)?;
            look(chunk, &page, bytes.into(), copies)?;
        } else {
            copies.pass(&page)?;
        }
        (at, left) = (at + page.bytes, left - page.bytes);
    }
    Ok(())
}

/// The page that begins at a place of a file, as its header says it.
fn page_at(file: &File, column: &ParquetColumn, (at, left): (u64, u64), most: u64) -> Result<ParquetPage> {
    let mut window = HEADER_BYTES;
    loop {
        let mut head = vec![0; window.min(left) as usize];
        file.read_exact_at(&mut head, at)?;
        if let Some(page) = column.page(&head, left, most)? {
            return Ok(page);
        }
        if window >= left.min(HEADER_BYTES_MAX) {
            return Err(Error::corrupt("the header of a page has no end"));
        }
        window *= 16;
    }
}

/// A column whose text is not copied for each row that has it.
fn in_views(field: &FieldRef) -> FieldRef {
    match view_of(field.data_type()) {
        Some(view) => Arc::new(field.as_ref().clone().with_data_type(view)),
        None => Arc::clone(field),
    }
}

fn view_of(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        DataType::Dictionary(_, value) => view_of(value),
        _ => None,
    }
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("it can't be read as Parquet: {error}"))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        ArrayRef, BinaryArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array, LargeStringArray, ListBuilder,
        StringArray, StringBuilder,
    };
    use datafusion::arrow::datatypes::Int32Type;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::basic::{Compression, Encoding};
    use datafusion::parquet::file::metadata::ParquetMetaData;
    use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};
    use forebay_shard::{Key, Value};
    use forebay_shard_store::ColumnKind;
    use forebay_types::ErrorKind;

    use super::super::{PIECE_BYTES, bytes_of};
    use super::*;

    fn file(columns: Vec<(&str, ArrayRef)>) -> tempfile::NamedTempFile {
        written(columns, None)
    }

    fn written(columns: Vec<(&str, ArrayRef)>, properties: Option<WriterProperties>) -> tempfile::NamedTempFile {
        closed(&RecordBatch::try_from_iter(columns).unwrap(), properties).0
    }

    fn closed(batch: &RecordBatch, properties: Option<WriterProperties>) -> (tempfile::NamedTempFile, ParquetMetaData) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), properties).unwrap();
        writer.write(batch).unwrap();
        (file, writer.close().unwrap())
    }

    fn dictionary(text: &str, rows: usize) -> ArrayRef {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
        Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0; rows]), texts))
    }

    fn numbers(rows: usize) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(0..rows as i64))
    }

    #[test]
    fn a_text_of_many_rows_is_copied_for_a_few_at_a_time() {
        let (rows, text) = (4096, "x".repeat(64 << 10));
        let file = file(vec![("id", numbers(rows)), ("text", dictionary(&text, rows))]);
        assert!(file.as_file().metadata().unwrap().len() < 1 << 20);
        let mut ids = 0..rows as u64;
        for piece in open(file.path(), &Wanted { key: "id", columns: None, in_paths: &[], like: None }).unwrap().records {
            let records = piece.unwrap().records;
            assert!(records.iter().map(bytes_of).sum::<usize>() <= PIECE_BYTES + text.len());
            for (key, values) in records {
                assert_eq!(Some(key), ids.next().map(Key::U64));
                assert!(matches!(&values[..], [Value::Text(read)] if *read == text));
            }
        }
        assert_eq!(ids.next(), None);
    }

    #[test]
    fn text_and_bytes_of_all_widths_are_read() {
        let texts = ["a".to_string(), String::new(), "longer than twelve bytes".to_string()];
        let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let file = file(vec![
            ("id", numbers(3)),
            ("short", Arc::new(StringArray::from(texts.to_vec()))),
            ("large", Arc::new(LargeStringArray::from(texts.to_vec()))),
            ("one", dictionary("the same", 3)),
            ("bytes", Arc::new(BinaryArray::from(bytes))),
        ]);
        let input = open(file.path(), &Wanted { key: "id", columns: None, in_paths: &[], like: None }).unwrap();
        let kinds: Vec<ColumnKind> = input.columns.attributes().map(|column| column.kind).collect();
        assert_eq!(kinds, [ColumnKind::Text, ColumnKind::Text, ColumnKind::Text, ColumnKind::Binary]);
        let records: Vec<_> = input.records.flat_map(|piece| piece.unwrap().records).collect();
        for (text, (_, values)) in texts.iter().zip(&records) {
            let text = Value::Text(text.clone());
            let Value::Text(plain) = &text else { unreachable!() };
            let bytes = Value::Bytes(plain.clone().into_bytes());
            assert_eq!(*values, [text.clone(), text.clone(), Value::Text("the same".into()), bytes]);
        }
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn a_dictionary_of_more_values_than_it_has_bytes_for_is_refused() {
        let file = file(vec![("id", numbers(10_000))]);
        let mut bytes = std::fs::read(file.path()).unwrap();
        // How many values there are, 10,000, as Thrift writes it; and 1,048,575, which takes as many bytes.
        let at = bytes.windows(4).position(|bytes| bytes == b"\x15\xa0\x9c\x01").unwrap();
        bytes[at..at + 4].copy_from_slice(b"\x15\xfe\xff\x7f");
        std::fs::write(file.path(), bytes).unwrap();
        let error = open(file.path(), &Wanted { key: "id", columns: None, in_paths: &[], like: None }).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains("column id: a dictionary says that it has 1048575 values"), "{error}");
    }

    #[test]
    fn a_page_that_becomes_more_or_less_than_it_says_is_refused() {
        let codecs = [Compression::GZIP(Default::default()), Compression::BROTLI(Default::default()), Compression::SNAPPY];
        for codec in codecs {
            let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("word {}", row % 7))));
            let properties = WriterProperties::builder().set_compression(codec).build();
            let file = written(vec![("id", numbers(1_000)), ("word", words)], Some(properties));
            let wanted = Wanted { key: "id", columns: None, in_paths: &[], like: None };
            let read: usize = open(file.path(), &wanted).unwrap().records.map(|piece| piece.unwrap().records.len()).sum();
            assert_eq!(read, 1_000);
            let mut bytes = std::fs::read(file.path()).unwrap();
            // The dictionary of seven words of ten bytes: that it is one, and that it becomes 70 bytes, as Thrift writes it.
            let at = bytes.windows(5).position(|bytes| bytes == b"\x15\x04\x15\x8c\x01").unwrap();
            for (says, becomes) in [(69_u8, "more"), (71, "70")] {
                bytes[at + 3] = 0x80 | ((says << 1) & 0x7f);
                std::fs::write(file.path(), &bytes).unwrap();
                let error = open(file.path(), &wanted).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{codec}: {error}");
                let told = format!("what is compressed of it becomes {says} bytes, and it becomes {becomes}");
                assert!(error.message().contains("column word: ") && error.message().contains(&told), "{codec}: {error}");
            }
        }
    }

    #[test]
    fn pages_of_many_columns_have_less_room_each() {
        assert_eq!([0, 1, 4].map(page_bytes_max), [PAGE_BYTES_MAX; 3]);
        assert!(page_bytes_max(14) > 64 << 20, "as one value may have");
        for columns in 5..=64 {
            assert!(page_bytes_max(columns) * columns as u64 <= PAGES_BYTES_MAX, "{columns}");
        }
        assert_eq!(page_bytes_max(1000), PAGE_BYTES_MIN);
    }

    #[test]
    fn a_page_of_more_than_there_may_be_is_refused() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let texts = (0..4096).map(|row| (row % 3 > 0).then(|| format!("line {row}")));
            let batch = RecordBatch::try_from_iter([("text", Arc::new(StringArray::from_iter(texts)) as ArrayRef)]).unwrap();
            let properties = WriterProperties::builder().set_writer_version(version).build();
            let (file, written) = closed(&batch, Some(properties));
            let (chunk, bytes) = (written.row_group(0).column(0), file.as_file().metadata().unwrap().len());
            check_column(file.as_file(), bytes, &[chunk], PAGE_BYTES_MAX).unwrap();
            let error = check_column(file.as_file(), bytes, &[chunk], 1 << 10).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(
                error.message().contains("1.00 KiB are the most") || error.message().contains("1 KiB are the most"),
                "{error}"
            );
        }
    }

    #[test]
    fn values_that_are_copied_for_each_row_take_no_more_together_than_there_may_be() {
        let begin = "x".repeat(1_100);
        let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("{begin}{row}"))));
        let delta = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BYTE_ARRAY);
        let mut lists = ListBuilder::new(StringBuilder::new());
        for _ in 0..1_000 {
            lists.values().append_value(&begin);
            lists.append(true);
        }
        let lists: ArrayRef = Arc::new(lists.finish());
        for (column, properties) in [(text, delta), (lists, WriterProperties::builder())] {
            let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
            let (file, written) = closed(&batch, Some(properties.build()));
            let (chunk, bytes) = (written.row_group(0).column(0), file.as_file().metadata().unwrap().len());
            check_column(file.as_file(), bytes, &[chunk], 2 << 20).unwrap();
            let error = check_column(file.as_file(), bytes, &[chunk], 1 << 20).unwrap_err();
            assert!(error.kind() == ErrorKind::Invalid && error.message().contains("1.00 MiB are the most"), "{error}");
            // Rows of several row groups are decoded together.
            let two = check_column(file.as_file(), bytes, &[chunk, chunk], 2 << 20).unwrap_err();
            assert!(two.message().contains("2.00 MiB are the most"), "{two}");
        }
    }

    #[test]
    fn nulls_take_what_values_of_one_length_take() {
        let nulls: ArrayRef = Arc::new(FixedSizeBinaryArray::new_null(1 << 16, 100));
        let batch = RecordBatch::try_from_iter_with_nullable([("nulls", nulls, true)]).unwrap();
        let (file, written) = closed(&batch, None);
        let (chunk, bytes) = (written.row_group(0).column(0), file.as_file().metadata().unwrap().len());
        assert!(bytes < 10_000);
        check_column(file.as_file(), bytes, &[chunk], 8 << 20).unwrap();
        let error = check_column(file.as_file(), bytes, &[chunk], 1 << 20).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("1.00 MiB are the most"), "{error}");
    }

    #[test]
    fn text_in_delta_encodings_is_read_if_it_has_no_more_lengths_than_values() {
        let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("text {row}"))));
        for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let properties = WriterProperties::builder().set_writer_version(version).set_dictionary_enabled(false);
                let properties = properties.set_column_encoding("text".into(), encoding).build();
                let file = written(vec![("id", numbers(1_000)), ("text", Arc::clone(&text))], Some(properties));
                let wanted = Wanted { key: "id", columns: None, in_paths: &[], like: None };
                let records: Vec<_> =
                    open(file.path(), &wanted).unwrap().records.flat_map(|piece| piece.unwrap().records).collect();
                assert_eq!(records.len(), 1_000);
                assert!(matches!(&records[999].1[..], [Value::Text(read)] if read == "text 999"));
                let mut bytes = std::fs::read(file.path()).unwrap();
                // Blocks of 128 in 4 parts, and 1,000 lengths; and 2^40, over what stands behind that.
                let at = bytes.windows(5).position(|bytes| bytes == b"\x80\x01\x04\xe8\x07").unwrap();
                bytes[at + 3..at + 9].copy_from_slice(b"\x80\x80\x80\x80\x80\x20");
                std::fs::write(file.path(), bytes).unwrap();
                let error = open(file.path(), &wanted).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                let says = "column text: a page says that its text has 1099511627776 lengths, and has 1000 values";
                assert!(error.message().contains(says), "{error}");
            }
        }
    }

    #[test]
    fn values_of_a_large_fixed_length_are_refused() {
        let value = vec![0u8; FIXED_BYTES_MAX as usize + 1];
        let wide: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([value].into_iter()).unwrap());
        let file = file(vec![("id", numbers(1)), ("wide", wide)]);
        let error = open(file.path(), &Wanted { key: "id", columns: None, in_paths: &[], like: None }).err().unwrap();
        assert!(error.message().contains("column wide"), "{error}");
        let only = ["id".to_string()];
        assert!(open(file.path(), &Wanted { key: "id", columns: Some(&only), in_paths: &[], like: None }).is_ok());
    }
}
