//! The records that are served, TPC-H lineitem or a service's log, and what a get of one has to answer.

use std::path::Path;

use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Literal, Store};
use forebay_types::{Error, Result};
use serde_json::{Map, Value as Json, json};

use crate::workload::{ATTRIBUTES, Get, Records, Search, Skew, gets, searches};

pub(crate) const KEY: &str = "key";
/// The least that a shard is stored at, as a part of its input.
const BASE_SIZE: f64 = 0.01;

/// Records that are served.
pub(crate) struct Data {
    pub(crate) records: Records,
}

impl Data {
    /// The first lineitems.
    pub(crate) fn lineitem(values_bytes: usize) -> Result<Self> {
        let records = Records::lineitem(values_bytes);
        match records.keys.is_sorted() {
            true => Ok(Self { records }),
            false => Err(Error::internal("lineitems come in the order of their keys")),
        }
    }

    /// The first requests of a service, as its log has them.
    pub(crate) fn requests(values_bytes: usize) -> Self {
        Self { records: Records::requests(values_bytes) }
    }

    pub(crate) fn columns(&self) -> Result<Columns> {
        let key = Column::new(KEY, ColumnKind::Uint);
        let attributes = self.records.attributes.iter().map(|name| Column::new(*name, ColumnKind::Text));
        Columns::new(std::iter::once(key).chain(attributes).collect(), KEY)
    }

    /// Builds one of so many shards in a folder.
    pub(crate) fn build(&self, folder: &Path, shard: usize, of: usize) -> Result<()> {
        let mut building = Store::build(folder, self.columns()?, BASE_SIZE)?.with_cold();
        for (row, key) in self.records.keys.iter().enumerate() {
            let key = Key::U64(*key);
            if KeyMap::Hash(of).shard_of(&key) == shard {
                building.push(key, self.texts(row).map(|(_, text)| Value::Text(text.to_string())).collect())?;
            }
        }
        building.finish()
    }

    /// Bytes of keys and values, as shards count them: with a delimiter an attribute.
    pub(crate) fn input_bytes(&self) -> u64 {
        let values = |row: usize| self.texts(row).map(|(_, text)| text.len() + 1).sum::<usize>();
        (0..self.records.len()).map(|row| values(row) as u64 + 8).sum()
    }

    /// The attributes of a record by their names.
    fn texts(&self, row: usize) -> impl Iterator<Item = (&'static str, &str)> {
        let text = move |place| std::str::from_utf8(self.records.value(row, place)).expect("all of it is text");
        self.records.attributes.iter().enumerate().map(move |(place, name)| (*name, text(place)))
    }

    /// A record as who keeps it by its key has it: all but that.
    pub(crate) fn value(&self, row: usize) -> String {
        Json::Object(self.texts(row).map(|(name, text)| (name.to_string(), Json::from(text))).collect()).to_string()
    }

    /// A record as a get answers it.
    pub(crate) fn json(&self, row: usize) -> Json {
        let attributes = self.texts(row).map(|(name, text)| (name.to_string(), text.into()));
        Json::Object(std::iter::once((KEY.to_string(), json!(self.records.keys[row]))).chain(attributes).collect::<Map<_, _>>())
    }

    /// Where the record of a key is among all.
    pub(crate) fn row(&self, key: u64) -> Option<usize> {
        self.records.keys.binary_search(&key).ok()
    }

    /// Whether an answer is the record of a key.
    pub(crate) fn is_right(&self, key: u64, answer: Option<&Json>) -> bool {
        match (self.row(key), answer) {
            (Some(row), Some(answer)) => self.json(row) == *answer,
            (None, None) => true,
            _ => false,
        }
    }

    /// Keys as an asker draws them.
    pub(crate) fn gets(&self, skew: Skew, count: usize, seed: u64) -> Vec<u64> {
        gets(&self.records, skew, count, seed).into_iter().map(|Get { key }| key).collect()
    }

    /// Conditions for a value of a selective column.
    pub(crate) fn searches(&self, skew: Skew, count: usize, seed: u64) -> Vec<Json> {
        let condition = |Search { attribute, value }: Search| json!({"attr": ATTRIBUTES[attribute], "eq": String::from_utf8(value).expect("lineitem is text")});
        searches(&self.records, skew, count, seed).into_iter().map(condition).collect()
    }
}

/// A key as it is asked for.
pub(crate) fn literal(key: u64) -> Result<Literal> {
    Literal::from_json(&json!(key))
}
