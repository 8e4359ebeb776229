//! What was written comes back, of every type, in every grouping, whole or in pieces.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use forebay_table::{Grouping, Layout, Options, Selection, Table, Writer, take};
use proptest::prelude::*;

use crate::samples::{Numbers, batch};

pub fn write(batches: &[RecordBatch], grouping: Grouping, row_group_rows: usize) -> Bytes {
    write_with(batches, Options { grouping, row_group_rows, ..Options::default() })
}

pub fn write_with(batches: &[RecordBatch], options: Options) -> Bytes {
    let mut writer = Writer::new(Vec::new(), batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.push(batch).unwrap());
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    bytes.into()
}

pub fn read(file: &Bytes, batch_rows: usize) -> RecordBatch {
    let table = Table::open(file).unwrap();
    let projection = table.schema().projection();
    let mut out = Vec::new();
    for row_group in 0..table.row_groups() {
        let plan = table.plan(row_group, &projection).unwrap();
        let bytes = plan.ranges().into_iter().map(|range| file.slice(range.start as usize..range.end as usize)).collect();
        let chunk = plan.open(bytes).unwrap();
        out.extend(chunk.batches(batch_rows).unwrap().map(Result::unwrap));
    }
    concat_batches(projection.schema(), &out).unwrap()
}

fn groupings() -> [Grouping; 4] {
    [
        Grouping::columns(),
        Grouping::rows(),
        Grouping::rows().layout(Layout::Packed),
        Grouping::columns().group(["i64", "utf8", "nested.inner"]).group(["f64", "i32", "bool", "floats"]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_type_comes_back_equal(seed: u64, rows in 1usize..300, cut in 1usize..200, step in 1usize..200, which in 0usize..4) {
        let batches = [batch(seed, rows), batch(seed, 1).slice(0, 0), batch(seed, rows / 2)];
        let whole = concat_batches(&batches[0].schema(), &batches).unwrap();
        let file = write(&batches, groupings()[which].clone(), cut);
        prop_assert_eq!(read(&file, step), whole);
    }

    #[test]
    fn picked_rows_are_those_of_the_batch(seed: u64, rows in 1usize..300, cut in 1usize..200, which in 0usize..4) {
        let batch = batch(seed, rows);
        let file = write(std::slice::from_ref(&batch), groupings()[which].clone(), cut);
        let table = Table::open(&file).unwrap();
        let mut numbers = Numbers(seed);
        let asked = (0..50).map(|_| numbers.below(rows) as u64).collect::<Vec<_>>();
        let taken = take(&table, &file, &table.schema().projection(), &asked).unwrap();
        prop_assert_eq!(taken, take_record_batch(&batch, &arrow_array::UInt64Array::from(asked)).unwrap());
    }

    #[test]
    fn slices_and_few_columns_come_back_equal(seed: u64, rows in 20usize..300, which in 0usize..4) {
        let whole = batch(seed, rows);
        let slice = whole.slice(3, rows - 7);
        let file = write(std::slice::from_ref(&slice), groupings()[which].clone(), 1000);
        let table = Table::open(&file).unwrap();
        let columns = [12, 3, 36, 0, 45, 1];
        let chunk = table.plan(0, &table.schema().project(&columns).unwrap()).unwrap().read(&file).unwrap();
        let expected = slice.project(&columns).unwrap();
        prop_assert_eq!(&chunk.batch().unwrap(), &expected);
        let picked = (0..slice.num_rows() as u32).filter(|row| row % 3 == 1).collect::<Vec<_>>();
        let gathered = chunk.gather(&Selection::of_rows(picked.clone()).unwrap()).unwrap();
        prop_assert_eq!(gathered, take_record_batch(&expected, &arrow_array::UInt32Array::from(picked)).unwrap());
    }
}

#[test]
fn a_table_without_rows_keeps_its_schema() {
    let empty = batch(1, 1).slice(0, 0);
    let file = write(std::slice::from_ref(&empty), Grouping::rows(), 10);
    assert_eq!(read(&file, 10), empty);
}
