//! Takes the updates in and sorts their suffixes once, when all of them are there.

use forebay_types::{Error, Result};

use super::SuffixStore;
use crate::build::sort::suffix_array;
use crate::model::alphabet::Alphabet;
use crate::model::key::Key;
use crate::model::schema::Schema;
use crate::model::value::Value;
use crate::psi::Column;
use crate::record::Record;

/// The text of a store is at most this long: five bytes of memory a symbol.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Takes updates in the order of their keys and makes a [`SuffixStore`] of them.
pub struct SuffixStoreBuilder {
    schema: Schema,
    keys: Vec<Key>,
    /// Ends of the records in `ends`: as many values as attributes, or none for a deletion.
    puts: Vec<bool>,
    /// The values of all records, one after the other.
    values: Vec<u8>,
    /// Where each value ends; `NULL` for none.
    ends: Vec<u32>,
    used: [bool; 256],
    nulls: bool,
}

/// Stands for null among the ends of values.
const NULL: u32 = u32::MAX;

impl SuffixStoreBuilder {
    /// A builder of no updates yet.
    pub fn new(schema: Schema) -> Result<Self> {
        schema.validate()?;
        let (keys, puts, values, ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { schema, keys, puts, values, ends, used: [false; 256], nulls: false })
    }

    /// Adds the record that a key has from now on.
    pub fn put(&mut self, key: &Key, values: &[Value]) -> Result<()> {
        self.begin(key, true)?;
        for (index, value) in values.iter().enumerate() {
            let from = self.values.len();
            let there = self.schema.attributes[index].value_type.encode(value, &mut self.values)?;
            self.end_value(there.then_some(from));
        }
        self.end(values.len())
    }

    /// The same for a record of another store.
    pub fn put_record(&mut self, key: &Key, record: &Record) -> Result<()> {
        self.begin(key, true)?;
        for index in 0..record.len() {
            let from = self.values.len();
            self.values.extend_from_slice(record.bytes(index).unwrap_or_default());
            self.end_value(record.bytes(index).map(|_| from));
        }
        self.end(record.len())
    }

    /// Adds that a key has no record from now on.
    pub fn delete(&mut self, key: &Key) -> Result<()> {
        self.begin(key, false)
    }

    fn begin(&mut self, key: &Key, put: bool) -> Result<()> {
        if key.key_type() != self.schema.key_type || self.keys.last().is_some_and(|last| last >= key) {
            return Err(Error::internal(format!("key {key} is not the next one of its type")));
        }
        self.keys.push(key.clone());
        self.puts.push(put);
        Ok(())
    }

    fn end_value(&mut self, from: Option<usize>) {
        if let Some(from) = from {
            self.values[from..].iter().for_each(|byte| self.used[*byte as usize] = true);
        }
        self.nulls |= from.is_none();
        self.ends.push(from.map_or(NULL, |_| self.values.len() as u32));
    }

    fn end(&mut self, values: usize) -> Result<()> {
        let attributes = self.schema.attributes.len();
        if values != attributes {
            return Err(Error::internal(format!("a record has {values} values, not {attributes}")));
        }
        // Each byte may become a pair of symbols.
        if 2 * self.values.len() + self.ends.len() > TEXT_BYTES_MAX {
            return Err(Error::invalid("these are too many updates for one suffix array; compress some first"));
        }
        Ok(())
    }

    /// Sorts the suffixes.
    pub fn finish(self) -> Result<SuffixStore> {
        let attributes = self.schema.attributes.len();
        let alphabet = Alphabet::new(attributes as u8, self.used, self.nulls);
        let mut text = Vec::with_capacity(self.values.len() + self.ends.len());
        let mut starts = Vec::with_capacity(self.keys.len() + 1);
        let (mut from, mut ends) = (0, self.ends.iter());
        for put in &self.puts {
            starts.push(text.len() as u32);
            for (attribute, end) in ends.by_ref().take(if *put { attributes } else { 0 }).enumerate() {
                text.push(alphabet.delimiter(attribute));
                if *end == NULL {
                    text.extend(alphabet.null);
                } else {
                    alphabet.encode(&self.values[from..*end as usize], &mut text);
                    from = *end as usize;
                }
            }
        }
        assert!(ends.len() == 0 && from == self.values.len(), "each value is of a record");
        starts.push(text.len() as u32);
        let mut columns = vec![Column::default(); alphabet.symbols];
        text.iter().for_each(|symbol| columns[*symbol as usize].count += 1);
        let mut start = 0;
        for column in &mut columns {
            column.start = start;
            start = column.end();
        }
        let array = suffix_array(&text)?;
        Ok(SuffixStore { schema: self.schema, alphabet, keys: self.keys, puts: self.puts, starts, text, array, columns })
    }
}
