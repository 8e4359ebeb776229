//! One record on its way out, and the two layers that hold whole records: compressed blocks and plain text.

pub(crate) mod blocks;
pub(crate) mod body;
pub(crate) mod codes;
pub(crate) mod plain;
pub(crate) mod varint;

use forebay_types::Result;

use crate::model::schema::{ATTRIBUTES_MAX, Schema};
use crate::model::value::{Value, ValueType};

/// The values of one record as the shard keeps them. Keep one and hand it in again: its buffers are used again.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<u32>,
    pub(crate) nulls: u128,
}

impl Record {
    /// A record of no values.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many values: all attributes, or the ones asked for.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The encoded bytes of value `index`; `None` for null.
    #[inline]
    pub fn bytes(&self, index: usize) -> Option<&[u8]> {
        if self.nulls >> index & 1 == 1 {
            return None;
        }
        let from = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        self.bytes.get(from..self.ends[index] as usize)
    }

    /// The values; `columns` are the attributes that were asked for, or all.
    pub fn values(&self, schema: &Schema, columns: Option<&[usize]>) -> Result<Vec<Value>> {
        (0..self.len())
            .map(|index| {
                let attribute = columns.map_or(index, |columns| columns[index]);
                match self.bytes(index) {
                    None => Ok(Value::Null),
                    Some(bytes) => schema.attributes[attribute].value_type.decode(bytes),
                }
            })
            .collect()
    }

    /// Appends a value; one that is not of its type is refused.
    pub fn push(&mut self, value_type: ValueType, value: &Value) -> Result<()> {
        let is_there = value_type.encode(value, &mut self.bytes)?;
        self.end_value(!is_there);
        Ok(())
    }

    /// Appends the record in one piece, which [`Self::read`] takes apart.
    pub fn write(&self, out: &mut Vec<u8>) {
        for index in 0..self.len() {
            varint::write(self.bytes(index).map_or(0, |bytes| bytes.len() as u64 + 1), out);
        }
        out.extend_from_slice(&self.bytes);
    }

    /// The record of so many values at the start of `bytes`, which came from elsewhere, and how many bytes it has; none where
    /// they are no such record.
    pub fn read(bytes: &[u8], values: usize) -> Option<(Self, usize)> {
        if values > ATTRIBUTES_MAX {
            return None;
        }
        let mut record = Self { ends: Vec::with_capacity(values), ..Self::default() };
        let (mut at, mut end) = (0, 0_u32);
        for index in 0..values {
            let (length, next) = varint::read(bytes, at);
            // It ends with its last byte there, and not before.
            if next == at || bytes[next - 1] & 0x80 != 0 {
                return None;
            }
            at = next;
            record.nulls |= u128::from(length == 0) << index;
            end = end.checked_add(u32::try_from(length.saturating_sub(1)).ok()?)?;
            record.ends.push(end);
        }
        let whole = at.checked_add(end as usize)?;
        record.bytes = bytes.get(at..whole)?.to_vec();
        Some((record, whole))
    }

    /// Empties it, for another record.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.nulls = 0;
    }

    /// Ends the value whose bytes were appended.
    #[inline]
    pub(crate) fn end_value(&mut self, null: bool) {
        debug_assert!(self.ends.last().is_none_or(|last| *last as usize <= self.bytes.len()), "values lie behind each other");
        self.nulls |= u128::from(null) << self.ends.len();
        self.ends.push(self.bytes.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_in_one_piece_comes_back_and_one_that_is_cut_or_lies_does_not() {
        let mut record = Record::new();
        record.push(ValueType::Text, &Value::Text("x".repeat(300))).unwrap();
        record.push(ValueType::Int, &Value::Null).unwrap();
        record.push(ValueType::Text, &Value::Text(String::new())).unwrap();
        record.push(ValueType::Int, &Value::Int(-5)).unwrap();
        assert!(record.push(ValueType::Int, &Value::Bool(true)).is_err());
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        let whole = bytes.len();
        bytes.extend_from_slice(b"what follows");
        let (back, length) = Record::read(&bytes, 4).unwrap();
        assert_eq!(length, whole);
        assert_eq!(
            (0..4).map(|index| back.bytes(index)).collect::<Vec<_>>(),
            (0..4).map(|index| record.bytes(index)).collect::<Vec<_>>()
        );
        for cut in 0..whole {
            assert!(Record::read(&bytes[..cut], 4).is_none(), "cut at {cut}");
        }
        assert!(Record::read(&[0xff; 20], 1).is_none() && Record::read(&[0; 200], ATTRIBUTES_MAX + 1).is_none());
        assert!(Record::read(&[0xff, 0xff, 0xff, 0xff, 0x7f, 1], 1).is_none(), "longer than what came");
    }
}
