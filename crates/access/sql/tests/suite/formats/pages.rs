//! Pages of Parquet files: those of honest writers are read, others are an error that names the file, at once and in little memory.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{
    ArrayRef, Int32Array, Int64Array, ListArray, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, Encoding};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use forebay_types::ErrorKind;

use super::damaged::{number, refused, small_lake};
use crate::support::Lake;

const ROWS: i64 = 5_000;

/// Numbers, text with nulls that repeats, and lists.
fn batch() -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let words: ArrayRef =
        Arc::new((0..ROWS).map(|row| (row % 5 != 0).then(|| format!("word {}", row % 50))).collect::<StringArray>());
    let lists = (0..ROWS).map(|row| (row % 3 != 0).then(|| vec![Some(row as i32), None]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("word", words, true), ("list", lists, true)]).unwrap()
}

fn file(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// With pages of some rows, so that an index has several.
fn some_rows_a_page() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_data_page_row_count_limit(500).set_write_batch_size(250)
}

fn codecs() -> [Compression; 7] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_all_codecs_and_versions_are_read() {
    let lake = Lake::new();
    let batch = batch();
    for codec in codecs() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for has_dictionary in [true, false] {
                let name = format!("{codec}-{version:?}-{has_dictionary}.parquet").replace(['(', ')'], "");
                let properties = some_rows_a_page().set_compression(codec).set_writer_version(version);
                lake.put(&name, file(&batch, properties.set_dictionary_enabled(has_dictionary))).await;
                let of = |what: &str| format!("select {what} from '/lake/{name}'");
                let all = "count(*), sum(id), count(word), max(word), sum(cardinality(list)), sum(list[1])";
                assert_eq!(lake.rows(&of(all)).await, "5000 12497500 4000 word 9 6666 8331667", "{name}");
                // Some pages alone, and with filters within the reader.
                let some = format!("{} where id between 1700 and 1709", of("count(*), count(word), max(id), min(list[1])"));
                assert_eq!(lake.rows(&some).await, "10 8 1709 1700", "{name}");
                lake.rows("set datafusion.execution.parquet.pushdown_filters = true").await;
                assert_eq!(lake.rows(&some).await, "10 8 1709 1700", "{name}");
                lake.rows("set datafusion.execution.parquet.pushdown_filters = false").await;
            }
        }
    }
}

/// Text alone: of each row, of some, and in lists.
fn texts() -> RecordBatch {
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{row:04}"))));
    let words: ArrayRef =
        Arc::new((0..ROWS).map(|row| (row % 5 != 0).then(|| format!("word {row:04}"))).collect::<StringArray>());
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..ROWS {
        if row % 3 != 0 {
            lists.values().append_value(format!("item {row:04}"));
            lists.values().append_null();
        }
        lists.append(row % 3 != 0);
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("word", words, true), ("list", lists, true)]).unwrap()
}

const DELTAS: [Encoding; 2] = [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];

#[tokio::test(flavor = "multi_thread")]
async fn text_in_delta_encodings_is_read() {
    let lake = Lake::new();
    let batch = texts();
    for codec in codecs() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for encoding in DELTAS {
                let name = format!("{codec}-{version:?}-{encoding:?}.parquet").replace(['(', ')'], "");
                let properties = some_rows_a_page().set_compression(codec).set_writer_version(version);
                let properties = properties.set_dictionary_enabled(false).set_encoding(encoding);
                lake.put(&name, file(&batch, properties)).await;
                let of = |what: &str| format!("select {what} from '/lake/{name}'");
                let all = "count(*), max(id), count(word), max(word), sum(cardinality(list)), max(list[1])";
                assert_eq!(lake.rows(&of(all)).await, "5000 4999 4000 word 4999 6666 item 4999", "{name}");
                let some = format!("{} where id between '1700' and '1709'", of("count(*), count(word), max(id), min(list[1])"));
                assert_eq!(lake.rows(&some).await, "10 8 1709 item 1700", "{name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_more_lengths_than_values_is_an_error() {
    let lake = small_lake();
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("word {row}"))));
    let batch = RecordBatch::try_from_iter([("word", words)]).unwrap();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for encoding in DELTAS {
            // Of the second, the first bytes stand as they are.
            for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
                let properties = WriterProperties::builder().set_writer_version(version).set_compression(codec);
                let mut lies = file(&batch, properties.set_dictionary_enabled(false).set_encoding(encoding));
                // Blocks of 128 in 4 parts, and 1,000 lengths; and 2^40, over what stands behind that.
                let at = lies.windows(5).position(|bytes| bytes == b"\x80\x01\x04\xe8\x07").unwrap();
                lies[at + 3..at + 9].copy_from_slice(b"\x80\x80\x80\x80\x80\x20");
                let says = "column 'word': a page says that its text has 1099511627776 lengths, and has 1000 values";
                let name = format!("{version:?}-{encoding:?}-{codec}.parquet");
                refused(&lake, &name, lies, ErrorKind::Corrupt, says).await;
            }
        }
    }
}

