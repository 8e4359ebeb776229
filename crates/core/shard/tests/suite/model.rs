//! The oracle: records in a map, queries by looking at each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use forebay_shard::{Builder, BuiltShard, Key, Query, Record, Schema, Shard, SuffixStore, SuffixStoreBuilder, Value};

pub struct Model {
    pub schema: Schema,
    pub records: BTreeMap<Key, Vec<Value>>,
}

/// Some values of the record of a key, in the order asked for.
pub fn columns_of(shard: &Shard, key: &Key, columns: &[usize]) -> Option<Vec<Value>> {
    let mut record = Record::new();
    let found = shard.get_into(key, Some(columns), &mut record).unwrap();
    found.then(|| record.values(shard.schema(), Some(columns)).unwrap())
}

impl Model {
    pub fn new(schema: Schema, records: impl IntoIterator<Item = (Key, Vec<Value>)>) -> Self {
        Self { schema, records: records.into_iter().collect() }
    }

    pub fn build(&self, ratio: f64) -> BuiltShard {
        let mut builder = Builder::new(self.schema.clone()).unwrap();
        for (key, values) in &self.records {
            builder.push(key, values).unwrap();
        }
        builder.finish(ratio).unwrap()
    }

    pub fn search(&self, query: &Query) -> Vec<Key> {
        self.records.iter().filter(|(_, values)| holds(query, values)).map(|(key, _)| key.clone()).collect()
    }

    /// Every answer of `shard` is that of the model.
    pub fn check(&self, shard: &Shard, keys: &[Key], queries: &[Query]) {
        for key in keys.iter().chain(self.records.keys()) {
            assert_eq!(shard.get(key).unwrap().as_ref(), self.records.get(key), "get {key:?}");
            let columns: Vec<usize> = (0..self.schema.attributes.len()).rev().step_by(2).collect();
            let expected = self.records.get(key).map(|values| columns.iter().map(|column| values[*column].clone()).collect());
            assert_eq!(columns_of(shard, key, &columns), expected, "columns {columns:?} of {key:?}");
        }
        for query in queries {
            let expected = self.search(query);
            let found = shard.search(query, None, None).unwrap();
            assert_eq!(found.keys.iter().collect::<Vec<_>>(), expected, "{query:?}");
            assert_eq!(found.next, None);
            assert_eq!(shard.count(query).unwrap(), expected.len() as u64, "count {query:?}");
            let (mut paged, mut after) = (Vec::new(), None);
            loop {
                let page = shard.search(query, Some(3), after.as_ref()).unwrap();
                paged.extend(page.keys.iter());
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(paged, expected, "{query:?} by pages");
        }
    }

    /// The same of an uncompressed suffix array, in which the keys without a record are deleted.
    pub fn check_suffixes(&self, keys: &[Key], queries: &[Query]) {
        let all: BTreeSet<&Key> = keys.iter().chain(self.records.keys()).collect();
        let mut builder = SuffixStoreBuilder::new(self.schema.clone()).unwrap();
        for key in &all {
            match self.records.get(key) {
                Some(values) => builder.put(key, values).unwrap(),
                None => builder.delete(key).unwrap(),
            }
        }
        let store = builder.finish().unwrap();
        self.check_store(&all, &store, queries);
        // Copied record by record, it is the same.
        let (mut copy, mut record) = (SuffixStoreBuilder::new(self.schema.clone()).unwrap(), Record::new());
        for place in 0..store.len() {
            if store.read(place, None, &mut record) {
                copy.put_record(store.key(place), &record).unwrap();
            } else {
                copy.delete(store.key(place)).unwrap();
            }
        }
        self.check_store(&all, &copy.finish().unwrap(), queries);
    }

    fn check_store(&self, all: &BTreeSet<&Key>, store: &SuffixStore, queries: &[Query]) {
        let mut record = Record::new();
        assert_eq!(store.len(), all.len());
        for (place, key) in all.iter().enumerate() {
            assert_eq!(store.find(key), Some(place));
            for columns in [None, Some(&[3, 1][..])] {
                let there = store.read(place, columns, &mut record);
                let values = there.then(|| record.values(&self.schema, columns).unwrap());
                let expected = self.records.get(key).map(|values| match columns {
                    None => values.clone(),
                    Some(columns) => columns.iter().map(|column| values[*column].clone()).collect(),
                });
                assert_eq!(values, expected, "{key:?}");
            }
        }
        for query in queries {
            let found: Vec<Key> = store.search(query).unwrap().into_iter().cloned().collect();
            assert_eq!(found, self.search(query), "{query:?}");
        }
    }
}

fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Text(text) => Some(text.as_bytes()),
        _ => None,
    }
}

fn compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        _ => text(a).cmp(&text(b)),
    }
}

fn holds(query: &Query, values: &[Value]) -> bool {
    match query {
        Query::All => true,
        Query::Eq { attribute, value } => values[*attribute] == *value,
        Query::Prefix { attribute, prefix } => text(&values[*attribute]).is_some_and(|text| text.starts_with(prefix)),
        Query::Suffix { attribute, suffix } => text(&values[*attribute]).is_some_and(|text| text.ends_with(suffix)),
        Query::Contains { attribute, bytes } => text(&values[*attribute])
            .is_some_and(|text| bytes.is_empty() || text.windows(bytes.len()).any(|window| window == bytes)),
        Query::Regex { attribute, pattern } => {
            text(&values[*attribute]).is_some_and(|text| regex::bytes::Regex::new(pattern).unwrap().is_match(text))
        }
        Query::Range { attribute, from, to } => {
            let value = &values[*attribute];
            *value != Value::Null
                && match from {
                    Bound::Unbounded => true,
                    Bound::Included(from) => compare(value, from).is_ge(),
                    Bound::Excluded(from) => compare(value, from).is_gt(),
                }
                && match to {
                    Bound::Unbounded => true,
                    Bound::Included(to) => compare(value, to).is_le(),
                    Bound::Excluded(to) => compare(value, to).is_lt(),
                }
        }
        Query::And(queries) => queries.iter().all(|query| holds(query, values)),
        Query::Or(queries) => queries.iter().any(|query| holds(query, values)),
        Query::Not(query) => !holds(query, values),
    }
}
