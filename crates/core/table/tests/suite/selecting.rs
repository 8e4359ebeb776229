//! Rows that are selected of decoded columns: those that a look at each row finds, whatever the types; and nothing of what is damaged.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray, UInt32Array};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use forebay_table::{Coded, Grouping, Narrow, Selecting, Table, select};
use forebay_types::{Comparison, ErrorKind, RowTest};
use proptest::prelude::*;

use crate::round_trip::write;
use crate::samples::{Numbers, batch};

/// Rows of a row group of the cells.
const CUT: usize = 100;

/// A column by itself, as workers keep it.
fn cell(batch: &RecordBatch, column: usize) -> Bytes {
    write(&[batch.project(&[column]).unwrap()], Grouping::columns(), CUT)
}

fn selecting(tests: Vec<RowTest>) -> Selecting {
    Selecting { tests, limit: None, bytes_max: 64 << 20 }
}

/// The bytes of a value as they stand in a condition; none for null, and for columns that nothing compares with.
fn value(array: &ArrayRef, row: usize) -> Option<Vec<u8>> {
    use DataType as T;
    if array.is_null(row) || array.data_type().is_nested() {
        return None;
    }
    Some(match array.data_type() {
        T::Null => return None,
        T::Boolean => vec![array.as_boolean().value(row).into()],
        T::Utf8 => array.as_string::<i32>().value(row).into(),
        T::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        T::Utf8View => array.as_string_view().value(row).into(),
        T::Binary => array.as_binary::<i32>().value(row).into(),
        T::LargeBinary => array.as_binary::<i64>().value(row).into(),
        T::BinaryView => array.as_binary_view().value(row).into(),
        T::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row).into(),
        other => {
            let width = other.primitive_width().unwrap();
            let data = array.to_data();
            data.buffers()[0].as_slice()[(data.offset() + row) * width..][..width].to_vec()
        }
    })
}

/// Whether a row meets a condition whose values are those of certain rows.
fn meets(batch: &RecordBatch, tests: &[(RowTest, Vec<usize>)], row: usize) -> bool {
    let order = |column: u32, with: usize| {
        let array = batch.column(column as usize);
        let compare = make_comparator(array, array, SortOptions::default()).unwrap();
        (!array.is_null(row)).then(|| compare(row, with))
    };
    let mut truths = Vec::new();
    for (test, with) in tests {
        let truth = match test {
            RowTest::Compare { column, by, .. } => order(*column, with[0]).is_some_and(|order| match by {
                Comparison::Equal => order == Ordering::Equal,
                Comparison::Different => order != Ordering::Equal,
                Comparison::Less => order == Ordering::Less,
                Comparison::AtMost => order != Ordering::Greater,
                Comparison::Greater => order == Ordering::Greater,
                Comparison::AtLeast => order != Ordering::Less,
            }),
            RowTest::OneOf { column, negated, .. } => {
                let is_null = batch.column(*column as usize).is_null(row);
                let any = with.iter().any(|with| order(*column, *with) == Some(Ordering::Equal));
                !is_null && any != *negated
            }
            RowTest::Null { column, negated } => batch.column(*column as usize).is_null(row) != *negated,
            RowTest::And | RowTest::Or => {
                let (one, other): (bool, bool) = (truths.pop().unwrap(), truths.pop().unwrap());
                if *test == RowTest::And { one && other } else { one || other }
            }
        };
        truths.push(truth);
    }
    assert!(truths.len() <= 1);
    truths.pop().unwrap_or(true)
}

/// A condition on columns of a batch, each step with the rows whose values it has.
fn condition(batch: &RecordBatch, n: &mut Numbers, steps: usize) -> Vec<(RowTest, Vec<usize>)> {
    let mut tests: Vec<(RowTest, Vec<usize>)> = Vec::new();
    for step in 0..steps {
        let column = n.below(batch.num_columns());
        let array = batch.column(column);
        let rows: Vec<usize> = (0..3).map(|_| n.below(batch.num_rows())).filter(|row| value(array, *row).is_some()).collect();
        let (column, negated) = (column as u32, n.below(2) == 1);
        let test = match rows.first() {
            Some(first) if n.below(3) > 0 => {
                use Comparison::*;
                let by = [Equal, Different, Less, AtMost, Greater, AtLeast][n.below(6)];
                (RowTest::Compare { column, by, value: value(array, *first).unwrap() }, vec![*first])
            }
            Some(_) => {
                let values = rows.iter().map(|row| value(array, *row).unwrap()).collect();
                (RowTest::OneOf { column, values, negated }, rows)
            }
            None => (RowTest::Null { column, negated }, Vec::new()),
        };
        tests.push(test);
        if step > 0 {
            tests.push((if n.below(2) == 0 { RowTest::And } else { RowTest::Or }, Vec::new()));
        }
    }
    tests
}

