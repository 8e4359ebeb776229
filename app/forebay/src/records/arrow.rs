//! How columns of Arrow become the keys and values of a shard's records; Parquet and CSV come this way.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
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
            let (kind, cast) = kind_of(field.data_type());
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
            let array = cast_with_options(array, &self.casts[place], &AS_TEXT).map_err(|error| {
                Error::invalid(format!("column {name} can't be read as {}: {error}; leave it out", self.casts[place]))
            })?;
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
    use datafusion::arrow::array::{Int64Array, Int64Builder, ListBuilder};

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
        let wanted = Wanted { key: "id", columns: None, in_paths: &[] };
        let records = Rows::new(&batch.schema(), &[0, 1], &wanted).unwrap().records(&batch).unwrap();
        let read: Vec<Value> = records.into_iter().flat_map(|(_, values)| values).collect();
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(read, [text("[null]"), text("[]"), Value::Null, text("[1, null, 2]")]);
    }
}
