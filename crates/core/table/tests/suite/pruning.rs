//! Row groups that statistics rule out are not read, and no statistic rules out too much.

use std::sync::Arc;

use arrow_array::*;
use forebay_table::{Grouping, Table};

use crate::round_trip::write;

fn table(column: ArrayRef) -> Table {
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    Table::open(&write(&[batch], Grouping::columns(), 100)).unwrap()
}

#[test]
fn only_row_groups_that_can_meet_a_range_are_read() {
    let table = table(Arc::new(Int64Array::from_iter((0..1000).map(|row| (row % 10 > 0).then_some(row)))));
    let within = |least: Option<i64>, most: Option<i64>| {
        let (least, most) = (least.map(Int64Array::new_scalar), most.map(Int64Array::new_scalar));
        let least = least.as_ref().map(|least| least as &dyn Datum);
        table.row_groups_within(0, least, most.as_ref().map(|most| most as &dyn Datum)).unwrap()
    };
    assert_eq!(within(Some(250), Some(320)), [2, 3]);
    assert_eq!(within(None, Some(99)), [0]);
    assert_eq!(within(Some(1000), None), Vec::<usize>::new());
    assert_eq!(within(Some(900), Some(900)), Vec::<usize>::new(), "the least value there is 901");
    assert_eq!(within(None, None).len(), 10);
    let statistics = table.statistics(0).unwrap();
    assert_eq!(statistics.nulls.value(4), 10);
    assert_eq!(statistics.min.as_ref(), &Int64Array::from_iter_values((0..10).map(|group| group * 100 + 1)));
    assert!(statistics.exact);
    assert!(table.row_groups_within(0, Some(&StringArray::new_scalar("a")), None).is_err());
}

#[test]
fn long_texts_keep_bounds_that_hold() {
    let texts = (0..200).map(|row| format!("{}{row:03}", "水".repeat(40))).collect::<Vec<_>>();
    let table = table(Arc::new(StringArray::from(texts.clone())));
    let statistics = table.statistics(0).unwrap();
    let min = statistics.min.as_any().downcast_ref::<StringArray>().unwrap();
    let max = statistics.max.as_any().downcast_ref::<StringArray>().unwrap();
    assert!(!statistics.exact);
    for (row, text) in texts.iter().enumerate() {
        assert!(min.value(row / 100) <= text.as_str() && text.as_str() <= max.value(row / 100));
    }
}

#[test]
fn zeros_and_what_is_not_a_number_do_not_mislead() {
    let mut values = vec![1.0; 300];
    values[0] = 0.0;
    values[100] = f64::NAN;
    values[200] = -f64::NAN;
    values[299] = -0.0;
    let table = table(Arc::new(Float64Array::from(values)));
    let statistics = table.statistics(0).unwrap();
    let min = statistics.min.as_any().downcast_ref::<Float64Array>().unwrap();
    assert!(min.value(0).is_sign_negative(), "either zero is not below the bound");
    assert!(min.is_null(1) && statistics.max.is_null(1) && min.is_null(2) && statistics.max.is_null(2));
    assert_eq!(table.row_groups_within(0, Some(&Float64Array::new_scalar(5.0)), None).unwrap(), [1, 2]);
}

#[test]
fn row_groups_of_nulls_are_not_read() {
    let values = (0..300).map(|row| (row / 100 != 1).then_some(row)).collect::<Int32Array>();
    let table = table(Arc::new(values));
    assert_eq!(table.row_groups_within(0, Some(&Int32Array::new_scalar(0)), None).unwrap(), [0, 2]);
}
