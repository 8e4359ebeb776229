//! Lists of anything, maps, and structs within them: nulls and empty ones at each level come back as they were.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use forebay_table::{Grouping, Layout, Selection, Table, take};
use forebay_types::ErrorKind;
use proptest::prelude::*;

use crate::round_trip::{read, write};
use crate::samples::Numbers;

/// Lists, some of them empty and some null, of what `below` makes.
fn list(n: &mut Numbers, lists: usize, below: impl FnOnce(&mut Numbers, usize) -> ArrayRef) -> ArrayRef {
    let offsets = n.offsets(lists);
    let values = below(n, *offsets.last().unwrap() as usize);
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(ListArray::new(item, offsets, values, n.nulls(lists)))
}

/// The same with wide offsets, and values that are never null.
fn large_list(n: &mut Numbers, lists: usize) -> ArrayRef {
    let offsets = n.offsets(lists);
    let words = (0..*offsets.last().unwrap()).map(|_| n.text()).collect::<Vec<_>>();
    let offsets = arrow_buffer::OffsetBuffer::new(offsets.iter().map(|&offset| i64::from(offset)).collect());
    let item = Arc::new(Field::new("element", DataType::Utf8View, false));
    Arc::new(LargeListArray::new(item, offsets, Arc::new(StringViewArray::from_iter_values(words)), n.nulls(lists)))
}

fn texts(n: &mut Numbers, rows: usize) -> ArrayRef {
    Arc::new(StringArray::from(n.texts(rows)))
}

/// Structs of a number, a flag, nothing, and a list.
fn parts(n: &mut Numbers, rows: usize) -> ArrayRef {
    let tags = list(n, rows, texts);
    let fields = Fields::from(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("flag", DataType::Boolean, true),
        Field::new("nothing", DataType::Null, true),
        Field::new("tags", tags.data_type().clone(), true),
    ]);
    let flags = BooleanArray::new((0..rows).map(|_| n.below(2) == 1).collect(), n.nulls(rows));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(n.fixed::<Int32Type>(rows)), Arc::new(flags), Arc::new(NullArray::new(rows)), tags];
    Arc::new(StructArray::new(fields, columns, n.nulls(rows)))
}

/// Maps from strings to what `below` makes.
fn map(n: &mut Numbers, maps: usize, below: impl FnOnce(&mut Numbers, usize) -> ArrayRef) -> ArrayRef {
    let offsets = n.offsets(maps);
    let entries = *offsets.last().unwrap() as usize;
    let keys = StringArray::from_iter_values((0..entries).map(|_| n.text()));
    let values = below(n, entries);
    let fields =
        Fields::from(vec![Field::new("keys", DataType::Utf8, false), Field::new("values", values.data_type().clone(), true)]);
    let entries = StructArray::new(fields, vec![Arc::new(keys), values], None);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    Arc::new(MapArray::new(field, offsets, entries, n.nulls(maps), true))
}

