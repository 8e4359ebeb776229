//! What one query sees, and which of its sources speaks for a key.

use std::sync::{Arc, OnceLock};

use forebay_shard::{FlatText, Key, QueryCounters, Record, Shard, SuffixStore, Value, ValueType};
use forebay_types::Result;
use parking_lot::Mutex;

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
    /// The newest updates, the oldest first; sizes fall, but for those of full size, so there are few. All of them newer than those above.
    pub(crate) runs: Vec<Arc<LogStore>>,
}

/// Stretches of updates are joined as long as they have together no more: that is two milliseconds' work of a thread that answers gets, too.
const JOINED_MAX: usize = 8 << 10;

/// A compressed shard over mapped files.
pub(crate) struct Mapped {
    pub(crate) shard: Shard,
    /// Its first and its last key, once somebody wanted to know.
    keys: OnceLock<Option<(Key, Key)>>,
    /// Its counters when somebody last wanted to know.
    counted: Mutex<QueryCounters>,
}

impl Mapped {
    pub(crate) fn new(shard: Shard) -> Self {
        Self { shard, keys: OnceLock::new(), counted: Mutex::default() }
    }

    /// Its first and its last key; none where it has no records.
    pub(crate) fn keys(&self) -> Result<Option<&(Key, Key)>> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys.as_ref());
        }
        let keys = self.shard.first_key()?.zip(self.shard.last_key()?);
        Ok(self.keys.get_or_init(|| keys).as_ref())
    }

    /// Whether a key is among its own, from the first to the last.
    pub(crate) fn spans(&self, key: &Key) -> Result<bool> {
        Ok(self.keys()?.is_some_and(|(first, last)| first <= key && key <= last))
    }

    /// What it was asked since the last time that this was called.
    pub(crate) fn newly_asked(&self) -> QueryCounters {
        let (now, mut counted) = (self.shard.counters(), self.counted.lock());
        let new = now.since(&counted);
        *counted = now;
        new
    }
}

impl View {
    /// Adds a stretch of updates; young stretches of about the same size become one.
    pub(crate) fn push(&mut self, run: impl Into<Arc<LogStore>>) {
        let mut run = run.into();
        while let Some(before) = self.runs.last() {
            if before.len() > 2 * run.len() || before.len() + run.len() > JOINED_MAX {
                break;
            }
            run = Arc::new(before.join(&run));
            self.runs.pop();
        }
        self.runs.push(run);
    }

    /// The compressed shards, if they are all that there is, and none has keys between those of another one: in the order of their keys.
    pub(crate) fn only_shards(&self) -> Result<Option<&[Arc<Mapped>]>> {
        if self.runs.is_empty() { self.shards_below() } else { Ok(None) }
    }

    /// The same where there are the newest updates beside them.
    pub(crate) fn shards_below(&self) -> Result<Option<&[Arc<Mapped>]>> {
        if !self.suffixes.is_empty() || self.shards.is_empty() {
            return Ok(None);
        }
        let mut spans: Vec<&(Key, Key)> = Vec::with_capacity(self.shards.len());
        // One by itself has nobody's keys between its own.
        for mapped in self.shards.iter().filter(|_| self.shards.len() > 1) {
            spans.extend(mapped.keys()?);
        }
        Ok(spans.windows(2).all(|two| two[0].1 < two[1].0).then_some(&self.shards[..]))
    }

