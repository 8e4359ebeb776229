//! Records as columns.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder, Int64Builder,
    RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder, TimestampNanosecondBuilder, UInt64Builder,
};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, SchemaRef, TimeUnit};
use forebay_shard::Value;
use forebay_shard_store::{ColumnKind, Columns, Literal};
use forebay_types::{Error, Result};
use serde_json::Value as Json;

const UTC: &str = "UTC";

/// The columns of a dataset, as the engine has them.
pub(super) fn schema_of(columns: &Columns) -> Schema {
    let field = |(place, column): (usize, &forebay_shard_store::Column)| {
        Field::new(&column.name, type_of(column.kind), place != columns.key_place())
    };
    Schema::new(columns.all().iter().enumerate().map(field).collect::<Vec<_>>())
}

fn type_of(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Bool => DataType::Boolean,
        ColumnKind::Int => DataType::Int64,
        ColumnKind::Uint => DataType::UInt64,
        ColumnKind::Float32 => DataType::Float32,
        ColumnKind::Float64 => DataType::Float64,
        ColumnKind::Decimal(scale) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale as i8),
        ColumnKind::Text => DataType::Utf8,
        ColumnKind::Binary => DataType::Binary,
        ColumnKind::Date => DataType::Date32,
        ColumnKind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnKind::TimestampUtc => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        ColumnKind::TimestampNanos => DataType::Timestamp(TimeUnit::Nanosecond, None),
        ColumnKind::TimestampNanosUtc => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
    }
}

/// Some columns of records, each a JSON object as workers answer them.
pub(super) fn batch_of(records: &[Json], columns: &Columns, schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = schema.fields().iter().map(|field| {
        let kind = columns.all()[columns.place(field.name())?].kind;
        let values = records.iter().map(|record| value_of(record.get(field.name()), kind));
        array_of(kind, values).map_err(|error| error.context(format!("column {}", field.name())))
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(records.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &rows).map_err(|error| Error::internal(error.to_string()))
}

fn value_of(json: Option<&Json>, kind: ColumnKind) -> Result<Value> {
    json.map_or(Ok(Value::Null), |json| kind.value(&Literal::from_json(json)?))
}

/// Appends what fits the type, null for null; anything else came wrong.
macro_rules! built {
    ($builder:expr, $values:expr, $($value:pat => $appended:expr),+ $(,)?) => {{
        let mut builder = $builder;
        for value in $values {
            match value? {
                Value::Null => builder.append_null(),
                $($value => builder.append_value($appended),)+
                other => return Err(wrong(&other)),
            }
        }
        Arc::new(builder.finish()) as ArrayRef
    }};
}

fn array_of(kind: ColumnKind, values: impl Iterator<Item = Result<Value>>) -> Result<ArrayRef> {
    Ok(match kind {
        ColumnKind::Bool => built!(BooleanBuilder::new(), values, Value::Bool(value) => value),
        ColumnKind::Int => built!(Int64Builder::new(), values, Value::Int(value) => value),
        ColumnKind::Uint => {
            let whole = |value: i128| u64::try_from(value).map_err(|_| wrong(&Value::Decimal(value)));
            built!(UInt64Builder::new(), values, Value::Decimal(value) => whole(value)?)
        }
        ColumnKind::Float32 => built!(Float32Builder::new(), values, Value::Float(value) => value as f32),
        ColumnKind::Float64 => built!(Float64Builder::new(), values, Value::Float(value) => value),
        ColumnKind::Decimal(_) => {
            let builder = Decimal128Builder::new().with_data_type(type_of(kind));
            built!(builder, values, Value::Decimal(value) => value)
        }
        ColumnKind::Text => built!(StringBuilder::new(), values, Value::Text(value) => value),
        ColumnKind::Binary => built!(BinaryBuilder::new(), values, Value::Bytes(value) => value),
        ColumnKind::Date => built!(Date32Builder::new(), values, Value::Date(value) => value),
        ColumnKind::Timestamp | ColumnKind::TimestampUtc => {
            let builder = TimestampMicrosecondBuilder::new().with_data_type(type_of(kind));
            built!(builder, values, Value::Timestamp(value) => value)
        }
        ColumnKind::TimestampNanos | ColumnKind::TimestampNanosUtc => {
            let builder = TimestampNanosecondBuilder::new().with_data_type(type_of(kind));
            built!(builder, values, Value::Timestamp(value) => value)
        }
    })
}

fn wrong(value: &Value) -> Error {
    Error::internal(format!("a worker answered {value:?}, which is none of the column's type"))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use forebay_shard_store::Column;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_type_comes_as_it_was() {
        let kinds = [
            ("id", ColumnKind::Uint),
            ("yes", ColumnKind::Bool),
            ("n", ColumnKind::Int),
            ("f", ColumnKind::Float32),
            ("g", ColumnKind::Float64),
            ("d", ColumnKind::Decimal(2)),
            ("t", ColumnKind::Text),
            ("b", ColumnKind::Binary),
            ("day", ColumnKind::Date),
            ("at", ColumnKind::Timestamp),
            ("utc", ColumnKind::TimestampUtc),
            ("exact", ColumnKind::TimestampNanos),
            ("exact_utc", ColumnKind::TimestampNanosUtc),
        ];
        let all = kinds.map(|(name, kind)| Column { name: name.to_string(), kind }).to_vec();
        let columns = Columns::new(all, "id").unwrap();
        let values = [
            Value::Decimal(u64::MAX.into()),
            Value::Bool(true),
            Value::Int(-5),
            Value::Float(0.5),
            Value::Float(f64::INFINITY),
            Value::Decimal(-105),
            Value::Text("é".into()),
            Value::Bytes(vec![0, 255]),
            Value::Date(-1),
            Value::Timestamp(1_500_000),
            Value::Timestamp(-1),
            Value::Timestamp(1),
            Value::Timestamp(-1),
        ];
        let full: serde_json::Map<_, _> =
            kinds.iter().zip(&values).map(|((name, kind), value)| (name.to_string(), kind.json(value))).collect();
        let schema = Arc::new(schema_of(&columns));
        let batch = batch_of(&[Json::Object(full), json!({"id": 1})], &columns, &schema).unwrap();
        let shown = pretty_format_batches(&[batch]).unwrap().to_string();
        let row = |at: usize| {
            shown.lines().nth(at).unwrap().split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
        };
        let expected = [
            "18446744073709551615",
            "true",
            "-5",
            "0.5",
            "inf",
            "-1.05",
            "é",
            "00ff",
            "1969-12-31",
            "1970-01-01T00:00:01.500",
            "1969-12-31T23:59:59.999999Z",
            "1970-01-01T00:00:00.000000001",
            "1969-12-31T23:59:59.999999999Z",
        ];
        assert_eq!(row(3), expected);
        assert_eq!(row(4), ["1"], "what a record doesn't have is null");
        let wrong = batch_of(&[json!({"id": 1, "n": "x"})], &columns, &schema).unwrap_err();
        assert!(wrong.message().contains("column n"), "{wrong}");
    }
}
