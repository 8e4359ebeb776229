//! Bloom filters in tables: no value that a row group has is ever denied, few that it has not are taken for one that it may have.

use std::sync::Arc;

use arrow_array::*;
use bytes::Bytes;
use forebay_table::{BloomFilter, Blooms, Grouping, Options, Table, key_hashes};
use forebay_types::ErrorKind;
use proptest::prelude::*;

use crate::round_trip::{read, write_with};
use crate::samples::batch;

/// Columns of the samples that can have bloom filters, of each kind.
const KEYS: [&str; 7] = ["i64", "i8", "fsb", "utf8", "large_utf8", "utf8_view", "binary"];

fn named(columns: &[&str]) -> Blooms {
    Blooms::Of(columns.iter().map(|column| (*column).to_string()).collect())
}

fn bloom(file: &Bytes, table: &Table, row_group: usize, leaf: usize) -> Option<BloomFilter> {
    let info = table.bloom(row_group, leaf)?;
    let range = info.range();
    Some(info.open(file.slice(range.start as usize..range.end as usize)).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_value_of_a_row_group_is_denied(seed: u64, rows in 1usize..400, cut in 1usize..200, as_rows: bool) {
        let batch = batch(seed, rows);
        let grouping = if as_rows { Grouping::rows() } else { Grouping::columns() };
        let options = Options { grouping, row_group_rows: cut, blooms: named(&KEYS), ..Options::default() };
        let file = write_with(std::slice::from_ref(&batch), options);
        prop_assert_eq!(&read(&file, 100), &batch);
        let table = Table::open(&file).unwrap();
        for column in KEYS {
            let leaf = table.schema().leaf(column).unwrap();
            let values = batch.column_by_name(column).unwrap();
            for row_group in 0..table.row_groups() {
                let (first, rows) = (table.first_row(row_group) as usize, table.row_group_rows(row_group));
                let here = key_hashes(&values.slice(first, rows)).unwrap();
                match bloom(&file, &table, row_group, leaf) {
                    Some(bloom) => prop_assert!(here.iter().all(|hash| bloom.may_have(*hash)), "{}", column),
                    None => prop_assert!(here.is_empty(), "{} has values and no filter", column),
                }
            }
        }
    }
}

#[test]
fn one_in_a_hundred_values_that_are_not_there_passes_and_no_more_than_two() {
    let texts = |from: usize| StringArray::from_iter_values((from..from + 20_000).map(|row| format!("https://host/{row}/page")));
    let batch = RecordBatch::try_from_iter([("url", Arc::new(texts(0)) as ArrayRef)]).unwrap();
    let file = write_with(&[batch], Options { row_group_rows: 5_000, blooms: Blooms::WherePays, ..Options::default() });
    let table = Table::open(&file).unwrap();
    let others = key_hashes(&(Arc::new(texts(20_000)) as ArrayRef)).unwrap();
    for row_group in 0..4 {
        let bloom = bloom(&file, &table, row_group, 0).unwrap();
        let wrong = others.iter().filter(|hash| bloom.may_have(**hash)).count();
        assert!(wrong * 100 < 2 * others.len(), "{wrong} of {}", others.len());
        let range = table.bloom(row_group, 0).unwrap().range();
        assert!(range.end - range.start < 5_000 * 3 / 2);
    }
}

#[test]
fn a_damaged_filter_is_corrupt() {
    let column = Arc::new(Int64Array::from_iter_values(0..100)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("id", column)]).unwrap();
    let file = write_with(&[batch], Options { blooms: named(&["id"]), ..Options::default() });
    let table = Table::open(&file).unwrap();
    let info = table.bloom(0, 0).unwrap();
    let mut bytes = file[info.range().start as usize..info.range().end as usize].to_vec();
    bytes[5] ^= 8;
    assert_eq!(info.open(bytes.into()).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(info.open(Bytes::new()).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(table.bloom(1, 0).is_none() && table.bloom(0, 1).is_none());
}

#[test]
fn columns_whose_equal_values_have_other_bytes_are_refused_by_name() {
    let schema = batch(1, 1).schema();
    for (column, kind) in
        [("f64", ErrorKind::Invalid), ("bool", ErrorKind::Invalid), ("floats", ErrorKind::Invalid), ("none", ErrorKind::NotFound)]
    {
        let options = Options { blooms: named(&[column]), ..Options::default() };
        let error = forebay_table::Writer::new(Vec::new(), schema.clone(), options).err().unwrap();
        assert_eq!(error.kind(), kind, "{column}");
        assert!(error.message().contains(&format!("`{column}`")), "{error}");
    }
}
