//! What a reader asks for: only the ranges of its columns, and after a filter only what has passed it.

use std::sync::Arc;

use arrow_array::*;
use arrow_ord::cmp::lt;
use bytes::Bytes;
use forebay_table::{Footer, Grouping, Selection, Table};
use forebay_types::ErrorKind;

use crate::round_trip::write;
use crate::samples::batch;

#[test]
fn a_reader_asks_for_the_ranges_of_the_groups_that_it_needs() {
    let batch = batch(2, 1000);
    let file = write(std::slice::from_ref(&batch), Grouping::columns().group(["i32", "i64"]), 500);
    let length = file.len() as u64;
    let tail = Footer::range(length).unwrap();
    let footer = Footer::parse(length, &file[tail.start as usize..]).unwrap();
    let metadata = footer.metadata();
    let table = Table::parse(&footer, &file[metadata.start as usize..metadata.end as usize]).unwrap();
    assert_eq!(table.rows(), 1000);
    let plan = table.plan(1, &table.schema().project_paths(&["f64", "i64"]).unwrap()).unwrap();
    let bytes = plan.ranges().iter().map(|range| range.end - range.start).sum::<u64>();
    let of = |path: &str| {
        let leaf = table.schema().leaf(path).unwrap();
        let group = table.groups().iter().position(|group| group.leaves().contains(&leaf)).unwrap();
        table.cell(1, group).unwrap().bytes()
    };
    assert_eq!(of("i32"), of("i64"));
    assert_eq!(bytes, of("f64") + of("i64"));
    let given = plan.ranges().into_iter().map(|range| Bytes::copy_from_slice(&file[range.start as usize..range.end as usize]));
    let given = given.collect::<Vec<_>>();
    let read = plan.open(given.clone()).unwrap().batch().unwrap();
    assert_eq!(read.column(0), &batch.column_by_name("f64").unwrap().slice(500, 500));
    assert_eq!(read.column(1), &batch.column_by_name("i64").unwrap().slice(500, 500));
    assert_eq!(plan.open(given[1..].to_vec()).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn the_predicates_column_comes_first_and_only_survivors_follow() {
    let batch = batch(4, 3000);
    for grouping in [Grouping::columns(), Grouping::rows()] {
        let file = write(std::slice::from_ref(&batch), grouping, 1024);
        let table = Table::open(&file).unwrap();
        let first = table.schema().project_paths(&["i32"]).unwrap();
        let rest = table.schema().project_paths(&["utf8_view", "floats", "nested", "f64", "bool"]).unwrap();
        let mut survivors = Vec::new();
        for row_group in 0..table.row_groups() {
            let predicate = table.plan(row_group, &first).unwrap().read(&file).unwrap().batch().unwrap();
            let selection = Selection::of(&lt(predicate.column(0), &Int32Array::new_scalar(-2_000_000_000)).unwrap());
            survivors.push(table.plan(row_group, &rest).unwrap().read(&file).unwrap().gather(&selection).unwrap());
        }
        let survivors = arrow_select::concat::concat_batches(rest.schema(), &survivors).unwrap();
        let mask = lt(batch.column_by_name("i32").unwrap(), &Int32Array::new_scalar(-2_000_000_000)).unwrap();
        let wanted = rest.schema().fields().iter().map(|field| batch.schema().index_of(field.name()).unwrap());
        let expected = batch.project(&wanted.collect::<Vec<_>>()).unwrap();
        assert_eq!(survivors, arrow_select::filter::filter_record_batch(&expected, &mask).unwrap());
        assert!(survivors.num_rows() > 10);
    }
}

#[test]
fn what_is_not_there_is_said() {
    let file = write(&[batch(2, 10)], Grouping::columns(), 500);
    let table = Table::open(&file).unwrap();
    let all = table.schema().projection();
    assert_eq!(table.plan(1, &all).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(table.schema().project(&[99]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(forebay_table::take(&table, &file, &all, &[3, 10]).unwrap_err().kind(), ErrorKind::Invalid);
    let chunk = table.plan(0, &all).unwrap().read(&file).unwrap();
    assert_eq!(chunk.gather(&Selection::of_rows(vec![10]).unwrap()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(Selection::of_rows(vec![2, 1]).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn one_column_may_be_asked_for_twice() {
    let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10));
    let columns = RecordBatch::try_from_iter([("a", values.clone()), ("b", values.clone())]).unwrap();
    for grouping in [Grouping::columns(), Grouping::rows()] {
        let file = write(std::slice::from_ref(&columns), grouping, 500);
        let table = Table::open(&file).unwrap();
        let twice = table.schema().project(&[1, 1]).unwrap();
        let read = table.plan(0, &twice).unwrap().read(&file).unwrap().batch().unwrap();
        assert_eq!(read.columns(), [values.clone(), values.clone()]);
    }
}
