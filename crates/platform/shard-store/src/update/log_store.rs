//! The newest updates, by key, in memory that readers share while later ones are joined to it.

use std::collections::BTreeMap;
use std::ops::Bound;

use forebay_shard::Key;

use super::{Change, Values};

/// Updates of one stretch of the log, in memory. Never changed once readers have it; two can be joined to a third one.
#[derive(Clone, Default)]
pub(crate) struct LogStore {
    records: BTreeMap<Key, Entry>,
    /// About the bytes of its records.
    pub(crate) bytes: usize,
}

/// The number of an update in the log, and the record's values; none when it was deleted.
type Entry = (u64, Option<Values>);

/// What the newest update of a key says.
#[derive(Clone, Copy)]
pub(crate) struct Update<'a> {
    /// Its entry in the log.
    pub(crate) number: u64,
    /// The record's values; none when it was deleted.
    pub(crate) values: Option<&'a Values>,
}

impl LogStore {
    /// Applies a change with its number in the log; an older one than what is there changes nothing.
    pub(crate) fn apply(&mut self, number: u64, change: Change) {
        let (key, values) = match change {
            Change::Put(key, values) => (key, Some(Values::new(&values))),
            Change::Delete(key) => (key, None),
        };
        self.insert(number, key, values);
    }

    /// Both stretches as one; the records themselves are shared.
    pub(crate) fn join(&self, later: &Self) -> Self {
        let mut joined = self.clone();
        for (key, (number, values)) in &later.records {
            joined.insert(*number, key.clone(), values.clone());
        }
        joined
    }

    fn insert(&mut self, number: u64, key: Key, values: Option<Values>) {
        let bytes = bytes_of(&key, values.as_ref());
        match self.records.get_mut(&key) {
            Some(there) if there.0 > number => {}
            Some(there) => {
                self.bytes = self.bytes + bytes - bytes_of(&key, there.1.as_ref());
                *there = (number, values);
            }
            None => {
                self.bytes += bytes;
                self.records.insert(key, (number, values));
            }
        }
    }

    /// What it says of a key: nothing, or by which update it is gone or has its values.
    pub(crate) fn get(&self, key: &Key) -> Option<Update<'_>> {
        self.records.get(key).map(|(number, values)| Update { number: *number, values: values.as_ref() })
    }

    /// All that it holds, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, Update<'_>)> {
        self.records.iter().map(|(key, (number, values))| (key, Update { number: *number, values: values.as_ref() }))
    }

    /// The same of the keys above one.
    pub(crate) fn iter_above(&self, after: Option<&Key>) -> impl Iterator<Item = (&Key, Update<'_>)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let records = self.records.range::<Key, _>((from, Bound::Unbounded));
        records.map(|(key, (number, values))| (key, Update { number: *number, values: values.as_ref() }))
    }

    /// The last key that it speaks of.
    pub(crate) fn last_key(&self) -> Option<&Key> {
        self.records.last_key_value().map(|(key, _)| key)
    }

    /// The updates from number `first` on.
    pub(crate) fn from(&self, first: u64) -> Self {
        let mut kept = Self::default();
        for (key, (number, values)) in &self.records {
            if *number >= first {
                kept.insert(*number, key.clone(), values.clone());
            }
        }
        kept
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many keys it speaks of.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

/// No more than the log has for it: new shards take over what fits by the log's bytes.
fn bytes_of(key: &Key, values: Option<&Values>) -> usize {
    key.len() + values.map_or(0, Values::bytes)
}

#[cfg(test)]
mod tests {
    use forebay_shard::Value;

    use super::*;

    #[test]
    fn updates_count_no_more_than_the_log_has_for_them() {
        let values = [
            Value::Null,
            Value::Bytes(vec![1, 2]),
            Value::Text("ü".into()),
            Value::Bool(true),
            Value::Int(-5),
            Value::Float(0.5),
            Value::Decimal(1),
            Value::Date(9204),
            Value::Timestamp(-1),
        ];
        for value in values {
            let change = Change::Put(Key::U64(7), vec![value.clone(); 100]);
            let mut logged = Vec::new();
            change.encode(&mut logged);
            let mut store = LogStore::default();
            store.apply(1, change);
            assert!(store.bytes <= logged.len(), "{value:?}: {} of {}", store.bytes, logged.len());
        }
    }
}
