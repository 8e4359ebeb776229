//! Typed values as bytes that sort as the values do, so that a range of values is an interval of rows.

use forebay_types::{Error, Result};

/// What the values of an attribute are. Every type may also be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Any bytes.
    Bytes,
    /// UTF-8.
    Text,
    /// False or true.
    Bool,
    /// 64 bits, signed.
    Int,
    /// 64 bits, in the total order of IEEE 754.
    Float,
    /// A whole number of `10^-scale`.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Since 1970-01-01T00:00:00Z, in the unit of its column.
    Timestamp,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// For [`ValueType::Bytes`].
    Bytes(Vec<u8>),
    /// For [`ValueType::Text`].
    Text(String),
    /// For [`ValueType::Bool`].
    Bool(bool),
    /// For [`ValueType::Int`].
    Int(i64),
    /// For [`ValueType::Float`].
    Float(f64),
    /// For [`ValueType::Decimal`]: the number without its point.
    Decimal(i128),
    /// For [`ValueType::Date`].
    Date(i32),
    /// For [`ValueType::Timestamp`].
    Timestamp(i64),
}

impl ValueType {
    /// Whether values are strings, which prefix, substring and regular expression search.
    pub fn is_string(self) -> bool {
        matches!(self, Self::Bytes | Self::Text)
    }

    pub(crate) fn code(self) -> [u8; 2] {
        match self {
            Self::Bytes => [0, 0],
            Self::Text => [1, 0],
            Self::Bool => [2, 0],
            Self::Int => [3, 0],
            Self::Float => [4, 0],
            Self::Decimal { scale } => [5, scale],
            Self::Date => [6, 0],
            Self::Timestamp => [7, 0],
        }
    }

    pub(crate) fn from_code(code: [u8; 2]) -> Option<Self> {
        Some(match code {
            [0, 0] => Self::Bytes,
            [1, 0] => Self::Text,
            [2, 0] => Self::Bool,
            [3, 0] => Self::Int,
            [4, 0] => Self::Float,
            [5, scale] => Self::Decimal { scale },
            [6, 0] => Self::Date,
            [7, 0] => Self::Timestamp,
            _ => return None,
        })
    }

    /// Appends `value` so that the order of bytes is the order of values. False for null, which has no bytes.
    pub(crate) fn encode(self, value: &Value, out: &mut Vec<u8>) -> Result<bool> {
        match (self, value) {
            (_, Value::Null) => return Ok(false),
            (Self::Bytes, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
            (Self::Bytes | Self::Text, Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
            (Self::Bool, Value::Bool(value)) => out.push(u8::from(*value)),
            (Self::Int, Value::Int(value)) | (Self::Timestamp, Value::Timestamp(value)) => encode_int(i128::from(*value), out),
            (Self::Date, Value::Date(value)) => encode_int(i128::from(*value), out),
            (Self::Decimal { .. }, Value::Decimal(value)) => encode_int(*value, out),
            (Self::Float, Value::Float(value)) => {
                let bits = value.to_bits();
                let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                out.extend_from_slice(&ordered.to_be_bytes());
            }
            _ => return Err(Error::invalid(format!("{value:?} is not a value of type {self:?}"))),
        }
        Ok(true)
    }

    /// The value that `encode` wrote.
    pub fn decode(self, bytes: &[u8]) -> Result<Value> {
        let value = match self {
            Self::Bytes => Some(Value::Bytes(bytes.to_vec())),
            Self::Text => String::from_utf8(bytes.to_vec()).ok().map(Value::Text),
            Self::Bool => (bytes.len() == 1).then(|| Value::Bool(bytes[0] == 1)),
            Self::Int => decode_int(bytes).and_then(|value| value.try_into().ok()).map(Value::Int),
            Self::Timestamp => decode_int(bytes).and_then(|value| value.try_into().ok()).map(Value::Timestamp),
            Self::Date => decode_int(bytes).and_then(|value| value.try_into().ok()).map(Value::Date),
            Self::Decimal { .. } => decode_int(bytes).map(Value::Decimal),
            Self::Float => bytes.try_into().ok().map(|bytes| {
                let ordered = u64::from_be_bytes(bytes);
                Value::Float(f64::from_bits(if ordered >> 63 == 1 { ordered ^ 1 << 63 } else { !ordered }))
            }),
        };
        value.ok_or_else(|| Error::corrupt(format!("a shard holds bytes that are not of type {self:?}; build it again")))
    }
}

/// Numbers of -64..64 take one byte; others a byte for sign and length, then that many big-endian bytes.
const SMALL: i128 = 64;

fn encode_int(value: i128, out: &mut Vec<u8>) {
    if (-SMALL..SMALL).contains(&value) {
        out.push((0x80 + value) as u8);
        return;
    }
    let magnitude = if value < 0 { !value } else { value } as u128;
    let length = (128 - magnitude.leading_zeros()).div_ceil(8) as usize;
    out.push(if value < 0 { 0x40 - length as u8 } else { 0xbf + length as u8 });
    out.extend_from_slice(&value.to_be_bytes()[16 - length..]);
}

fn decode_int(bytes: &[u8]) -> Option<i128> {
    let (&head, rest) = bytes.split_first()?;
    let (negative, length) = match head {
        0x40..=0xbf => return rest.is_empty().then(|| i128::from(head) - 0x80),
        0xc0.. => (false, head as usize - 0xbf),
        _ => (true, 0x40 - head as usize),
    };
    if length > 16 || rest.len() != length {
        return None;
    }
    let mut wide = if negative { [0xff; 16] } else { [0; 16] };
    wide[16 - length..].copy_from_slice(rest);
    Some(i128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(value_type: ValueType, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(value_type.encode(value, &mut out).unwrap());
        assert_eq!(value_type.decode(&out).unwrap(), *value);
        out
    }

    proptest! {
        #[test]
        fn numbers_keep_their_order(a in any::<i64>(), b in any::<i64>(), shift in 0u32..64) {
            let (a, b) = (a >> shift, b >> shift);
            let (x, y) = (bytes_of(ValueType::Int, &Value::Int(a)), bytes_of(ValueType::Int, &Value::Int(b)));
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        }

        #[test]
        fn decimals_keep_their_order(a in any::<i128>(), b in any::<i128>(), shift in 0u32..128) {
            let kind = ValueType::Decimal { scale: 2 };
            let (a, b) = (a >> shift, b >> shift);
            let (x, y) = (bytes_of(kind, &Value::Decimal(a)), bytes_of(kind, &Value::Decimal(b)));
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        }

        #[test]
        fn floats_keep_their_order(a in any::<f64>(), b in any::<f64>()) {
            let (x, y) = (bytes_of(ValueType::Float, &Value::Float(a)), bytes_of(ValueType::Float, &Value::Float(b)));
            prop_assert_eq!(a.total_cmp(&b), x.cmp(&y));
        }
    }
}