/// `pyarrow-brotli.parquet` of the corpus, in which the dictionary of `small` has more values than bytes.
pub fn dictionary_of_2_30_values() -> Vec<u8> {
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/damaged");
    std::fs::read(folder.join("dictionary-of-2-30-values.parquet")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dictionary_of_more_values_than_it_has_bytes_for_is_an_error() {
    let lake = small_lake();
    let says = "column 'small': a dictionary says that it has 1073741824 values, and has 20 bytes";
    refused(&lake, "values.parquet", dictionary_of_2_30_values(), ErrorKind::Corrupt, says).await;
    let declared = "create external table lies stored as parquet location '/lake/values.parquet'";
    lake.rows(declared).await;
    let error = lake.error("select sum(small) from lies").await;
    assert!(error.kind() == ErrorKind::Corrupt && error.message().contains(says), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_decoded_to_more_than_memory_is_an_error() {
    let lake = small_lake();
    let long: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(70 << 20)]));
    let batch = RecordBatch::try_from_iter([("long", long)]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let large = file(&batch, properties.set_dictionary_enabled(false));
    assert!(large.len() < 8 << 20, "{}", large.len());
    refused(&lake, "large.parquet", large, ErrorKind::Invalid, "`sql-memory`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_millions_of_nulls_in_a_few_bytes_is_an_error() {
    let lake = small_lake();
    let nulls = 8 << 20;
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let list = |lengths: Vec<usize>| -> RecordBatch {
        let values = Arc::new(Int32Array::new_null(lengths.iter().sum()));
        let lists: ArrayRef = Arc::new(ListArray::new(Arc::clone(&item), OffsetBuffer::from_lengths(lengths), values, None));
        RecordBatch::try_from_iter([("list", lists)]).unwrap()
    };
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = || WriterProperties::builder().set_writer_version(version).set_data_page_row_count_limit(1 << 20);
        let lies = file(&list(vec![1, nulls, 1]), properties());
        assert!(lies.len() < 100_000, "{} bytes", lies.len());
        let says = "decoded at once of its column 'list.list.";
        refused(&lake, &format!("one-{version:?}.parquet"), lies, ErrorKind::Invalid, says).await;
        // As many in rows that are not decoded together.
        lake.put(&format!("many-{version:?}.parquet"), file(&list(vec![64; nulls / 64]), properties())).await;
        let read = lake.rows(&format!("select count(*), sum(cardinality(list)) from '/lake/many-{version:?}.parquet'")).await;
        assert_eq!(read, format!("{} {nulls}", nulls / 64));
    }
}

/// Forty rows of 2 MiB that take a few KiB, each in a page of its own.
fn long_rows() -> Vec<u8> {
    let rows = 40;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let long: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| "a".repeat(2 << 20))));
    let batch = RecordBatch::try_from_iter([("id", ids), ("long", long)]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let properties = properties.set_data_page_row_count_limit(1).set_write_batch_size(1);
    file(&batch, properties.set_dictionary_enabled(false))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_long_rows_that_take_more_than_memory_is_an_error() {
    let lake = small_lake();
    let bytes = long_rows();
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    refused(&lake, "long.parquet", bytes, ErrorKind::Invalid, "decoded at once of its column 'long'").await;
    let of = |rows: &str| format!("select count(*), sum(octet_length(long)) from '/lake/long.parquet' where {rows}");
    // As the error says: fewer rows at a time, of which none are left out.
    lake.rows("set datafusion.execution.batch_size = 8").await;
    assert_eq!(lake.rows(&of("true")).await, format!("40 {}", 40_u64 << 21));
    lake.rows("set datafusion.execution.parquet.pushdown_filters = true").await;
    assert_eq!(lake.rows(&of("id between 3 and 5")).await, format!("3 {}", 3_u64 << 21));
    let error = lake.error(&of("id % 40 <> 7")).await;
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("long.parquet"), "{error}");
    assert!(error.message().contains("'long'") && error.message().contains("pushdown_filters = false"), "{error}");
    lake.rows("set datafusion.execution.parquet.pushdown_filters = false").await;
    assert_eq!(lake.rows(&of("id % 40 <> 7")).await, format!("39 {}", 39_u64 << 21));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_has_a_page_where_none_begins_is_an_error() {
    let lake = small_lake();
    let whole = Bytes::from(file(&batch(), some_rows_a_page().set_dictionary_enabled(false)));
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let footer = reader.parse_and_finish(&whole).unwrap();
    let pages = footer.offset_index().unwrap()[0][0].page_locations();
    assert!(pages.len() > 5, "{pages:?}");
    let location = |offset: i64| [vec![0x16], number(offset)].concat();
    let (right, wrong) = (location(pages[3].offset), location(pages[3].offset + 1));
    assert_eq!(right.len(), wrong.len());
    let index = footer.row_group(0).column(0).offset_index_offset().unwrap() as usize;
    let at = index + whole[index..].windows(right.len()).position(|bytes| bytes == right).unwrap();
    let mut bytes = whole.to_vec();
    bytes[at..at + wrong.len()].copy_from_slice(&wrong);
    lake.put("index.parquet", bytes).await;
    let error = lake.error("select sum(id) from '/lake/index.parquet'").await;
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("column 'id': its index has a page where none begins"), "{error}");
    assert!(error.message().contains("index.parquet"), "{error}");
}
