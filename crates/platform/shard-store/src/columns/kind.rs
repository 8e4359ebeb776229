//! The types that columns have in the input, what a shard makes of each, and how a value is printed again.

use forebay_shard::{Value, ValueType};
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value as Json};

use super::text;
use crate::literal::Literal;

/// The type of a column in the input; what is printed has it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// True or false.
    Bool,
    /// A whole number of at most 64 bits with sign.
    Int,
    /// A whole number of 64 bits without sign.
    Uint,
    /// A floating-point number of 32 bits.
    Float32,
    /// A floating-point number of 64 bits.
    Float64,
    /// A number with that many digits after the point.
    Decimal(u8),
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
    /// A day.
    Date,
    /// A time, to the microsecond, without a zone.
    Timestamp,
    /// A time, to the microsecond, in UTC.
    TimestampUtc,
    /// A time, to the nanosecond, without a zone; from 1677 to 2262.
    TimestampNanos,
    /// A time, to the nanosecond, in UTC.
    TimestampNanosUtc,
}

impl ColumnKind {
    /// How a shard keeps such values.
    pub fn value_type(self) -> ValueType {
        match self {
            Self::Bool => ValueType::Bool,
            Self::Int => ValueType::Int,
            Self::Uint => ValueType::Decimal { scale: 0 },
            Self::Float32 | Self::Float64 => ValueType::Float,
            Self::Decimal(scale) => ValueType::Decimal { scale },
            Self::Text => ValueType::Text,
            Self::Binary => ValueType::Bytes,
            Self::Date => ValueType::Date,
            Self::Timestamp | Self::TimestampUtc | Self::TimestampNanos | Self::TimestampNanosUtc => ValueType::Timestamp,
        }
    }

    /// Of a time: the digits behind its seconds.
    fn digits(self) -> usize {
        if matches!(self, Self::TimestampNanos | Self::TimestampNanosUtc) { 9 } else { 6 }
    }

    /// The type's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int | Self::Uint => "integer",
            Self::Float32 | Self::Float64 => "number",
            Self::Decimal(_) => "decimal",
            Self::Text => "text",
            Self::Binary => "bytes",
            Self::Date => "date",
            Self::Timestamp | Self::TimestampUtc | Self::TimestampNanos | Self::TimestampNanosUtc => "timestamp",
        }
    }

    /// What was written, as a value of this type.
    pub fn value(self, literal: &Literal) -> Result<Value> {
        let value = match (self, literal) {
            (_, Literal::Null) => Some(Value::Null),
            (Self::Bool, Literal::Bool(value)) => Some(Value::Bool(*value)),
            (Self::Bool, Literal::Text(text)) => text.to_ascii_lowercase().parse().ok().map(Value::Bool),
            (Self::Text, Literal::Text(text)) => Some(Value::Text(text.clone())),
            (Self::Text, Literal::Bytes(bytes)) => String::from_utf8(bytes.clone()).ok().map(Value::Text),
            (Self::Binary, Literal::Bytes(bytes)) => Some(Value::Bytes(bytes.clone())),
            (Self::Binary, Literal::Text(text)) => Some(Value::Bytes(text.clone().into_bytes())),
            (Self::Date, Literal::Text(text)) => text::parse_date(text).map(Value::Date),
            (_, Literal::Text(text)) if self.value_type() == ValueType::Timestamp => {
                text::parse_timestamp(text, self.digits()).map(Value::Timestamp)
            }
            (_, Literal::Text(text)) => self.number(text.trim()),
            (Self::Decimal(_), Literal::Number(number)) => self.number(&text::without_exponent(&number.to_string())),
            (_, Literal::Number(number)) => self.number(&number.to_string()),
            _ => None,
        };
        value.ok_or_else(|| Error::invalid(format!("{literal} is no {}{}", self.name(), self.example())))
    }

    fn example(self) -> String {
        match self {
            Self::Date => ", as in 1995-03-15".to_string(),
            _ if self.value_type() == ValueType::Timestamp => ", as in 1995-03-15T12:30:00".to_string(),
            Self::Bool => ": true or false".to_string(),
            Self::Decimal(scale) => format!(" of {scale} digits after the point"),
            _ => String::new(),
        }
    }

    fn number(self, text: &str) -> Option<Value> {
        match self {
            Self::Int => text.parse().ok().map(Value::Int),
            Self::Uint => text.parse::<u64>().ok().map(|value| Value::Decimal(value.into())),
            Self::Float32 => text.parse::<f32>().ok().map(|value| Value::Float(value.into())),
            Self::Float64 => text.parse().ok().map(Value::Float),
            Self::Decimal(scale) => text::parse_decimal(text, scale).map(Value::Decimal),
            _ => None,
        }
    }

    /// A value as JSON of this type; text where bytes are UTF-8.
    pub fn json(self, value: &Value) -> Json {
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) if self == Self::Float32 => {
                // The shortest text of the 32 bits, not that of the 64 that hold them.
                (*value as f32).to_string().parse().ok().and_then(Number::from_f64).map_or_else(|| special(*value), Json::Number)
            }
            Value::Float(value) => Number::from_f64(*value).map_or_else(|| special(*value), Json::Number),
            Value::Decimal(value) => match self {
                Self::Decimal(scale) if scale > 0 => decimal(*value, scale),
                _ => u64::try_from(*value)
                    .map(Json::from)
                    .or_else(|_| i64::try_from(*value).map(Json::from))
                    .unwrap_or_else(|_| decimal(*value, 0)),
            },
            Value::Text(text) => Json::String(text.clone()),
            Value::Bytes(bytes) => Literal::bytes_to_json(bytes),
            Value::Date(days) => Json::String(text::format_date(*days)),
            Value::Timestamp(time) => {
                let zone = if matches!(self, Self::TimestampUtc | Self::TimestampNanosUtc) { "Z" } else { "" };
                Json::String(text::format_timestamp(*time, self.digits()) + zone)
            }
        }
    }
}

