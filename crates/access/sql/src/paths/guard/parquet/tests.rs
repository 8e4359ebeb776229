//! Files whose pages lie, and honest ones.

use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, ListBuilder, RecordBatch, StringArray, StringBuilder};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::Field;
use datafusion::error::DataFusionError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, Encoding};
use datafusion::parquet::file::metadata::{FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader};
use datafusion::parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use datafusion::parquet::file::properties::WriterProperties;

use super::*;

const MOST: u64 = 1 << 20;

fn bounds(page_bytes_max: u64) -> Bounds {
    Bounds { page_bytes_max, batch_rows: 1_000, filters_inside: false, views: HashSet::new(), wide: Vec::new() }
}

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
    match footer.check(&range, &bytes, &bounds(MOST), &mut Copies::new()) {
        Ok(()) => None,
        Err(Fault::Damage(why)) => Some(why),
        Err(other) => panic!("{other:?}"),
    }
}

/// Opens nothing, and says how much of a file's end it was to read first.
#[derive(Debug)]
struct Asked;

impl ParquetFileReaderFactory for Asked {
    fn create_reader(
        &self,
        _: usize,
        _: PartitionedFile,
        footer_bytes: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Err(DataFusionError::Plan(format!("{footer_bytes:?}")))
    }
}

#[test]
fn a_footer_was_three_requests_where_the_plan_came_from_another_process() {
    let files = Files { own: Arc::new(Asked), bounds: Arc::new(bounds(MOST)) };
    let asked = |footer_bytes| {
        let file = PartitionedFile::new("a.parquet", 1_000);
        let made = files.create_reader(0, file, footer_bytes, &ExecutionPlanMetricsSet::new());
        made.err().unwrap().to_string()
    };
    assert!(asked(None).contains("Some(65536)"), "{}", asked(None));
    assert!(asked(Some(100)).contains("Some(100)"), "{}", asked(Some(100)));
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
            let short = footer.check(&(start..start + length), &file.slice(..9), &bounds(MOST), &mut Copies::new());
            assert!(matches!(short, Err(Fault::Damage(why)) if why.contains("shorter")));
            let large =
                footer.check(&(start..first), &file.slice(start as usize..first as usize), &bounds(8), &mut Copies::new());
            assert!(matches!(large, Err(Fault::LargeColumn { most: 8, .. })));
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
                let is_told = why.as_ref().is_none_or(|why| why.contains("can't be read"));
                assert!(is_told, "{codec}: its decoder takes no more than the page says, and tells, not {why:?}");
                continue;
            }
            let says = format!("column 'word': a page says that what is compressed of it becomes {says} bytes");
            assert_eq!(why, Some(format!("{says}, and it becomes {becomes}")), "{codec}");
        }
    }
}

/// A file whose only row group has one column, where that is, and its footer.
fn one_column(column: ArrayRef, properties: WriterProperties) -> (Bytes, Range<u64>, ParquetMetaData) {
    let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let bytes = Bytes::from(bytes);
    let read = ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
    let (start, length) = read.row_group(0).column(0).byte_range();
    (bytes, start..start + length, read)
}

