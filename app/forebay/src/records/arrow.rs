//! How columns of Arrow become the keys and values of a shard's records; Parquet and CSV come this way.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, key_of_value};
use forebay_types::{Error, Result};

use super::{PIECE_BYTES, Wanted};

/// Bytes of text in a record at most.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// Bytes that the lists in a column of a batch take at most: as text, which they become, they take more.
const LISTS_BYTES_MAX: usize = 32 << 20;
/// What becomes text says what is missing in it: a list of one null is not an empty one.
const AS_TEXT: CastOptions<'static> = CastOptions { safe: true, format_options: FormatOptions::new().with_null("null") };

/// Turns batches of a file's columns into records.
pub(super) struct Rows {
    pub(super) columns: Columns,
    /// The type that each column is brought to first.
    casts: Vec<DataType>,
    /// Text that is missing is text of no characters, where a format can't tell them apart.
    pub(super) empty_text: bool,
    rows: u64,
}

impl Rows {
    /// For batches that have the columns of `schema` at `places`.
    pub(super) fn new(schema: &Schema, places: &[usize], wanted: &Wanted<'_>) -> Result<Self> {
        let (mut columns, mut casts) = (Vec::new(), Vec::new());
        for field in places.iter().map(|&place| schema.field(place)) {
            let (kind, cast) = as_there(kind_of(field.data_type()), wanted.kind_there(field.name()));
            columns.push(Column { name: field.name().clone(), kind });
            casts.push(cast);
        }
        Ok(Self { columns: Columns::new(columns, wanted.key)?, casts, empty_text: false, rows: 0 })
    }

