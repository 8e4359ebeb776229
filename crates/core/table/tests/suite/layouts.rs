//! How rows and columns lie in their bytes: sizes of the lecture, no copy, no buffer across segments.

use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use forebay_table::{Grouping, Layout, SEGMENT_BYTES, Table};

use crate::round_trip::{read, write};
use crate::samples::batch;

/// The lecture's schema {int, double, byte[], char, float[]}.
fn lecture() -> RecordBatch {
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let floats =
        ListArray::new(item.clone(), OffsetBuffer::from_lengths([2]), Arc::new(Float32Array::from(vec![0.5, 1.5])), None);
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Float64, false),
        Field::new("c", DataType::Binary, false),
        Field::new("d", DataType::UInt8, false),
        Field::new("e", DataType::List(item), false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![7])),
        Arc::new(Float64Array::from(vec![2.0])),
        Arc::new(BinaryArray::from_vec(vec![b"xyz"])),
        Arc::new(UInt8Array::from(vec![b'q'])),
        Arc::new(floats),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

#[test]
fn the_lectures_row_has_34_bytes_and_the_variable_area() {
    let file = write(&[lecture()], Grouping::rows().layout(Layout::Packed), 10);
    let table = Table::open(&file).unwrap();
    let chunk = table.plan(0, &table.schema().projection()).unwrap().read(&file).unwrap();
    let cell = chunk.row_cell("a").unwrap();
    let row = cell.row(0);
    let mut expected = vec![0b11111];
    expected.extend(45u32.to_le_bytes());
    expected.extend(7i32.to_le_bytes());
    expected.extend(2f64.to_le_bytes());
    expected.extend([34u32, 3].map(u32::to_le_bytes).concat());
    expected.push(b'q');
    expected.extend([37u32, 8].map(u32::to_le_bytes).concat());
    assert_eq!(expected.len(), 34);
    expected.extend(b"xyz");
    expected.extend([0.5f32, 1.5].map(f32::to_le_bytes).concat());
    assert_eq!(row.bytes(), expected);
    assert_eq!(row.value::<i32>(0), Some(7));
    assert_eq!(row.value::<f64>(1), Some(2.0));
    assert_eq!(row.value_bytes(2).unwrap(), Some(&b"xyz"[..]));
    assert_eq!(row.value::<u8>(3), Some(b'q'));
    assert_eq!(row.value_bytes(4).unwrap().unwrap().len(), 8);
}

#[test]
fn rows_in_place_say_what_the_columns_say() {
    let batch = batch(5, 200);
    for layout in [Layout::Aligned, Layout::Packed] {
        let file = write(std::slice::from_ref(&batch), Grouping::rows().layout(layout), 1000);
        let table = Table::open(&file).unwrap();
        let chunk = table.plan(0, &table.schema().projection()).unwrap().read(&file).unwrap();
        let cell = chunk.row_cell("i64").unwrap();
        let (longs, texts, bits) = (cell.column("i64").unwrap(), cell.column("utf8").unwrap(), cell.column("bool").unwrap());
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let (i64s, utf8s, bools) = (column("i64"), column("utf8"), column("bool"));
        let i64s = i64s.as_any().downcast_ref::<Int64Array>().unwrap();
        let utf8s = utf8s.as_any().downcast_ref::<StringArray>().unwrap();
        let bools = bools.as_any().downcast_ref::<BooleanArray>().unwrap();
        for row in 0..cell.rows() {
            assert_eq!(cell.row(row).value::<i64>(longs), i64s.is_valid(row).then(|| i64s.value(row)));
            assert_eq!(cell.row(row).text(texts).unwrap(), utf8s.is_valid(row).then(|| utf8s.value(row)));
            assert_eq!(cell.row(row).value::<bool>(bits), bools.is_valid(row).then(|| bools.value(row)));
        }
    }
}

#[test]
fn a_column_points_into_the_bytes_that_were_given() {
    let longs = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from_iter_values(0..1000)) as ArrayRef)]).unwrap();
    let file = write(&[longs], Grouping::columns(), 1000);
    let table = Table::open(&file).unwrap();
    let range = table.cell(0, 0).unwrap().ranges().next().unwrap();
    assert_eq!(range.start % 64, 0);
    let bytes = Bytes::copy_from_slice(&file[range.start as usize..range.end as usize]);
    assert_eq!(bytes.as_ptr().align_offset(8), 0, "an allocation is aligned for numbers of 8 bytes");
    let chunk = table.plan(0, &table.schema().projection()).unwrap().open(vec![bytes.clone()]).unwrap();
    let batch = chunk.batch().unwrap();
    let values = batch.column(0).to_data().buffers()[0].as_ptr();
    assert_eq!(values, bytes.as_ptr());
}

#[test]
fn bytes_at_odd_addresses_are_copied_and_read_the_same() {
    let batch = batch(9, 100);
    for grouping in [Grouping::columns(), Grouping::rows()] {
        let file = write(std::slice::from_ref(&batch), grouping, 1000);
        let mut odd = vec![0];
        odd.extend_from_slice(&file);
        assert_eq!(read(&Bytes::from(odd).slice(1..), 1000), batch);
    }
}

#[test]
fn no_buffer_crosses_a_segment() {
    let rows = 700_000;
    let columns = (0..12).map(|column| {
        let values = Int64Array::from_iter_values((0..rows).map(|row| row * 12 + column));
        (format!("c{column}"), Arc::new(values) as ArrayRef)
    });
    let names = RecordBatch::try_from_iter(columns.collect::<Vec<_>>()).unwrap();
    let texts = StringArray::from_iter_values((0..rows).map(|row| format!("{:01$}", row, row as usize % 30)));
    let mut columns = names.columns()[..8].to_vec();
    columns.push(Arc::new(texts));
    let named = columns.into_iter().enumerate().map(|(at, column)| (format!("c{at}"), column)).collect::<Vec<_>>();
    let with_texts = RecordBatch::try_from_iter(named).unwrap();
    for (batch, grouping) in [(&names, Grouping::columns()), (&names, Grouping::rows()), (&with_texts, Grouping::rows())] {
        let file = write(std::slice::from_ref(batch), grouping, 90_000);
        assert!(file.len() as u64 > SEGMENT_BYTES, "{}", file.len());
        let table = Table::open(&file).unwrap();
        let mut parts = 0;
        for row_group in 0..table.row_groups() {
            for group in 0..table.groups().len() {
                for range in table.cell(row_group, group).unwrap().ranges() {
                    assert_eq!(range.start / SEGMENT_BYTES, (range.end - 1) / SEGMENT_BYTES);
                    parts += 1;
                }
            }
        }
        let offsets = usize::from(batch.num_columns() == 9) * table.row_groups();
        assert!(table.groups().len() > 1 || parts > table.row_groups() + offsets, "rows are cut at the segment's end");
        // What padding there is costs little, and so do offsets and sizes beside 8 columns of 8 bytes.
        let values = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap()).sum::<usize>();
        assert!((file.len() as f64) < values as f64 * if offsets > 0 { 1.25 } else { 1.1 }, "{} of {values}", file.len());
        assert_eq!(&read(&file, 100_000), batch);
        let sparse = (0..70).map(|at| 699_999 - at * 9_007).collect::<Vec<u64>>();
        let taken = forebay_table::take(&table, &file, &table.schema().projection(), &sparse).unwrap();
        assert_eq!(taken, arrow_select::take::take_record_batch(batch, &UInt64Array::from(sparse)).unwrap());
    }
}