/// Not-a-number and the infinities have no JSON number.
fn special(value: f64) -> Json {
    Json::String(value.to_string())
}

/// A number where JSON's readers keep all its digits, and it is written without an exponent; text elsewhere.
fn decimal(value: i128, scale: u8) -> Json {
    let text = text::format_decimal(value, scale);
    let number = (value.unsigned_abs() < 10u128.pow(15)).then(|| text.parse().ok().and_then(Number::from_f64)).flatten();
    let number = number.filter(|number| text::parse_decimal(&number.to_string(), scale) == Some(value));
    number.map_or(Json::String(text), Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_printed_are_read_to_the_last_digit() {
        for kind in [ColumnKind::Timestamp, ColumnKind::TimestampUtc, ColumnKind::TimestampNanos, ColumnKind::TimestampNanosUtc] {
            for value in [0, 1, -1, 1_700_000_000_123_456_789, 1_700_000_000_000_000_000, -1_000_000_001] {
                let json = kind.json(&Value::Timestamp(value));
                let literal = Literal::from_json(&json).unwrap();
                assert_eq!(kind.value(&literal).unwrap(), Value::Timestamp(value), "{json} of {kind:?}");
            }
        }
        for end in [i64::MIN, i64::MAX] {
            let json = ColumnKind::TimestampNanos.json(&Value::Timestamp(end));
            let literal = Literal::from_json(&json).unwrap();
            assert_eq!(ColumnKind::TimestampNanos.value(&literal).unwrap(), Value::Timestamp(end), "{json}");
        }
        assert_eq!(ColumnKind::TimestampNanosUtc.json(&Value::Timestamp(1)), "1970-01-01T00:00:00.000000001Z");
        let text = |text: &str| Literal::Text(text.to_string());
        assert!(ColumnKind::Timestamp.value(&text("1970-01-01T00:00:00.0000001")).is_err(), "finer than it is kept");
        assert!(ColumnKind::TimestampNanos.value(&text("2300-01-01")).is_err(), "past what they reach");
    }

    #[test]
    fn decimals_that_are_printed_are_read() {
        for scale in 0..=38 {
            let kind = ColumnKind::Decimal(scale);
            for value in [0, 1, -1, 12, 999, 1000, -123_456, 10i128.pow(15) - 1, 10i128.pow(15), 10i128.pow(37)] {
                let json = kind.json(&Value::Decimal(value));
                let literal = Literal::from_json(&json).unwrap();
                assert_eq!(kind.value(&literal).unwrap(), Value::Decimal(value), "{json} of scale {scale}");
            }
        }
        let number =
            |json: &str| ColumnKind::Decimal(10).value(&Literal::from_json(&serde_json::from_str(json).unwrap()).unwrap());
        for (json, value) in
            [("0.0000000003", 3), ("3e-10", 3), ("-1.25e-7", -1250), ("0.00001", 100_000), ("0.0", 0), ("-0.0", 0)]
        {
            assert_eq!(number(json).unwrap(), Value::Decimal(value), "{json}");
        }
        for wrong in ["1e-11", "1.25e-10", "100000000000000000001"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ColumnKind::Decimal(2).json(&Value::Decimal(-105)), serde_json::json!(-1.05));
        assert_eq!(ColumnKind::Decimal(8).json(&Value::Decimal(1)), "0.00000001");
    }
}
