//! Planted defects of a writer, and that what must hold of it catches each.

use arrow_array::{Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};

use super::super::rows::encode_rows;
use super::*;

const ROWS: usize = 4;

fn batch(rows: usize) -> RecordBatch {
    let fields = [Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)];
    let numbers = Int64Array::from_iter_values(0..rows as i64);
    let texts = StringArray::from_iter_values((0..rows).map(|row| format!("row {row}")));
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

/// A writer of row groups of four rows, with the first one written and half of the second one there.
fn writer() -> Writer<Vec<u8>> {
    let options = Options { row_group_rows: ROWS, blooms: Blooms::Of(vec!["a".into()]), ..Options::default() };
    let mut writer = Writer::new(Vec::new(), batch(0).schema(), options).unwrap();
    writer.push(&batch(ROWS + 2)).unwrap();
    writer
}

/// Spoils the writer, and goes on.
fn spoiled(spoil: impl FnOnce(&mut Writer<Vec<u8>>)) {
    let mut writer = writer();
    spoil(&mut writer);
    writer.push(&batch(1)).unwrap();
    writer.finish().unwrap();
}

/// Spoils a row group that was encoded elsewhere, and appends it.
fn appended(spoil: impl FnOnce(&mut RowGroup)) {
    let mut writer = writer();
    let mut row_group = writer.encoder().encode(&[batch(3)]).unwrap();
    spoil(&mut row_group);
    writer.append(&row_group).unwrap();
    writer.finish().unwrap();
}

#[test]
fn what_is_sound_passes() {
    spoiled(|_| {});
    appended(|_| {});
}

#[test]
#[should_panic(expected = "rows are counted")]
fn rows_that_never_came_are_caught() {
    spoiled(|writer| writer.pending_rows += 1);
}

#[test]
#[should_panic(expected = "rows are counted")]
fn rows_that_got_lost_are_caught() {
    spoiled(|writer| writer.pending.clear());
}

#[test]
#[should_panic(expected = "were to go out as a row group")]
fn a_row_group_that_is_full_and_stays_is_caught() {
    spoiled(|writer| writer.pending_rows = ROWS);
}

#[test]
#[should_panic(expected = "a row group has all cells and leaves")]
fn a_cell_that_got_lost_is_caught() {
    spoiled(|writer| drop(writer.row_groups[0].cells.pop()));
}

#[test]
#[should_panic(expected = "says of each leaf whether it has a bloom filter")]
fn a_bloom_filter_that_got_lost_is_caught() {
    spoiled(|writer| writer.row_groups[0].blooms.truncate(0));
}

#[test]
#[should_panic(expected = "are of this table")]
fn a_row_group_of_another_table_is_caught() {
    appended(|row_group| drop(row_group.cells.pop()));
}

#[test]
#[should_panic(expected = "are of this table")]
fn a_row_group_without_a_leaf_is_caught() {
    appended(|row_group| drop(row_group.leaves.pop()));
}

#[test]
#[should_panic(expected = "has a value for each row")]
fn a_column_that_is_too_short_is_caught() {
    let writer = writer();
    let leaves = writer.encoder.shape.schema.flatten(&batch(2)).unwrap();
    let _ = writer.encoder.encode_leaves(3, &[leaves], &mut Spares::default());
}

#[test]
#[should_panic(expected = "each leaf has an array")]
fn a_leaf_whose_bytes_are_not_counted_is_caught() {
    let writer = writer();
    writer.load.with(&writer.encoder.shape.schema, &[]);
}

#[test]
#[should_panic(expected = "each column has its place in a row")]
fn a_column_without_a_place_is_caught() {
    let schema = TableSchema::new(batch(0).schema()).unwrap();
    let groups = Grouping::rows().resolve(&schema).unwrap();
    let leaves = schema.flatten(&batch(2)).unwrap();
    let _ = encode_rows(groups[0].rows().unwrap(), 2, &[(&leaves[0], schema.leaves()[0].kind())], Vec::new());
}

#[test]
#[should_panic(expected = "each leaf that is wanted has an array")]
fn a_column_that_was_not_read_is_caught() {
    let schema = TableSchema::new(batch(0).schema()).unwrap();
    let mut leaves = schema.flatten(&batch(2)).unwrap();
    leaves.pop();
    let _ = schema.projection().batch(2, leaves);
}
