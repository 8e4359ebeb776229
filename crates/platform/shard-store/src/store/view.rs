use std::sync::Arc;

use forebay_shard::{FlatText, Key, Record, Shard, SuffixStore, Value};
use forebay_types::Result;

use crate::update::{LogStore, Update};

/// What one query sees: it stays whole while the query runs, whatever changes.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// Compressed shards, the oldest first.
    pub(crate) shards: Vec<Arc<Mapped>>,
    /// Flat text, in place of records.
    pub(crate) text: Option<Arc<FlatText>>,
    /// Updates that are not compressed yet, in bulk, the oldest first; all of them newer than the shards.
    pub(crate) suffixes: Vec<Arc<SuffixStore>>,
    /// The newest updates, the oldest first; sizes fall, so there are few. All of them newer than those above.
    pub(crate) runs: Vec<Arc<LogStore>>,
}

/// A compressed shard over mapped files.
pub(crate) struct Mapped {
    pub(crate) shard: Shard,
}

impl View {
    /// Adds a stretch of updates; young stretches of about the same size become one.
    pub(crate) fn push(&mut self, run: LogStore) {
        let mut run = run;
        while let Some(before) = self.runs.last() {
            if before.len() > 2 * run.len() {
                break;
            }
            run = before.join(&run);
            self.runs.pop();
        }
        self.runs.push(Arc::new(run));
    }

    /// The compressed shard, if it is the only thing there is.
    pub(crate) fn only_shard(&self) -> Option<&Mapped> {
        match (&self.shards[..], &self.suffixes[..], &self.runs[..]) {
            ([mapped], [], []) => Some(mapped),
            _ => None,
        }
    }

    /// What the newest updates say of a key, if anything. Two threads may have made theirs visible in the other order than
    /// that of the log, so the numbers decide.
    pub(crate) fn newest(&self, key: &Key) -> Option<Update<'_>> {
        self.runs.iter().filter_map(|run| run.get(key)).max_by_key(|update| update.number)
    }

    /// The record of a key: all attributes, or some.
    pub(crate) fn get(&self, key: &Key, columns: Option<&[usize]>) -> Result<Option<Vec<Value>>> {
        if let Some(update) = self.newest(key) {
            return Ok(update.values.map(|values| match columns {
                None => values.to_vec(),
                Some(columns) => columns.iter().map(|&column| values[column].clone()).collect(),
            }));
        }
        let mut record = Record::new();
        for store in self.suffixes.iter().rev() {
            if let Some(place) = store.find(key) {
                let there = store.read(place, columns, &mut record);
                let Some(mapped) = self.shards.first().filter(|_| there) else { return Ok(None) };
                return record.values(mapped.shard.schema(), columns).map(Some);
            }
        }
        for mapped in self.shards.iter().rev() {
            if mapped.shard.get_into(key, columns, &mut record)? {
                return record.values(mapped.shard.schema(), columns).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether something newer than the compressed shard at `place` speaks of a key.
    pub(crate) fn hides_in_shard(&self, place: usize, key: &Key) -> bool {
        self.newest(key).is_some() || self.suffixes_hide(place, key)
    }

    /// The same without the updates that are not in a suffix array.
    pub(crate) fn suffixes_hide(&self, place: usize, key: &Key) -> bool {
        self.suffixes.iter().any(|store| store.find(key).is_some())
            || self.shards[place + 1..].iter().any(|later| has(&later.shard, key))
    }

    /// Whether something newer than the suffix array at `place` speaks of a key.
    pub(crate) fn hides_in_suffixes(&self, place: usize, key: &Key) -> bool {
        self.newest(key).is_some() || self.suffixes[place + 1..].iter().any(|later| later.find(key).is_some())
    }

    /// How many updates there are, and about their bytes.
    pub(crate) fn pending(&self) -> (usize, usize) {
        let bulk = self.suffixes.iter().fold((0, 0), |(count, bytes), store| (count + store.len(), bytes + store.input_bytes()));
        let (count, bytes) = self.logged();
        (bulk.0 + count, bulk.1 + bytes)
    }

    /// How many of them are not in a suffix array yet, and about their bytes.
    pub(crate) fn logged(&self) -> (usize, usize) {
        self.runs.iter().fold((0, 0), |(count, bytes), run| (count + run.len(), bytes + run.bytes()))
    }
}

/// Whether a compressed shard has a record of a key.
fn has(shard: &Shard, key: &Key) -> bool {
    let mut record = Record::new();
    // No columns are read, so no values are.
    shard.get_into(key, Some(&[]), &mut record).unwrap_or(false)
}