#[test]
fn a_long_value_of_a_dictionary_takes_no_more_in_a_batch_than_there_is() {
    // Text in lists, which the engine has no views of: two values a list, every tenth of which is long.
    let lists = |length: usize| {
        let long = "x".repeat(length);
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in 0..2_000 {
            lists.values().append_value(if row % 10 == 0 { long.as_str() } else { "short" });
            lists.values().append_value("short");
            lists.append(true);
        }
        let list: ArrayRef = Arc::new(lists.finish());
        list
    };
    let text = |length: usize| {
        let long = "x".repeat(length);
        let text: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..2_000).map(|row| if row % 10 == 0 { long.as_str() } else { "short" })));
        text
    };
    let check = |column: ArrayRef, view: Option<&str>, codec: Compression| {
        let properties = WriterProperties::builder().set_compression(codec).set_data_page_row_count_limit(100);
        let (file, range, read) = one_column(column, properties.set_write_batch_size(50).build());
        let bounds = Bounds { views: view.into_iter().map(str::to_string).collect(), ..bounds(MOST) };
        let bytes = file.slice(range.start as usize..range.end as usize);
        Footer::of(Arc::new(read)).check(&range, &bytes, &bounds, &mut Copies::new())
    };
    for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(Default::default())] {
        // Of 1,000 rows a hundred have the long value; up to two hundred more lie in the pages where a batch begins and ends.
        for length in [100, 8_000] {
            assert!(check(lists(length), None, codec).is_ok(), "{codec}: {length}");
            assert!(check(text(length), None, codec).is_ok(), "{codec}: {length}");
        }
        for column in [lists(11_000), text(11_000)] {
            let told = check(column, None, codec);
            assert!(matches!(told, Err(Fault::LargeColumn { most: MOST, bytes, .. }) if bytes < 2 * MOST), "{codec}: {told:?}");
        }
        assert!(check(text(11_000), Some("v"), codec).is_ok(), "a view is no copy");
    }
}

#[test]
fn text_that_begins_as_the_one_before_it_takes_no_more_in_a_batch_than_there_is() {
    let begin = "x".repeat(1_100);
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("{begin}{row}"))));
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BYTE_ARRAY);
    let (file, range, read) = one_column(text, properties.build());
    assert!(range.end - range.start < 20_000);
    let bytes = file.slice(range.start as usize..range.end as usize);
    let footer = Footer::of(Arc::new(read));
    for views in [HashSet::new(), HashSet::from(["v".to_string()])] {
        let bounds = Bounds { views, ..bounds(MOST) };
        let told = footer.check(&range, &bytes, &bounds, &mut Copies::new());
        assert!(matches!(told, Err(Fault::LargeColumn { .. })), "{told:?}");
        let more = Bounds { page_bytes_max: 2 * MOST, ..bounds };
        assert!(footer.check(&range, &bytes, &more, &mut Copies::new()).is_ok());
    }
}

#[test]
fn rows_that_are_far_apart_count_together_where_those_between_are_left_out() {
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(|_| "x".repeat(60_000))));
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let properties = properties.set_dictionary_enabled(false).set_data_page_row_count_limit(1).set_write_batch_size(1);
    let (file, range, read) = one_column(text, properties.build());
    assert!(range.end - range.start < 20_000, "{range:?}");
    let chunk = read.row_group(0).column(0);
    let whole = file.slice(range.start as usize..range.end as usize);
    let pages: Vec<_> = column_of(chunk).pages(&whole, MOST, |_, _| Ok(())).map(Result::unwrap).collect();
    assert_eq!(pages.len(), 40);
    let footer = Footer::of(Arc::new(read.clone()));
    let told = |ranges: &[Range<u64>], batch_rows: u64, filters_inside: bool| {
        let bounds = Bounds { batch_rows, filters_inside, ..bounds(MOST) };
        let mut copies = Copies::new();
        ranges.iter().try_for_each(|range| {
            footer.check(range, &file.slice(range.start as usize..range.end as usize), &bounds, &mut copies)
        })
    };
    let all = std::slice::from_ref(&range);
    assert!(told(all, 10, false).is_ok());
    let far = told(all, 10, true);
    assert!(matches!(&far, Err(Fault::LargeColumn { is_scattered: true, column, .. }) if column == "v"), "{far:?}");
    let many = told(all, 1_000, false);
    assert!(matches!(many, Err(Fault::LargeColumn { is_scattered: false, .. })), "{many:?}");
    // The index has left out every other page, or all but some.
    let place = |page: &Range<usize>| range.start + page.start as u64..range.start + page.end as u64;
    let half: Vec<_> = pages.iter().step_by(2).map(place).collect();
    assert!(matches!(told(&half, 10, false), Err(Fault::LargeColumn { is_scattered: true, .. })));
    assert!(told(&half[..10], 10, false).is_ok());
}

