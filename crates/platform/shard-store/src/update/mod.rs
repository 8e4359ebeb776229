//! Updates that are not compressed yet: what the log says, record by record.

mod filter;
mod log_store;
mod matches;
mod values;
mod wanted;

use forebay_shard::{Key, Value};
use forebay_types::{Error, Result};

pub use filter::Filter;
pub(crate) use log_store::{LogStore, Update};
pub(crate) use matches::Matcher;
pub(crate) use values::{Held, Values};
pub use wanted::{ChangeIf, WantedChange};

/// One update of a shard.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// This is the record of its key from now on.
    Put(Key, Vec<Value>),
    /// There is no record of this key from now on.
    Delete(Key),
}

impl Change {
    /// The key that it changes.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }

    /// Appends it as it stands in the log.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (operation, values) = match self {
            Self::Put(_, values) => (0, values.as_slice()),
            Self::Delete(_) => (1, &[][..]),
        };
        out.push(operation);
        match self.key() {
            Key::U64(key) => {
                out.push(0);
                out.extend_from_slice(&key.to_le_bytes());
            }
            Key::Bytes(bytes) => {
                out.push(1);
                put_bytes(out, bytes);
            }
        }
        out.extend_from_slice(&u32::try_from(values.len()).expect("columns are bounded").to_le_bytes());
        for value in values {
            match value {
                Value::Null => out.push(0),
                Value::Bytes(bytes) => {
                    out.push(1);
                    put_bytes(out, bytes);
                }
                Value::Text(text) => {
                    out.push(2);
                    put_bytes(out, text.as_bytes());
                }
                Value::Bool(value) => out.extend_from_slice(&[3, u8::from(*value)]),
                Value::Int(value) => put_number(out, 4, &value.to_le_bytes()),
                Value::Float(value) => put_number(out, 5, &value.to_bits().to_le_bytes()),
                Value::Decimal(value) => put_number(out, 6, &value.to_le_bytes()),
                Value::Date(value) => put_number(out, 7, &value.to_le_bytes()),
                Value::Timestamp(value) => put_number(out, 8, &value.to_le_bytes()),
            }
        }
    }

    /// The change at the start of `bytes`, which moves behind it.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Self> {
        read(bytes).ok_or_else(|| Error::corrupt("an entry is not an update of a shard"))
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).expect("values are bounded").to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn take_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head.to_vec())
}

fn read(bytes: &mut &[u8]) -> Option<Change> {
    let [operation, key_type] = take(bytes)?;
    let key = match key_type {
        0 => Key::U64(u64::from_le_bytes(take(bytes)?)),
        1 => Key::Bytes(take_bytes(bytes)?),
        _ => return None,
    };
    let count = u32::from_le_bytes(take(bytes)?);
    let values: Option<Vec<Value>> = (0..count).map(|_| read_value(bytes)).collect();
    match operation {
        0 => Some(Change::Put(key, values?)),
        1 => Some(Change::Delete(key)),
        _ => None,
    }
}

fn read_value(bytes: &mut &[u8]) -> Option<Value> {
    let [tag] = take(bytes)?;
    Some(match tag {
        0 => Value::Null,
        1 => Value::Bytes(take_bytes(bytes)?),
        2 => Value::Text(String::from_utf8(take_bytes(bytes)?).ok()?),
        3 => Value::Bool(take::<1>(bytes)? == [1]),
        4 => Value::Int(i64::from_le_bytes(take(bytes)?)),
        5 => Value::Float(f64::from_bits(u64::from_le_bytes(take(bytes)?))),
        6 => Value::Decimal(i128::from_le_bytes(take(bytes)?)),
        7 => Value::Date(i32::from_le_bytes(take(bytes)?)),
        8 => Value::Timestamp(i64::from_le_bytes(take(bytes)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_and_cut_ones_are_errors() {
        let values = vec![
            Value::Null,
            Value::Bytes(vec![0, 255]),
            Value::Text("ü".into()),
            Value::Bool(true),
            Value::Int(-5),
            Value::Float(-0.5),
            Value::Decimal(-1 << 100),
            Value::Date(9204),
            Value::Timestamp(-1),
        ];
        for change in [Change::Put(Key::U64(7), values), Change::Delete(Key::from("k")), Change::Put(Key::from(""), vec![])] {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(Change::decode(&mut rest).unwrap(), change);
            assert!(rest.is_empty());
            for cut in 0..bytes.len() {
                assert!(Change::decode(&mut &bytes[..cut]).is_err(), "{change:?} cut at {cut}");
            }
        }
    }
}
