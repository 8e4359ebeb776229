//! A record's values in one piece of memory: as many small ones take several times as much.

use std::sync::Arc;

use forebay_shard::Value;

/// Values of one record, which those share who have it.
#[derive(Clone)]
pub(crate) struct Values(Arc<[u8]>);

/// One of them, as it stands there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Held<'a> {
    /// Bytes, or the bytes of text.
    String(&'a [u8]),
    /// What is none.
    Other(Value),
}

/// What is before each value: its bytes times 16, and which kind it is, seven bits a byte.
mod kind {
    pub(super) const NULL: u64 = 0;
    pub(super) const BYTES: u64 = 1;
    pub(super) const TEXT: u64 = 2;
    pub(super) const BOOL: u64 = 3;
    pub(super) const INT: u64 = 4;
    pub(super) const FLOAT: u64 = 5;
    pub(super) const DECIMAL: u64 = 6;
    pub(super) const DATE: u64 = 7;
    pub(super) const TIMESTAMP: u64 = 8;
}

impl Values {
    pub(crate) fn new(values: &[Value]) -> Self {
        let mut out = Vec::new();
        for value in values {
            match value {
                Value::Null => put(&mut out, kind::NULL, &[]),
                Value::Bytes(bytes) => put(&mut out, kind::BYTES, bytes),
                Value::Text(text) => put(&mut out, kind::TEXT, text.as_bytes()),
                Value::Bool(value) => put(&mut out, kind::BOOL, &[u8::from(*value)]),
                Value::Int(value) => put(&mut out, kind::INT, &value.to_le_bytes()),
                Value::Float(value) => put(&mut out, kind::FLOAT, &value.to_bits().to_le_bytes()),
                Value::Decimal(value) => put(&mut out, kind::DECIMAL, &value.to_le_bytes()),
                Value::Date(value) => put(&mut out, kind::DATE, &value.to_le_bytes()),
                Value::Timestamp(value) => put(&mut out, kind::TIMESTAMP, &value.to_le_bytes()),
            }
        }
        Self(out.into())
    }

    pub(crate) fn to_vec(&self) -> Vec<Value> {
        self.each().map(|(kind, bytes)| value_of(kind, bytes)).collect()
    }

    pub(crate) fn at(&self, place: usize) -> Held<'_> {
        match self.each().nth(place) {
            Some((kind::BYTES | kind::TEXT, bytes)) => Held::String(bytes),
            Some((kind, bytes)) => Held::Other(value_of(kind, bytes)),
            None => Held::Other(Value::Null),
        }
    }

    /// The bytes of each, with one for its kind: no more than the log has for them.
    pub(crate) fn bytes(&self) -> usize {
        self.each().map(|(_, bytes)| 1 + bytes.len()).sum()
    }

    fn each(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (mut head, mut shift) = (0, 0);
            while let Some((byte, behind)) = rest.split_first() {
                head |= u64::from(byte & 0x7f) << shift;
                (rest, shift) = (behind, shift + 7);
                if byte & 0x80 == 0 {
                    let (bytes, behind) = rest.split_at((head >> 4) as usize);
                    rest = behind;
                    return Some((head & 15, bytes));
                }
            }
            None
        })
    }
}

fn put(out: &mut Vec<u8>, kind: u64, bytes: &[u8]) {
    let mut head = (bytes.len() as u64) << 4 | kind;
    while head >= 0x80 {
        out.push(head as u8 | 0x80);
        head >>= 7;
    }
    out.push(head as u8);
    out.extend_from_slice(bytes);
}

fn value_of(kind: u64, bytes: &[u8]) -> Value {
    fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().expect("a number was put with all of its bytes")
    }
    match kind {
        kind::BYTES => Value::Bytes(bytes.to_vec()),
        // It was text.
        kind::TEXT => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        kind::BOOL => Value::Bool(bytes == [1]),
        kind::INT => Value::Int(i64::from_le_bytes(fixed(bytes))),
        kind::FLOAT => Value::Float(f64::from_bits(u64::from_le_bytes(fixed(bytes)))),
        kind::DECIMAL => Value::Decimal(i128::from_le_bytes(fixed(bytes))),
        kind::DATE => Value::Date(i32::from_le_bytes(fixed(bytes))),
        kind::TIMESTAMP => Value::Timestamp(i64::from_le_bytes(fixed(bytes))),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_one_by_one_and_all() {
        let values = vec![
            Value::Null,
            Value::Bytes(vec![0, 255]),
            Value::Text("ü".repeat(100)),
            Value::Text(String::new()),
            Value::Bool(true),
            Value::Bool(false),
            Value::Int(-5),
            Value::Float(-0.5),
            Value::Decimal(-1 << 100),
            Value::Date(9204),
            Value::Timestamp(-1),
        ];
        let held = Values::new(&values);
        assert_eq!(held.to_vec(), values);
        for (place, value) in values.iter().enumerate() {
            match (held.at(place), value) {
                (Held::String(bytes), Value::Bytes(value)) => assert_eq!(bytes, value),
                (Held::String(bytes), Value::Text(value)) => assert_eq!(bytes, value.as_bytes()),
                (Held::Other(held), value) => assert_eq!(held, *value),
                (held, value) => panic!("{held:?} for {value:?}"),
            }
        }
        assert!(Values::new(&[]).to_vec().is_empty());
    }
}