#[test]
fn an_index_that_could_bring_too_much_together_is_not_used() {
    let (_, honest) = file();
    let honest = Arc::new(honest);
    assert!(Arc::ptr_eq(&bounds(MOST).indexed(Arc::clone(&honest)).unwrap(), &honest));
    let rows = |row: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values((0..40).map(|_| row.repeat(60_000)))) };
    let nulls: ArrayRef = Arc::new(ListArray::new(
        Arc::new(Field::new("item", DataType::Int64, true)),
        OffsetBuffer::from_lengths([10, 100_000]),
        Arc::new(Int64Array::new_null(100_010)),
        None,
    ));
    let columns = [
        (rows("x"), Compression::ZSTD(Default::default()), Encoding::PLAIN),
        (rows("x"), Compression::UNCOMPRESSED, Encoding::DELTA_LENGTH_BYTE_ARRAY),
        (rows("x"), Compression::UNCOMPRESSED, Encoding::DELTA_BYTE_ARRAY),
        (nulls, Compression::UNCOMPRESSED, Encoding::PLAIN),
    ];
    for (column, codec, encoding) in columns {
        let properties = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false).set_encoding(encoding);
        let (bytes, ..) = one_column(column, properties.build());
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        let read = Arc::new(reader.parse_and_finish(&bytes).unwrap());
        assert!(has_index(&read) && read.offset_index().is_some());
        let bare = bounds(MOST).indexed(Arc::clone(&read)).unwrap();
        assert!(!has_index(&bare) && bare.offset_index().is_none() && bare.column_index().is_none());
        let place = |footer: &ParquetMetaData| footer.row_group(0).column(0).byte_range();
        assert_eq!((bare.num_row_groups(), place(&bare)), (1, place(&read)));
        let inside = Bounds { filters_inside: true, ..bounds(MOST) };
        for kept in [bounds(4 * MOST), inside] {
            assert!(Arc::ptr_eq(&kept.indexed(Arc::clone(&read)).unwrap(), &read));
        }
    }
}

#[test]
fn pages_have_no_more_values_than_their_column() {
    let (file, read) = file();
    let (start, length) = read.row_group(0).column(0).byte_range();
    let pages = read.offset_index().unwrap()[0][0].page_locations();
    let first = pages[0].offset as u64..pages[1].offset as u64;
    let bytes = file.slice(first.start as usize..first.end as usize);
    let footer = Footer::of(Arc::new(read.clone()));
    // An index may have a page any number of times.
    let mut copies = Copies::new();
    let told: Vec<_> = (0..6).map(|_| footer.check(&first, &bytes, &bounds(MOST), &mut copies)).collect();
    assert!(told[..5].iter().all(Result::is_ok), "{told:?}");
    let says = "column 'id': its pages have 600 values, and its column has 500";
    assert!(matches!(&told[5], Err(Fault::Damage(why)) if why == says), "{told:?}");
    assert!(first.end < start + length);
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
fn an_index_has_all_pages_in_their_order() {
    let (file, read) = file();
    let (start, length) = read.row_group(0).column(0).byte_range();
    let with = |change: fn(&mut Vec<PageLocation>)| {
        let mut index = read.offset_index().unwrap().clone();
        let mut page_locations = index[0][0].page_locations().to_vec();
        change(&mut page_locations);
        index[0][0] = OffsetIndexMetaData { page_locations, unencoded_byte_array_data_bytes: None };
        let read = read.clone().into_builder().set_offset_index(Some(index)).build();
        told(&Footer::of(Arc::new(read)), &file, start..start + length)
    };
    assert_eq!(with(|_| ()), None);
    let changes: [fn(&mut Vec<PageLocation>); 3] =
        [|pages| pages.swap(0, 1), |pages| drop(pages.remove(1)), |pages| pages.push(pages[0].clone())];
    for change in changes {
        assert_eq!(with(change).unwrap(), "column 'id': its index leaves pages out, or has them in another order");
    }
}

#[test]
fn a_dictionary_is_the_first_page() {
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("word {}", row % 9))));
    let (file, range, read) = one_column(words, WriterProperties::builder().build());
    let bytes = file.slice(range.start as usize..range.end as usize);
    let first = column_of(read.row_group(0).column(0)).pages(&bytes, MOST, |_, _| Ok(())).next().unwrap().unwrap();
    let twice = Bytes::from([&bytes[..], &bytes[first]].concat());
    let (start, end) = (range.start, range.start + twice.len() as u64);
    let place = Place { start, end, end_max: end, row_group: 0, column: 0 };
    let footer = Footer { read: Arc::new(read), places: OnceLock::from(vec![place]) };
    let told = footer.check(&(start..end), &twice, &bounds(MOST), &mut Copies::new());
    assert!(matches!(&told, Err(Fault::Damage(why)) if why.contains("not its first page")), "{told:?}");
}

