//! The schema's bytes in the metadata block; see docs/specs/table.md.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, TimeUnit};
use forebay_types::{Error, Result};

use super::leaf::DEPTH_MAX;
use crate::fields::{Decoder, Encoder};

/// A schema's bytes, as a table has them: the same for equal schemas.
/// `Invalid` for types that a table can't hold.
pub fn schema_to_bytes(schema: &Schema) -> Result<Vec<u8>> {
    let mut out = Encoder::default();
    encode_schema(schema, &mut out)?;
    Ok(out.0)
}

/// The schema that [`schema_to_bytes`] was given.
/// `Corrupt` for bytes that are none.
pub fn schema_from_bytes(bytes: &[u8]) -> Result<Schema> {
    let mut input = Decoder::new(bytes);
    let schema = decode_schema(&mut input)?;
    input.end()?;
    Ok(schema)
}

pub(crate) fn encode_schema(schema: &Schema, out: &mut Encoder) -> Result<()> {
    encode_fields(schema.fields(), out)?;
    encode_pairs(schema.metadata(), out);
    Ok(())
}

pub(crate) fn decode_schema(input: &mut Decoder<'_>) -> Result<Schema> {
    let fields = decode_fields(input, 0)?;
    Ok(Schema::new_with_metadata(fields, decode_pairs(input)?))
}

fn encode_fields(fields: &Fields, out: &mut Encoder) -> Result<()> {
    out.u32(fields.len() as u32);
    fields.iter().try_for_each(|field| encode_field(field, out))
}

fn decode_fields(input: &mut Decoder<'_>, depth: usize) -> Result<Vec<FieldRef>> {
    let count = input.count(10)?;
    (0..count).map(|_| decode_field(input, depth)).collect()
}

fn encode_field(field: &Field, out: &mut Encoder) -> Result<()> {
    out.text(field.name());
    out.u8(field.is_nullable().into());
    encode_pairs(field.metadata(), out);
    encode_type(field.data_type(), out)
}

fn decode_field(input: &mut Decoder<'_>, depth: usize) -> Result<FieldRef> {
    if depth > DEPTH_MAX + 1 {
        return Err(input.corrupt("the schema is nested too deeply"));
    }
    let name = input.text()?;
    let nullable = input.flag()?;
    let pairs = decode_pairs(input)?;
    let data_type = decode_type(input, depth)?;
    Ok(Arc::new(Field::new(name, data_type, nullable).with_metadata(pairs)))
}

fn encode_pairs(pairs: &HashMap<String, String>, out: &mut Encoder) {
    // Sorted, so that equal tables have equal bytes.
    let mut pairs = pairs.iter().collect::<Vec<_>>();
    pairs.sort();
    out.u32(pairs.len() as u32);
    for (key, value) in pairs {
        out.text(key);
        out.text(value);
    }
}

fn decode_pairs(input: &mut Decoder<'_>) -> Result<HashMap<String, String>> {
    let count = input.count(8)?;
    (0..count).map(|_| Ok((input.text()?, input.text()?))).collect()
}

/// Types that are a tag and nothing else.
const PLAIN: [(u8, DataType); 21] = [
    (0, DataType::Null),
    (1, DataType::Boolean),
    (2, DataType::Int8),
    (3, DataType::Int16),
    (4, DataType::Int32),
    (5, DataType::Int64),
    (6, DataType::UInt8),
    (7, DataType::UInt16),
    (8, DataType::UInt32),
    (9, DataType::UInt64),
    (10, DataType::Float16),
    (11, DataType::Float32),
    (12, DataType::Float64),
    (13, DataType::Date32),
    (14, DataType::Date64),
    (25, DataType::Utf8),
    (26, DataType::LargeUtf8),
    (27, DataType::Utf8View),
    (28, DataType::Binary),
    (29, DataType::LargeBinary),
    (30, DataType::BinaryView),
];

