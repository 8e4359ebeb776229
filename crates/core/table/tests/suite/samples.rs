//! Batches with a column of every type that a table can hold, made from a seed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use forebay_types::split_mix;

/// A sequence of numbers that looks random (splitmix64).
#[derive(Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn nulls(&mut self, rows: usize) -> Option<NullBuffer> {
        let one_in = [2, 9, 0][self.below(3)];
        (one_in > 0).then(|| NullBuffer::from_iter((0..rows).map(|_| !self.below(one_in).eq(&0))))
    }

    pub fn fixed<P: ArrowPrimitiveType>(&mut self, rows: usize) -> PrimitiveArray<P> {
        let values = (0..rows).map(|_| P::Native::usize_as(self.next() as usize)).collect::<Vec<_>>();
        PrimitiveArray::new(values.into(), self.nulls(rows))
    }

    pub fn text(&mut self) -> String {
        let length = [0, 3, 12, 13, 40, 100][self.below(6)];
        (0..length).map(|_| ['a', 'b', 'é', '水', '🜁'][self.below(5)]).collect()
    }

    pub fn texts(&mut self, rows: usize) -> Vec<Option<String>> {
        (0..rows).map(|_| (self.below(5) > 0).then(|| self.text())).collect()
    }

    pub fn offsets(&mut self, rows: usize) -> OffsetBuffer<i32> {
        OffsetBuffer::from_lengths((0..rows).map(|_| self.below(5)))
    }
}

/// Columns of every type, some of them nested.
pub fn batch(seed: u64, rows: usize) -> RecordBatch {
    let mut n = Numbers(seed);
    let mut columns: Vec<(Field, ArrayRef)> = Vec::new();
    let mut add = |name: &str, array: ArrayRef| {
        columns.push((Field::new(name, array.data_type().clone(), true), array));
    };
    add("null", Arc::new(NullArray::new(rows)));
    add("bool", Arc::new(BooleanArray::new((0..rows).map(|_| n.below(2) == 1).collect(), n.nulls(rows))));
    add("i8", Arc::new(n.fixed::<Int8Type>(rows)));
    add("i16", Arc::new(n.fixed::<Int16Type>(rows)));
    add("i32", Arc::new(n.fixed::<Int32Type>(rows)));
    add("i64", Arc::new(n.fixed::<Int64Type>(rows)));
    add("u8", Arc::new(n.fixed::<UInt8Type>(rows)));
    add("u16", Arc::new(n.fixed::<UInt16Type>(rows)));
    add("u32", Arc::new(n.fixed::<UInt32Type>(rows)));
    add("u64", Arc::new(n.fixed::<UInt64Type>(rows)));
    add("f16", Arc::new(n.fixed::<Float16Type>(rows)));
    add("f32", Arc::new(n.fixed::<Float32Type>(rows)));
    add("f64", Arc::new(n.fixed::<Float64Type>(rows)));
    add("date32", Arc::new(n.fixed::<Date32Type>(rows)));
    add("date64", Arc::new(n.fixed::<Date64Type>(rows)));
    add("time32s", Arc::new(n.fixed::<Time32SecondType>(rows)));
    add("time32ms", Arc::new(n.fixed::<Time32MillisecondType>(rows)));
    add("time64us", Arc::new(n.fixed::<Time64MicrosecondType>(rows)));
    add("time64ns", Arc::new(n.fixed::<Time64NanosecondType>(rows)));
    add("ts_s", Arc::new(n.fixed::<TimestampSecondType>(rows).with_timezone("Europe/Paris")));
    add("ts_ms", Arc::new(n.fixed::<TimestampMillisecondType>(rows)));
    add("ts_us", Arc::new(n.fixed::<TimestampMicrosecondType>(rows).with_timezone("+02:00")));
    add("ts_ns", Arc::new(n.fixed::<TimestampNanosecondType>(rows)));
    add("dur_s", Arc::new(n.fixed::<DurationSecondType>(rows)));
    add("dur_ms", Arc::new(n.fixed::<DurationMillisecondType>(rows)));
    add("dur_us", Arc::new(n.fixed::<DurationMicrosecondType>(rows)));
    add("dur_ns", Arc::new(n.fixed::<DurationNanosecondType>(rows)));
    add("months", Arc::new(n.fixed::<IntervalYearMonthType>(rows)));
    let days = (0..rows).map(|_| IntervalDayTimeType::make_value(n.next() as i32, n.next() as i32)).collect::<Vec<_>>();
    add("days", Arc::new(IntervalDayTimeArray::new(days.into(), n.nulls(rows))));
    let nanos = (0..rows).map(|_| IntervalMonthDayNanoType::make_value(1, n.next() as i32, n.next() as i64));
    let nanos = nanos.collect::<Vec<_>>();
    add("nanos", Arc::new(IntervalMonthDayNanoArray::new(nanos.into(), n.nulls(rows))));
    add("dec32", Arc::new(n.fixed::<Decimal32Type>(rows).with_precision_and_scale(9, 2).unwrap()));
    add("dec64", Arc::new(n.fixed::<Decimal64Type>(rows).with_precision_and_scale(18, -3).unwrap()));
    add("dec128", Arc::new(n.fixed::<Decimal128Type>(rows).with_precision_and_scale(38, 10).unwrap()));
    add("dec256", Arc::new(n.fixed::<Decimal256Type>(rows).with_precision_and_scale(76, 0).unwrap()));
    let fixed = (0..rows).map(|_| (n.below(4) > 0).then(|| n.next().to_le_bytes()[..5].to_vec())).collect::<Vec<_>>();
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 5).unwrap();
    add("fsb", Arc::new(fixed));
    add("utf8", Arc::new(StringArray::from(n.texts(rows))));
    add("large_utf8", Arc::new(LargeStringArray::from(n.texts(rows))));
    add("utf8_view", Arc::new(StringViewArray::from_iter(n.texts(rows))));
    let bytes = |n: &mut Numbers| (0..rows).map(|_| (n.below(5) > 0).then(|| n.text().into_bytes())).collect::<Vec<_>>();
    add("binary", Arc::new(BinaryArray::from_iter(bytes(&mut n))));
    add("large_binary", Arc::new(LargeBinaryArray::from_iter(bytes(&mut n))));
    add("binary_view", Arc::new(BinaryViewArray::from_iter(bytes(&mut n))));
    lists(&mut n, rows, &mut add);
    structs(&mut n, rows, &mut add);
    let metadata = HashMap::from([("made by".to_owned(), "samples".to_owned())]);
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, metadata)), arrays).unwrap()
}