/// Columns of nested types of each kind, one of them in a struct, and plain ones between them.
pub fn nested(seed: u64, rows: usize) -> RecordBatch {
    let mut n = Numbers(seed);
    let n = &mut n;
    let inner = Fields::from(vec![
        Field::new("label", DataType::Utf8, true),
        Field::new("tags", DataType::new_list(DataType::Utf8, true), true),
    ]);
    let inner_columns = vec![texts(n, rows), list(n, rows, texts)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef),
        ("texts", list(n, rows, texts)),
        ("views", large_list(n, rows)),
        ("parts", list(n, rows, parts)),
        ("pairs", map(n, rows, |n, entries| Arc::new(n.fixed::<Float64Type>(entries)))),
        ("maps", map(n, rows, |n, entries| map(n, entries, parts))),
        ("deep", list(n, rows, |n, lists| list(n, lists, |n, items| Arc::new(n.fixed::<Int16Type>(items))))),
        ("floats", list(n, rows, |n, items| Arc::new(n.fixed::<Float32Type>(items)))),
        ("in", Arc::new(StructArray::new(inner, inner_columns, n.nulls(rows))) as ArrayRef),
    ];
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect::<Vec<_>>();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn groupings() -> [Grouping; 3] {
    [Grouping::columns(), Grouping::rows().layout(Layout::Packed), Grouping::columns().group(["id", "in", "floats", "pairs"])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nested_columns_come_back_equal(seed: u64, rows in 1usize..200, cut in 1usize..150, step in 1usize..150, which in 0usize..3) {
        let batches = [nested(seed, rows), nested(seed, 1).slice(0, 0), nested(seed ^ 1, rows / 2)];
        let whole = concat_batches(&batches[0].schema(), &batches).unwrap();
        let file = write(&batches, groupings()[which].clone(), cut);
        prop_assert_eq!(read(&file, step), whole);
    }

    #[test]
    fn slices_and_picked_rows_of_nested_columns_are_those_of_the_batch(seed: u64, rows in 20usize..200, which in 0usize..3) {
        let whole = nested(seed, rows);
        let slice = whole.slice(3, rows - 7);
        let file = write(std::slice::from_ref(&slice), groupings()[which].clone(), 1000);
        let table = Table::open(&file).unwrap();
        let columns = [5, 8, 0, 3];
        let chunk = table.plan(0, &table.schema().project(&columns).unwrap()).unwrap().read(&file).unwrap();
        let expected = slice.project(&columns).unwrap();
        prop_assert_eq!(&chunk.batch().unwrap(), &expected);
        let picked = (0..slice.num_rows() as u32).filter(|row| row % 3 == 1).collect::<Vec<_>>();
        let gathered = chunk.gather(&Selection::of_rows(picked.clone()).unwrap()).unwrap();
        prop_assert_eq!(gathered, take_record_batch(&expected, &UInt32Array::from(picked)).unwrap());
        let asked = (0..20).map(|row| row * 7 % slice.num_rows() as u64).collect::<Vec<_>>();
        let taken = take(&table, &file, &table.schema().projection(), &asked).unwrap();
        prop_assert_eq!(taken, take_record_batch(&slice, &UInt64Array::from(asked)).unwrap());
    }
}

#[test]
fn nested_columns_stand_alone_and_say_nothing_of_their_values() {
    let batch = nested(5, 40);
    let file = write(std::slice::from_ref(&batch), Grouping::rows(), 100);
    let table = Table::open(&file).unwrap();
    let path = |leaf: usize| table.schema().leaves()[leaf].path();
    let together = table.groups().iter().filter(|group| group.leaves().len() > 1);
    let together = together.map(|group| group.leaves().iter().map(|&leaf| path(leaf)).collect::<Vec<_>>());
    assert_eq!(together.collect::<Vec<_>>(), [vec!["id", "floats", "in", "in.label"]]);
    let leaf = table.schema().leaf("in.tags").unwrap();
    let known = table.statistics(leaf).unwrap();
    assert_eq!((known.min.len(), known.min.null_count(), known.max.null_count()), (1, 1, 1));
    assert_eq!(known.min.data_type(), table.schema().leaves()[leaf].data_type());
    let tags = batch.column_by_name("in").unwrap();
    let tags = tags.as_any().downcast_ref::<StructArray>().unwrap().column_by_name("tags").unwrap();
    assert_eq!(known.nulls.value(0) as usize, tags.null_count());
    // Fields below a list are no columns of their own.
    assert_eq!(table.schema().project_paths(&["parts.x"]).unwrap_err().kind(), ErrorKind::NotFound);
    let one = table.schema().project_paths(&["in.tags"]).unwrap();
    let read = table.plan(0, &one).unwrap().read(&file).unwrap().batch().unwrap();
    let found = read.column(0).as_any().downcast_ref::<StructArray>().unwrap();
    assert_eq!((found.num_columns(), found.column(0)), (1, tags));
}

/// The least that a file of nested columns has: docs/specs/table.md, byte by byte.
#[test]
fn a_list_of_strings_has_the_bytes_of_the_specification() {
    let mut texts = builder::ListBuilder::new(builder::StringBuilder::new());
    texts.values().append_value("ab");
    texts.values().append_null();
    texts.append(true);
    texts.append(false);
    texts.append(true);
    let batch = RecordBatch::try_from_iter([("t", Arc::new(texts.finish()) as ArrayRef)]).unwrap();
    let file = write(std::slice::from_ref(&batch), Grouping::columns(), 10);
    assert_eq!(&file[..12], b"FBYTABLE\x02\0\0\0");
    let buffer = |at: usize, bytes: &[u8]| assert_eq!(&file[at..at + bytes.len()], bytes, "byte {at}");
    let numbers = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    // Validity and offsets of the lists, then validity, offsets and bytes of the strings.
    buffer(64, &[0b101]);
    buffer(128, &numbers(&[0, 2, 2, 2]));
    buffer(192, &[0b01]);
    buffer(256, &numbers(&[0, 2, 2]));
    buffer(320, b"ab");
    // The metadata begins with one field, `t`: nullable or not, without pairs, a list of a field.
    buffer(384, &[1, 0, 0, 0, 1, 0, 0, 0, b't', 1, 0, 0, 0, 0, 31]);
    assert_eq!(read(&file, 10), batch);
}
