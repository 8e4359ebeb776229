//! Files of earlier versions that every later one must read, and that this one must write.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use forebay_table::{Blooms, Grouping, Layout, Options};

use crate::round_trip::{read, write_with};
use crate::samples::batch;

fn check(name: &str, grouping: Grouping) {
    check_batches(name, &[batch(2018, 21), batch(2018, 12)], grouping, 20);
}

fn check_batches(name: &str, batches: &[RecordBatch], grouping: Grouping, row_group_rows: usize) {
    check_options(name, batches, Options { grouping, row_group_rows, ..Options::default() });
}

fn check_options(name: &str, batches: &[RecordBatch], options: Options) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let written = write_with(batches, options);
    if std::env::var_os("FOREBAY_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = Bytes::from(std::fs::read(&path).unwrap());
    assert_eq!(read(&golden, 100), arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap());
    assert!(golden == written, "{name}: the bytes have changed; raise the version and keep the old file");
}

#[test]
fn columns_of_version_1() {
    check("columns-1.albis", Grouping::columns());
}

#[test]
fn aligned_rows_of_version_1() {
    check("aligned-1.albis", Grouping::columns().group(["i64", "utf8", "nested", "floats"]).group(["*"]));
}

#[test]
fn packed_rows_of_version_1() {
    check("packed-1.albis", Grouping::rows().layout(Layout::Packed));
}

/// Lists of strings, maps from strings to numbers, and lists of structs; of each one is null, and one is empty.
fn nested() -> RecordBatch {
    let text = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let number = |values: Vec<Option<i32>>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let there = |values: [bool; 3]| Some(NullBuffer::from(values.to_vec()));
    let list = |lengths: [usize; 3], values: ArrayRef, nulls| {
        let item = Arc::new(Field::new("item", values.data_type().clone(), true));
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, nulls)) as ArrayRef
    };
    let texts = list([2, 0, 0], text(vec![Some("a"), Some("bc")]), there([true, false, true]));
    let entries = Fields::from(vec![Field::new("keys", DataType::Utf8, false), Field::new("values", DataType::Int32, true)]);
    let entries = StructArray::new(entries, vec![text(vec![Some("x"), Some("y")]), number(vec![Some(1), None])], None);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let nulls = there([true, true, false]);
    let pairs = Arc::new(MapArray::new(field, OffsetBuffer::from_lengths([2, 0, 0]), entries, nulls, false)) as ArrayRef;
    let fields = Fields::from(vec![Field::new("n", DataType::Int32, true), Field::new("t", DataType::Utf8, true)]);
    let columns = vec![number(vec![Some(1), None, None]), text(vec![Some("p"), None, Some("q")])];
    let parts = list([2, 0, 1], Arc::new(StructArray::new(fields, columns, there([true, false, true]))), None);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("texts", texts.data_type().clone(), true),
        Field::new("pairs", pairs.data_type().clone(), true),
        Field::new("parts", parts.data_type().clone(), true),
    ]);
    let ids = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    RecordBatch::try_new(Arc::new(schema), vec![ids, texts, pairs, parts]).unwrap()
}

#[test]
fn nested_columns_of_version_2() {
    check_batches("nested-2.albis", &[nested()], Grouping::columns(), 2);
}

/// The file was not made by this program, but by the letter of docs/specs/table.md.
#[test]
fn bloom_filters_of_version_3() {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("word", DataType::Utf8, true)]);
    let ids = Arc::new(Int64Array::from(vec![7, -1, 1 << 40])) as ArrayRef;
    let words = Arc::new(StringArray::from(vec![Some("a"), None, Some("longer than a view holds")])) as ArrayRef;
    let batch = RecordBatch::try_new(Arc::new(schema), vec![ids, words]).unwrap();
    let blooms = Blooms::Of(vec!["id".to_string(), "word".to_string()]);
    check_options("blooms-3.albis", &[batch], Options { row_group_rows: 2, blooms, ..Options::default() });
}