fn lists(n: &mut Numbers, rows: usize, add: &mut dyn FnMut(&str, ArrayRef)) {
    let offsets = n.offsets(rows);
    let items = *offsets.last().unwrap() as usize;
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let nulls = n.nulls(rows);
    add("floats", Arc::new(ListArray::new(item, offsets, Arc::new(n.fixed::<Float32Type>(items)), nulls)));

    let offsets = n.offsets(rows);
    let items = *offsets.last().unwrap() as usize;
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let values = (0..items).map(|_| n.next() as i64).collect::<Vec<_>>();
    let offsets = OffsetBuffer::new(offsets.iter().map(|&offset| i64::from(offset)).collect());
    add("longs", Arc::new(LargeListArray::new(item, offsets, Arc::new(Int64Array::from(values)), n.nulls(rows))));

    let offsets = n.offsets(rows);
    let items = *offsets.last().unwrap() as usize;
    let item = Arc::new(Field::new("item", DataType::Boolean, true));
    let bits = BooleanArray::new((0..items).map(|_| n.below(2) == 1).collect(), n.nulls(items));
    add("bits", Arc::new(ListArray::new(item, offsets, Arc::new(bits), n.nulls(rows))));

    let offsets = n.offsets(rows);
    let items = *offsets.last().unwrap() as usize;
    let item = Arc::new(Field::new("item", DataType::Timestamp(TimeUnit::Second, Some("UTC".into())), true));
    let times = n.fixed::<TimestampSecondType>(items).with_timezone("UTC");
    add("times", Arc::new(ListArray::new(item, offsets, Arc::new(times), n.nulls(rows))));
}

fn structs(n: &mut Numbers, rows: usize, add: &mut dyn FnMut(&str, ArrayRef)) {
    let inner = Fields::from(vec![Field::new("x", DataType::Int32, true), Field::new("name", DataType::Utf8, true)]);
    let columns: Vec<ArrayRef> = vec![Arc::new(n.fixed::<Int32Type>(rows)), Arc::new(StringArray::from(n.texts(rows)))];
    let inner_array = StructArray::new(inner.clone(), columns, n.nulls(rows));
    let outer = Fields::from(vec![
        Field::new("inner", DataType::Struct(inner), true),
        Field::new("y", DataType::Float64, true),
        Field::new("nothing", DataType::Struct(Fields::empty()), true),
    ]);
    let empty =
        StructArray::new_empty_fields(rows, Some(NullBuffer::new(BooleanBuffer::from_iter((0..rows).map(|row| row % 3 > 0)))));
    let columns: Vec<ArrayRef> = vec![Arc::new(inner_array), Arc::new(n.fixed::<Float64Type>(rows)), Arc::new(empty)];
    add("nested", Arc::new(StructArray::new(outer, columns, n.nulls(rows))));
}

/// The schema of [`batch`].
pub fn schema() -> SchemaRef {
    batch(0, 0).schema()
}