    /// The records of a batch that has just these columns.
    pub(super) fn records(&mut self, batch: &RecordBatch) -> Result<Vec<(Key, Vec<Value>)>> {
        let mut records: Vec<Vec<Value>> = vec![Vec::with_capacity(self.casts.len()); batch.num_rows()];
        let mut keys = Vec::with_capacity(batch.num_rows());
        for (place, array) in batch.columns().iter().enumerate() {
            let name = &self.columns.all()[place].name;
            let read = array;
            let array = cast_with_options(read, &self.casts[place], &AS_TEXT).map_err(|error| {
                Error::invalid(format!("column {name} can't be read as {}: {error}; leave it out", self.casts[place]))
            })?;
            check_times(read, &array).map_err(|error| error.context(format!("column {name}")))?;
            let text = self.empty_text && self.columns.all()[place].kind == ColumnKind::Text;
            let given = |value| if text && value == Value::Null { Value::Text(String::new()) } else { value };
            if place == self.columns.key_place() {
                for value in values(&array)?.map(given) {
                    let row = self.rows + keys.len() as u64 + 1;
                    keys.push(key_of_value(&value).map_err(|error| error.context(format!("record {row}: {name}")))?);
                }
            } else {
                values(&array)?.map(given).zip(&mut records).for_each(|(value, record)| record.push(value));
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(keys.into_iter().zip(records).collect())
    }
}

/// How a shard keeps a column of this type, and the one of few types to read it as.
fn kind_of(data_type: &DataType) -> (ColumnKind, DataType) {
    use DataType::*;
    match data_type {
        Boolean => (ColumnKind::Bool, Boolean),
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => (ColumnKind::Int, Int64),
        UInt64 => (ColumnKind::Uint, Decimal128(20, 0)),
        Float16 | Float32 => (ColumnKind::Float32, Float64),
        Float64 => (ColumnKind::Float64, Float64),
        Decimal32(precision, scale) | Decimal64(precision, scale) | Decimal128(precision, scale) if *scale >= 0 => {
            (ColumnKind::Decimal(*scale as u8), Decimal128(*precision, *scale))
        }
        Date32 | Date64 => (ColumnKind::Date, Date32),
        Timestamp(TimeUnit::Nanosecond, zone) => {
            let kind = if zone.is_some() { ColumnKind::TimestampNanosUtc } else { ColumnKind::TimestampNanos };
            (kind, data_type.clone())
        }
        Timestamp(_, zone) => {
            let kind = if zone.is_some() { ColumnKind::TimestampUtc } else { ColumnKind::Timestamp };
            (kind, Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        Binary | LargeBinary | FixedSizeBinary(_) => (ColumnKind::Binary, LargeBinary),
        BinaryView => (ColumnKind::Binary, BinaryView),
        Utf8View => (ColumnKind::Text, Utf8View),
        Dictionary(_, value) => kind_of(value),
        // Text; and what has no type of its own in a shard, as its text.
        _ => (ColumnKind::Text, LargeUtf8),
    }
}

/// Times in the unit that the dataset's column of that name has, where that is of times as well.
fn as_there((kind, cast): (ColumnKind, DataType), there: Option<ColumnKind>) -> (ColumnKind, DataType) {
    use ColumnKind::{Timestamp, TimestampNanos, TimestampNanosUtc, TimestampUtc};
    let DataType::Timestamp(_, zone) = &cast else { return (kind, cast) };
    let unit = match (there, zone.is_some()) {
        (Some(Timestamp), false) | (Some(TimestampUtc), true) => TimeUnit::Microsecond,
        (Some(TimestampNanos), false) | (Some(TimestampNanosUtc), true) => TimeUnit::Nanosecond,
        _ => return (kind, cast),
    };
    (there.unwrap_or(kind), DataType::Timestamp(unit, zone.clone()))
}

/// Refuses times that would be cut, or lost, in the unit that they are brought to.
fn check_times(given: &ArrayRef, kept: &ArrayRef) -> Result<()> {
    let (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) = (given.data_type(), kept.data_type()) else { return Ok(()) };
    let is_finer = |time: i64| time % 1000 != 0;
    if (from, to) == (&TimeUnit::Nanosecond, &TimeUnit::Microsecond)
        && given.as_primitive::<TimestampNanosecondType>().iter().flatten().any(is_finer)
    {
        return Err(Error::invalid(
            "a time is finer than the microseconds of the dataset's other files: write these in nanoseconds too",
        ));
    }
    if kept.null_count() > given.null_count() {
        return Err(Error::invalid(
            "a time is out of the range of those that the dataset has: nanoseconds reach from 1677 to 2262",
        ));
    }
    Ok(())
}

fn values(array: &ArrayRef) -> Result<Box<dyn Iterator<Item = Value> + '_>> {
    macro_rules! each {
        ($array:expr, $make:expr) => {
            Box::new($array.iter().map(|value| value.map_or(Value::Null, $make)))
        };
    }
    Ok(match array.data_type() {
        DataType::Boolean => each!(array.as_boolean(), Value::Bool),
        DataType::Int64 => each!(array.as_primitive::<Int64Type>(), Value::Int),
        DataType::Float64 => each!(array.as_primitive::<Float64Type>(), Value::Float),
        DataType::Decimal128(..) => each!(array.as_primitive::<Decimal128Type>(), Value::Decimal),
        DataType::Date32 => each!(array.as_primitive::<Date32Type>(), Value::Date),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            each!(array.as_primitive::<TimestampMicrosecondType>(), Value::Timestamp)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            each!(array.as_primitive::<TimestampNanosecondType>(), Value::Timestamp)
        }
        DataType::LargeBinary => each!(array.as_binary::<i64>(), |bytes: &[u8]| Value::Bytes(bytes.to_vec())),
        DataType::BinaryView => each!(array.as_binary_view(), |bytes: &[u8]| Value::Bytes(bytes.to_vec())),
        DataType::LargeUtf8 => each!(array.as_string::<i64>(), |text: &str| Value::Text(text.to_string())),
        DataType::Utf8View => each!(array.as_string_view(), |text: &str| Value::Text(text.to_string())),
        other => return Err(Error::internal(format!("a column of {other} was not brought to a known type"))),
    })
}

/// A batch in parts whose text takes few bytes: of what many rows have in common there is one in a batch, but one a row in records.
pub(super) fn cut(batch: &RecordBatch) -> Result<Vec<RecordBatch>> {
    let mut of_rows = vec![0usize; batch.num_rows()];
    let schema = batch.schema();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let lengths: Vec<u32> = match array.data_type() {
            DataType::Utf8View => array.as_string_view().lengths().collect(),
            DataType::BinaryView => array.as_binary_view().lengths().collect(),
            _ if array.get_array_memory_size() > LISTS_BYTES_MAX => {
                let (name, rows, most) = (field.name(), batch.num_rows(), LISTS_BYTES_MAX >> 20);
                return Err(Error::invalid(format!("{rows} values of column {name} take more than {most} MiB")));
            }
            _ => continue,
        };
        of_rows.iter_mut().zip(lengths).for_each(|(bytes, length)| *bytes += length as usize);
    }
    let (mut parts, mut start, mut taken) = (Vec::new(), 0, 0);
    for (row, bytes) in of_rows.into_iter().enumerate() {
        if bytes > RECORD_BYTES_MAX {
            return Err(Error::invalid(format!("a record has more than {} MiB", RECORD_BYTES_MAX >> 20)));
        }
        if row > start && taken + bytes > PIECE_BYTES {
            parts.push(batch.slice(start, row - start));
            (start, taken) = (row, 0);
        }
        taken += bytes;
    }
    parts.push(batch.slice(start, batch.num_rows() - start));
    Ok(parts)
}

/// The schema of the columns at `places`.
pub(super) fn project(schema: &Schema, places: &[usize]) -> Arc<Schema> {
    Arc::new(Schema::new(places.iter().map(|&place| schema.fields()[place].clone()).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Int64Array, Int64Builder, ListBuilder, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray,
    };

    use super::*;

    #[test]
    fn what_is_missing_in_a_list_is_told_from_an_empty_list_and_from_none() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        let values: [Option<&[Option<i64>]>; 4] = [Some(&[None]), Some(&[]), None, Some(&[Some(1), None, Some(2)])];
        for list in values {
            list.into_iter().flatten().for_each(|value| lists.values().append_option(*value));
            lists.append(list.is_some());
        }
        let (ids, lists): (ArrayRef, ArrayRef) = (Arc::new(Int64Array::from_iter_values(0..4)), Arc::new(lists.finish()));
        let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("list", lists, true)]).unwrap();
        let wanted = Wanted { key: "id", columns: None, in_paths: &[], like: None };
        let records = Rows::new(&batch.schema(), &[0, 1], &wanted).unwrap().records(&batch).unwrap();
        let read: Vec<Value> = records.into_iter().flat_map(|(_, values)| values).collect();
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(read, [text("[null]"), text("[]"), Value::Null, text("[1, null, 2]")]);
    }

    /// What is read of times beside a key, and as what, where other files have columns like these.
    fn times(array: ArrayRef, like: Option<&Columns>) -> Result<(Columns, Vec<Value>)> {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..array.len() as i64));
        let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("at", array, true)]).unwrap();
        let mut rows = Rows::new(&batch.schema(), &[0, 1], &Wanted { key: "id", columns: None, in_paths: &[], like })?;
        let records = rows.records(&batch)?;
        Ok((rows.columns.clone(), records.into_iter().flat_map(|(_, values)| values).collect()))
    }

    #[test]
    fn times_are_kept_to_the_nanosecond_where_a_file_has_them() {
        let of = |times: &[i64]| times.iter().map(|time| Value::Timestamp(*time)).collect::<Vec<_>>();
        let nanos = |times: Vec<i64>| -> ArrayRef { Arc::new(TimestampNanosecondArray::from(times)) };
        let micros = |times: Vec<i64>| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(times)) };
        let (fine, read) = times(nanos(vec![1, -1_234_567_891]), None).unwrap();
        assert_eq!(fine.all()[1].kind, ColumnKind::TimestampNanos);
        assert_eq!(read, of(&[1, -1_234_567_891]));
        let (coarse, read) = times(micros(vec![7]), None).unwrap();
        assert_eq!((coarse.all()[1].kind, read), (ColumnKind::Timestamp, of(&[7])));
        // Files of one dataset may differ, as long as nothing is lost by it.
        assert_eq!(times(micros(vec![7]), Some(&fine)).unwrap(), (fine.clone(), of(&[7000])));
        assert_eq!(times(nanos(vec![7000]), Some(&coarse)).unwrap(), (coarse.clone(), of(&[7])));
        let cut = times(nanos(vec![7001]), Some(&coarse)).unwrap_err();
        assert!(cut.message().starts_with("column at: a time is finer"), "{cut}");
        let late: ArrayRef = Arc::new(TimestampSecondArray::from(vec![20_000_000_000]));
        let lost = times(late, Some(&fine)).unwrap_err();
        assert!(lost.message().starts_with("column at: a time is out of the range"), "{lost}");
    }
}