fn encode_type(data_type: &DataType, out: &mut Encoder) -> Result<()> {
    use DataType as T;
    if let Some((tag, _)) = PLAIN.iter().find(|(_, plain)| plain == data_type) {
        out.u8(*tag);
        return Ok(());
    }
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.u8(tag);
        out.bytes(bytes);
    };
    match data_type {
        T::Time32(unit) => tagged(15, &[time_unit(*unit)]),
        T::Time64(unit) => tagged(16, &[time_unit(*unit)]),
        T::Timestamp(unit, zone) => {
            tagged(17, &[time_unit(*unit), zone.is_some().into()]);
            if let Some(zone) = zone {
                out.text(zone);
            }
        }
        T::Duration(unit) => tagged(18, &[time_unit(*unit)]),
        T::Interval(unit) => tagged(19, &[interval_unit(*unit)]),
        T::Decimal32(precision, scale) => tagged(20, &[*precision, *scale as u8]),
        T::Decimal64(precision, scale) => tagged(21, &[*precision, *scale as u8]),
        T::Decimal128(precision, scale) => tagged(22, &[*precision, *scale as u8]),
        T::Decimal256(precision, scale) => tagged(23, &[*precision, *scale as u8]),
        T::FixedSizeBinary(width) => tagged(24, &width.to_le_bytes()),
        T::List(item) => {
            tagged(31, &[]);
            encode_field(item, out)?;
        }
        T::LargeList(item) => {
            tagged(32, &[]);
            encode_field(item, out)?;
        }
        T::Struct(fields) => {
            tagged(33, &[]);
            encode_fields(fields, out)?;
        }
        T::Map(entries, is_sorted) => {
            tagged(34, &[(*is_sorted).into()]);
            encode_field(entries, out)?;
        }
        other => return Err(Error::invalid(format!("a table can't hold the type {other}"))),
    }
    Ok(())
}

fn decode_type(input: &mut Decoder<'_>, depth: usize) -> Result<DataType> {
    use DataType as T;
    let tag = input.u8()?;
    if let Some((_, plain)) = PLAIN.iter().find(|(plain, _)| *plain == tag) {
        return Ok(plain.clone());
    }
    Ok(match tag {
        15 => match decode_time_unit(input)? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => T::Time32(unit),
            _ => return Err(input.corrupt("32 bits of time are of seconds or milliseconds")),
        },
        16 => match decode_time_unit(input)? {
            unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond) => T::Time64(unit),
            _ => return Err(input.corrupt("64 bits of time are of microseconds or nanoseconds")),
        },
        17 => {
            let unit = decode_time_unit(input)?;
            let zone = if input.flag()? { Some(input.text()?.into()) } else { None };
            T::Timestamp(unit, zone)
        }
        18 => T::Duration(decode_time_unit(input)?),
        19 => T::Interval(match input.u8()? {
            0 => IntervalUnit::YearMonth,
            1 => IntervalUnit::DayTime,
            2 => IntervalUnit::MonthDayNano,
            _ => return Err(input.corrupt("unknown unit of intervals")),
        }),
        20 => decimal(input, 9, T::Decimal32)?,
        21 => decimal(input, 18, T::Decimal64)?,
        22 => decimal(input, 38, T::Decimal128)?,
        23 => decimal(input, 76, T::Decimal256)?,
        24 => T::FixedSizeBinary(input.u32()? as i32),
        31 => T::List(decode_field(input, depth + 1)?),
        32 => T::LargeList(decode_field(input, depth + 1)?),
        33 => T::Struct(Fields::from(decode_fields(input, depth + 1)?)),
        34 => {
            let is_sorted = input.flag()?;
            T::Map(decode_field(input, depth + 1)?, is_sorted)
        }
        _ => return Err(input.corrupt("unknown type of a column")),
    })
}

fn decimal(input: &mut Decoder<'_>, digits: u8, make: fn(u8, i8) -> DataType) -> Result<DataType> {
    let (precision, scale) = (input.u8()?, input.u8()? as i8);
    if precision == 0 || precision > digits || i16::from(scale).unsigned_abs() > u16::from(precision) {
        return Err(input.corrupt("a decimal's precision or scale is out of range"));
    }
    Ok(make(precision, scale))
}

fn time_unit(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

fn decode_time_unit(input: &mut Decoder<'_>) -> Result<TimeUnit> {
    Ok(match input.u8()? {
        0 => TimeUnit::Second,
        1 => TimeUnit::Millisecond,
        2 => TimeUnit::Microsecond,
        3 => TimeUnit::Nanosecond,
        _ => return Err(input.corrupt("unknown unit of time")),
    })
}

fn interval_unit(unit: IntervalUnit) -> u8 {
    match unit {
        IntervalUnit::YearMonth => 0,
        IntervalUnit::DayTime => 1,
        IntervalUnit::MonthDayNano => 2,
    }
}