/// A batch as it was before it was sent, but for views.
fn widened(batch: &RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
        let array = match (Narrow::of_field(field).unwrap(), Coded::of_field(field).unwrap()) {
            (Some(narrow), _) => narrow.widen(array).unwrap(),
            (None, Some(coded)) => coded.decode(array).unwrap(),
            (None, None) => Arc::clone(array),
        };
        (field.name(), array, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn rows_of(table: &Bytes) -> Vec<RecordBatch> {
    let opened = Table::open(table).unwrap();
    let all = opened.schema().projection();
    (0..opened.row_groups()).map(|at| widened(&opened.plan(at, &all).unwrap().read(table).unwrap().batch().unwrap())).collect()
}

/// Texts and binary as they are sent.
fn without_views(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().iter().collect::<StringArray>()),
        DataType::BinaryView => Arc::new(array.as_binary_view().iter().collect::<BinaryArray>()),
        _ => Arc::clone(array),
    }
}

/// The columns of a batch that a condition may be on: nulls, lists and structs are none.
fn plain(batch: &RecordBatch) -> RecordBatch {
    let fields = batch.schema().fields().clone();
    let is_plain = |column: &usize| !fields[*column].data_type().is_nested() && *fields[*column].data_type() != DataType::Null;
    batch.project(&(0..batch.num_columns()).filter(is_plain).collect::<Vec<_>>()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_rows_are_those_that_a_look_at_each_finds(seed: u64, steps in 0usize..6, limit in proptest::option::of(0u64..200)) {
        let batch = plain(&batch(seed, 250));
        let mut n = Numbers(seed ^ 1);
        let cells: Vec<Bytes> = (0..batch.num_columns()).map(|column| cell(&batch, column)).collect();
        let tests = condition(&batch, &mut n, steps);
        let wanted = Selecting { limit, ..selecting(tests.iter().map(|(test, _)| test.clone()).collect()) };
        let selected = select(&cells, &wanted).unwrap();
        let most = limit.map_or(usize::MAX, |limit| limit as usize);
        let right: Vec<u32> = (0..250u32).filter(|row| meets(&batch, &tests, *row as usize)).take(most).collect();
        prop_assert_eq!(selected.rows, right.len() as u64);
        let found = rows_of(&selected.table.unwrap());
        let expected = take_record_batch(&batch, &UInt32Array::from(right)).unwrap();
        match found.is_empty() {
            true => prop_assert_eq!(expected.num_rows(), 0),
            false => {
                let found = concat_batches(&found[0].schema(), &found).unwrap();
                let expected: Vec<_> = expected.columns().iter().map(without_views).collect();
                prop_assert_eq!(found.columns(), &expected[..]);
            }
        }
    }
}

/// Texts of so many rows, `first` different ones in the first half of them and `last` in the rest.
fn texts(rows: usize, first: usize, last: usize) -> RecordBatch {
    let text = |row: usize| format!("text {}", if row < rows / 2 { row % first } else { row % last });
    let texts: ArrayRef = Arc::new((0..rows).map(|row| Some(text(row))).collect::<StringArray>());
    RecordBatch::try_from_iter_with_nullable([("t", texts, true)]).unwrap()
}

#[test]
fn texts_of_few_values_come_in_a_byte_each_and_others_as_they_are() {
    for (first, last, most) in [(3, 3, 2.0), (3, 250, 3.0), (3, 1000, 20.0), (1000, 3, 20.0)] {
        let batch = texts(10_000, first, last);
        let selected = select(&[cell(&batch, 0)], &selecting(vec![])).unwrap();
        let table = selected.table.unwrap();
        assert!(table.len() as f64 <= 10_000.0 * most, "{} bytes with {first} and {last} values", table.len());
        let found = rows_of(&table);
        assert_eq!(concat_batches(&found[0].schema(), &found).unwrap().column(0), batch.column(0), "{first} and {last} values");
    }
}

#[test]
fn columns_that_differ_one_after_the_other_do_not_begin_anew_each() {
    let texts = |few: usize| -> ArrayRef {
        let text = |row: usize| format!("text {}", if row < few { row % 3 } else { row });
        Arc::new((0..10_000).map(|row| Some(text(row))).collect::<StringArray>())
    };
    // The last one is a flag, and is sent as one, but for where too many others turn out to be none.
    for (few, is_coded) in [(vec![2_000, 10_000], true), (vec![6_000, 4_000, 2_000, 10_000], false)] {
        let columns = few.iter().enumerate().map(|(at, few)| (at.to_string(), texts(*few), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let cells: Vec<Bytes> = (0..few.len()).map(|column| cell(&batch, column)).collect();
        let table = select(&cells, &selecting(vec![])).unwrap().table.unwrap();
        let opened = Table::open(&table).unwrap();
        let coded = opened.schema().arrow().fields().iter().map(|field| Coded::of_field(field).unwrap().is_some());
        let expected: Vec<bool> = (1..=few.len()).map(|column| is_coded && column == few.len()).collect();
        assert_eq!(coded.collect::<Vec<_>>(), expected);
        let found = rows_of(&table);
        assert_eq!(concat_batches(&found[0].schema(), &found).unwrap().columns(), batch.columns());
    }
}

#[test]
fn an_answer_of_more_bytes_than_it_may_have_is_none() {
    let batch = plain(&batch(3, 2000));
    let cells = [cell(&batch, 4), cell(&batch, 5)];
    let all = select(&cells, &selecting(vec![])).unwrap();
    let bytes = all.table.unwrap().len();
    let of = |bytes_max| select(&cells, &Selecting { bytes_max, ..selecting(vec![]) }).unwrap();
    assert_eq!((of(bytes).table.map(|table| table.len()), of(bytes).rows), (Some(bytes), 2000));
    for fewer in [bytes - 1, bytes / 2, 1, 0] {
        assert_eq!((of(fewer).table, of(fewer).rows), (None, 0), "{fewer}");
    }
    let few = select(&cells, &Selecting { limit: Some(3), bytes_max: 2000, ..selecting(vec![]) }).unwrap();
    assert_eq!((few.rows, few.table.is_some()), (3, true), "a limit leaves few");
}

#[test]
fn rows_that_take_too_much_memory_are_no_answer_however_large_that_may_be() {
    let text = "x".repeat(10_000);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(); CUT]));
    let megabyte = cell(&RecordBatch::try_from_iter([("t", texts)]).unwrap(), 0);
    let wanted = Selecting { bytes_max: 256 << 20, ..selecting(vec![]) };
    let of = |columns| select(&vec![megabyte.clone(); columns], &wanted).unwrap();
    assert_eq!((of(60).rows, of(60).table.is_some()), (CUT as u64, true));
    assert_eq!((of(80).rows, of(80).table), (0, None));
}

