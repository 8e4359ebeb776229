//! How a writer cuts its file, with threads or without, and what it refuses.

use std::sync::Arc;
use std::thread;

use arrow_array::*;
use forebay_table::{Grouping, Options, Table, Writer};
use forebay_types::ErrorKind;

use crate::round_trip::{read, write};
use crate::samples::batch;

#[test]
fn row_groups_encoded_by_threads_make_the_same_file() {
    let batches = (0..6).map(|seed| batch(seed, 400)).collect::<Vec<_>>();
    let schema = batches[0].schema();
    let options = Options { grouping: Grouping::columns().group(["i8", "utf8"]), row_group_rows: 400, ..Options::default() };
    let mut writer = Writer::new(Vec::new(), schema, options.clone()).unwrap();
    let encoder = writer.encoder();
    let encoded = thread::scope(|scope| {
        let threads = batches.iter().map(|batch| scope.spawn(|| encoder.encode(std::slice::from_ref(batch)).unwrap()));
        threads.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    encoded.iter().for_each(|row_group| writer.append(row_group).unwrap());
    let (together, _) = writer.finish().unwrap();
    assert_eq!(write(&batches, options.grouping, 400), together);
}

#[test]
fn a_row_group_is_closed_before_it_outgrows_its_bytes() {
    let texts = StringArray::from_iter_values((0..64).map(|row| "x".repeat(1000 + row)));
    let texts = RecordBatch::try_from_iter([("x", Arc::new(texts) as ArrayRef)]).unwrap();
    let options = Options { row_group_bytes: 10_000, ..Options::default() };
    let mut writer = Writer::new(Vec::new(), texts.schema(), options).unwrap();
    writer.push(&texts).unwrap();
    let file = writer.finish().unwrap().0.into();
    let table = Table::open(&file).unwrap();
    assert!((0..table.row_groups()).all(|row_group| (1..10).contains(&table.row_group_rows(row_group))));
    assert_eq!(read(&file, 100), texts);
}

#[test]
fn a_value_larger_than_a_segment_is_refused_with_the_columns_name() {
    let large = "x".repeat((64 << 20) + 1);
    let texts = RecordBatch::try_from_iter([("large", Arc::new(StringArray::from(vec!["a", &large])) as ArrayRef)]).unwrap();
    let mut writer = Writer::new(Vec::new(), texts.schema(), Options::default()).unwrap();
    let error = writer.push(&texts).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("`large`"), "{error}");
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let one = RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    let other = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let mut writer = Writer::new(Vec::new(), one.schema(), Options::default()).unwrap();
    assert_eq!(writer.push(&other).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_file_that_was_not_finished_is_no_table() {
    let mut writer = Writer::new(Vec::new(), batch(1, 1).schema(), Options::default()).unwrap();
    writer.push(&batch(1, 100)).unwrap();
    let so_far = bytes::Bytes::from(std::mem::take(writer.sink_mut()));
    assert_eq!(Table::open(&so_far).unwrap_err().kind(), ErrorKind::Corrupt);
}