    /// What the newest updates say of a key, if anything. Two threads may have made theirs visible in the other order than
    /// that of the log, so the numbers decide.
    pub(crate) fn newest(&self, key: &Key) -> Option<Update<'_>> {
        self.runs.iter().filter_map(|run| run.get(key)).max_by_key(|update| update.number)
    }

    /// Whether that is what the stretch at a place says of it, with this number.
    pub(crate) fn is_newest(&self, place: usize, key: &Key, number: u64) -> bool {
        let (earlier, later) = self.runs.split_at(place);
        let above = |run: &Arc<LogStore>, most: u64| run.get(key).is_some_and(|other| other.number > most);
        // Of the same number that of the later stretch counts.
        !earlier.iter().any(|run| above(run, number)) && !later[1..].iter().any(|run| above(run, number.saturating_sub(1)))
    }

    /// The record of a key: all attributes, or some.
    pub(crate) fn get(&self, key: &Key, columns: Option<&[usize]>) -> Result<Option<Vec<Value>>> {
        if let Some(update) = self.newest(key) {
            return Ok(update.values.map(|values| match columns {
                None => values.to_vec(),
                Some(columns) => {
                    let values = values.to_vec();
                    columns.iter().map(|&column| values[column].clone()).collect()
                }
            }));
        }
        self.get_compressed(key, columns)
    }

    /// The same without the newest updates.
    pub(crate) fn get_compressed(&self, key: &Key, columns: Option<&[usize]>) -> Result<Option<Vec<Value>>> {
        let mut record = Record::new();
        match (self.read_compressed(key, columns, &mut record)?, self.shards.first()) {
            (true, Some(mapped)) => record.values(mapped.shard.schema(), columns).map(Some),
            _ => Ok(None),
        }
    }

    /// Puts the record of a key into `out` as a shard keeps it, all attributes or some; false if there is none. `type_of` tells the
    /// type of an attribute.
    pub(crate) fn read(
        &self,
        key: &Key,
        columns: Option<&[usize]>,
        type_of: impl Fn(usize) -> ValueType,
        out: &mut Record,
    ) -> Result<bool> {
        let Some(update) = self.newest(key) else { return self.read_compressed(key, columns, out) };
        update.values.map(|values| put_values(&values.to_vec(), columns, type_of, out)).transpose().map(|there| there.is_some())
    }

    /// The same without the newest updates.
    fn read_compressed(&self, key: &Key, columns: Option<&[usize]>, out: &mut Record) -> Result<bool> {
        for store in self.suffixes.iter().rev() {
            if let Some(place) = store.find(key) {
                return Ok(store.read(place, columns, out) && !self.shards.is_empty());
            }
        }
        for mapped in self.shards.iter().rev() {
            if mapped.spans(key)? && mapped.shard.get_into(key, columns, out)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something newer than the compressed shard at `place` speaks of a key.
    pub(crate) fn hides_in_shard(&self, place: usize, key: &Key) -> Result<bool> {
        Ok(self.newest(key).is_some() || self.suffixes_hide(place, key)?)
    }

    /// The same without the updates that are not in a suffix array.
    pub(crate) fn suffixes_hide(&self, place: usize, key: &Key) -> Result<bool> {
        if self.suffixes.iter().any(|store| store.find(key).is_some()) {
            return Ok(true);
        }
        for later in &self.shards[place + 1..] {
            if later.spans(key)? && later.shard.contains(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something newer than the suffix array at `place` speaks of a key.
    pub(crate) fn hides_in_suffixes(&self, place: usize, key: &Key) -> bool {
        self.newest(key).is_some() || self.suffixes[place + 1..].iter().any(|later| later.find(key).is_some())
    }

    /// A key that no record's key is above: the last one, or that of a record that was deleted.
    pub(crate) fn last_key(&self) -> Result<Option<Key>> {
        let runs = self.runs.iter().filter_map(|run| run.last_key().cloned());
        let suffixes = self.suffixes.iter().filter_map(|store| Some(store.key(store.len().checked_sub(1)?).clone()));
        let mut last = runs.chain(suffixes).max();
        for mapped in &self.shards {
            last = last.max(mapped.keys()?.map(|(_, last)| last.clone()));
        }
        Ok(last)
    }

    /// How many updates there are, and about their bytes.
    pub(crate) fn pending(&self) -> (usize, usize) {
        let bulk = self.suffixes.iter().fold((0, 0), |(count, bytes), store| (count + store.len(), bytes + store.input_bytes()));
        let (count, bytes) = self.logged();
        (bulk.0 + count, bulk.1 + bytes)
    }

    /// How many of them are not in a suffix array yet, and about their bytes.
    pub(crate) fn logged(&self) -> (usize, usize) {
        self.runs.iter().fold((0, 0), |(count, bytes), run| (count + run.len(), bytes + run.bytes))
    }
}

/// Puts the values of an update into `out` as a shard keeps them: all, or some.
pub(crate) fn put_values(
    values: &[Value],
    columns: Option<&[usize]>,
    type_of: impl Fn(usize) -> ValueType,
    out: &mut Record,
) -> Result<()> {
    out.clear();
    match columns {
        None => values.iter().enumerate().try_for_each(|(place, value)| out.push(type_of(place), value)),
        Some(columns) => columns.iter().try_for_each(|&place| out.push(type_of(place), &values[place])),
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard::{Builder, BuiltShard, KeyType, LayerKind, Query, Schema};

    use super::*;

    fn build(value: &str) -> BuiltShard {
        let schema = Schema::new("key", KeyType::U64).with("word", ValueType::Text);
        let mut builder = Builder::new(schema).unwrap();
        (0..500).for_each(|key| builder.push(&Key::U64(key), &[Value::Text(format!("{value} {key}"))]).unwrap());
        builder.finish(3.0).unwrap()
    }

    /// A part whose checksums are right and whose second section is not.
    fn damage(part: &[u8]) -> Vec<u8> {
        let mut part = part.to_vec();
        let number = |part: &[u8], at: usize| u64::from_le_bytes(part[at..at + 8].try_into().unwrap()) as usize;
        let (table, count) = (48, number(&part, 8) >> 32);
        let (from, length) = (number(&part, table + 24), number(&part, table + 32));
        part[from..from + length].fill(0xff);
        let sum = forebay_types::crc32c(&part[from..from + length]);
        part[table + 40..table + 48].copy_from_slice(&u64::from(sum).to_le_bytes());
        part[40..48].fill(0);
        let sum = forebay_types::crc32c(&part[..table + count * 24]);
        part[40..48].copy_from_slice(&u64::from(sum).to_le_bytes());
        part
    }

    #[test]
    fn a_later_record_that_can_t_be_read_still_hides_the_earlier_one() {
        let (earlier, later) = (build("earlier"), build("later"));
        let layers = later.layers.iter().filter(|(id, _)| id.kind == LayerKind::Blocks).map(|(_, part)| damage(part).into());
        let later = Shard::open(later.base, layers).unwrap();
        assert!(!later.layers().is_empty());
        later.get(&Key::U64(7)).unwrap_err();
        let shards = [Shard::open(earlier.base, []).unwrap(), later].map(|shard| Arc::new(Mapped::new(shard)));
        let view = View { shards: shards.into(), ..View::default() };
        view.get(&Key::U64(7), None).unwrap_err();
        let hits = view.shards[0].shard.search(&Query::prefix(0, b"earlier"), None, None).unwrap().keys;
        assert_eq!(hits.len(), 500);
        assert!(hits.iter().all(|key| view.hides_in_shard(0, &key).unwrap()));
    }
}