#[test]
fn bytes_are_not_checked_for_any_number_of_columns_that_lie_there() {
    let (file, read) = file();
    let (start, length) = read.row_group(0).column(0).byte_range();
    let end = start + length;
    let groups = vec![read.row_group(0).clone(); COLUMNS_AT_A_PLACE_MAX + 1];
    let read = Arc::new(read.into_builder().set_row_groups(groups).set_column_index(None).set_offset_index(None).build());
    let over = |columns: usize| Footer {
        read: Arc::clone(&read),
        places: OnceLock::from(
            (0..columns).map(|row_group| Place { start, end, end_max: end, row_group, column: 0 }).collect::<Vec<_>>(),
        ),
    };
    assert_eq!(told(&over(COLUMNS_AT_A_PLACE_MAX), &file, start..end), None);
    let why = told(&over(COLUMNS_AT_A_PLACE_MAX + 1), &file, start..end).unwrap();
    assert!(why.contains("lie at one place"), "{why}");
}

#[test]
fn nulls_of_what_a_file_lacks_take_no_more_than_there_is() {
    let (_, read) = file();
    let wide = DataType::FixedSizeBinary(4 << 10);
    let fields = |kinds: &[(&str, &DataType)]| -> Vec<FieldRef> {
        kinds.iter().map(|(name, kind)| Arc::new(Field::new(*name, (*kind).clone(), true))).collect()
    };
    let of = |read: &ParquetMetaData, wide: Vec<FieldRef>| match (Bounds { wide, ..bounds(MOST) }).check_lacking(read) {
        Ok(()) => None,
        Err(Fault::Lacking { column, bytes, most: MOST }) => Some((column, bytes)),
        Err(other) => panic!("{other:?}"),
    };
    let told = |wide: Vec<FieldRef>| of(&read, wide);
    // The file has a thousand rows, as a batch has.
    assert_eq!(told(fields(&[("id", &wide), ("word", &wide)])), None, "what it has");
    assert_eq!(told(fields(&[("id", &wide), ("more", &wide)])), Some(("more".to_string(), 4_096_000)));
    let within = DataType::Struct(fields(&[("deep", &wide)]).into());
    assert_eq!(told(fields(&[("s", &within)])), Some(("s".to_string(), 4_096_000)));
    assert_eq!(told(fields(&[("a", &DataType::Int64), ("b", &DataType::Utf8)])), None, "which is little");
    let own = read.file_metadata();
    let lie = FileMetaData::new(own.version(), 0, None, None, own.schema_descr_ptr(), None);
    let lie = ParquetMetaDataBuilder::new(lie).set_row_groups(read.row_groups().to_vec()).build();
    assert_eq!(
        of(&lie, fields(&[("more", &wide)])),
        Some(("more".to_string(), 4_096_000)),
        "whatever the footer says of its rows"
    );
}
