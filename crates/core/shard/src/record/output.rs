use forebay_types::Result;

use crate::model::schema::Schema;
use crate::model::value::Value;

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

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.nulls = 0;
    }

    /// Ends the value whose bytes were appended.
    #[inline]
    pub(crate) fn end_value(&mut self, null: bool) {
        self.nulls |= u128::from(null) << self.ends.len();
        self.ends.push(self.bytes.len() as u32);
    }
}