#[test]
fn what_is_damaged_is_no_answer() {
    let batch = plain(&batch(5, 300));
    let good = [cell(&batch, 4), cell(&batch, 5)];
    let null = vec![RowTest::Null { column: 1, negated: true }];
    select(&good, &selecting(null.clone())).unwrap();
    let mut n = Numbers(9);
    for _ in 0..200 {
        let mut bytes = good[1].to_vec();
        let at = n.below(bytes.len());
        bytes[at] ^= 1 << n.below(8);
        match select(&[good[0].clone(), bytes.into()], &selecting(null.clone())) {
            // What lies between the buffers is not looked at.
            Ok(selected) => assert_eq!(selected.table, select(&good, &selecting(null.clone())).unwrap().table),
            Err(error) => assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error}"),
        }
    }
    let other = cell(&plain(&crate::samples::batch(5, 301)), 5);
    assert_eq!(select(&[good[0].clone(), other], &selecting(vec![])).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn conditions_that_do_not_fit_are_refused() {
    let batch = plain(&batch(5, 10));
    let by_name = |name: &str| cell(&batch, batch.schema().index_of(name).unwrap());
    let is = |value: &[u8]| vec![RowTest::Compare { column: 0, by: Comparison::Equal, value: value.to_vec() }];
    for (name, tests) in [
        ("i32", is(&[1, 2, 3])),
        ("i32", is(&[])),
        ("bool", is(&[1, 0])),
        ("utf8", is(&[0xff, 0xfe])),
        ("dec128", is(&[0; 8])),
        ("i32", vec![RowTest::Null { column: 1, negated: false }]),
        ("i32", vec![RowTest::And]),
    ] {
        assert_eq!(select(&[by_name(name)], &selecting(tests)).unwrap_err().kind(), ErrorKind::Invalid, "{name}");
    }
    assert_eq!(select(&[], &selecting(vec![])).unwrap_err().kind(), ErrorKind::Invalid);
    let lists = crate::samples::batch(5, 10);
    let list = cell(&lists, lists.schema().index_of("floats").unwrap());
    assert_eq!(select(&[list], &selecting(is(&[0; 4]))).unwrap_err().kind(), ErrorKind::Invalid);
}
