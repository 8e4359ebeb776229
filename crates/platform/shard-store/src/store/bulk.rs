//! Updates on their way from the log to a merge: sorted into suffix arrays, so that searches need not read them all.

use std::sync::Arc;

use forebay_shard::{Record, SuffixStore, SuffixStoreBuilder};
use forebay_types::Result;

use super::{Store, View};
use crate::update::LogStore;

/// A suffix array is sorted again together with the one before unless that one is this many times as large. So each update
/// is sorted a few times at most, and few arrays are searched.
const GROWTH: usize = 4;

impl Store {
    /// Puts the updates so far into a suffix array, which searches need not read through. The log keeps them until they are
    /// compressed. Says the number of the first update that is not in one. Questions and changes go on meanwhile.
    pub(super) fn gather(&self) -> Result<u64> {
        let writer = self.writer()?;
        // One at a time, so that what is newer stays behind what is older.
        let _gathering = writer.gathering.lock();
        // Every update below the cut is in the view, and none at or above it.
        let (cut, view) = {
            let _alone = writer.publishing.write();
            (writer.log.roll()?, self.view.load_full())
        };
        if view.runs.is_empty() {
            return Ok(cut);
        }
        let updates = view.runs.iter().fold(LogStore::default(), |all, run| all.join(run));
        let (mut kept, mut bytes) = (view.suffixes.len(), updates.bytes);
        while kept > 0 && view.suffixes[kept - 1].input_bytes() <= GROWTH * bytes {
            kept -= 1;
            bytes += view.suffixes[kept].input_bytes();
        }
        let joined = &view.suffixes[kept..];
        let sorted = Arc::new(self.sort(joined, &updates)?);
        tracing::debug!(updates = sorted.len(), bytes = sorted.bytes(), "updates were put into a suffix array");
        self.view.rcu(|now| {
            // A merge may have taken away some of the joined ones since. That they come again with the newer ones is right:
            // they say what the merged shard says.
            let mut next = View { shards: now.shards.clone(), ..View::default() };
            let stays = |store: &&Arc<SuffixStore>| !joined.iter().any(|other| Arc::ptr_eq(other, store));
            next.suffixes = now.suffixes.iter().filter(stays).cloned().collect();
            next.suffixes.push(sorted.clone());
            now.runs.iter().map(|run| run.from(cut)).filter(|run| !run.is_empty()).for_each(|run| next.push(run));
            Arc::new(next)
        });
        Ok(cut)
    }

    /// One suffix array of some of the latest ones and of newer updates.
    fn sort(&self, stores: &[Arc<SuffixStore>], updates: &LogStore) -> Result<SuffixStore> {
        let mut builder = SuffixStoreBuilder::new(self.records()?.schema())?;
        let mut record = Record::new();
        let mut sorted = newest(stores).into_iter().peekable();
        let mut add = |builder: &mut SuffixStoreBuilder, store: &SuffixStore, place| {
            let key = store.key(place);
            if store.read(place, None, &mut record) { builder.put_record(key, &record) } else { builder.delete(key) }
        };
        for (key, update) in updates.iter() {
            while let Some((store, place)) = sorted.next_if(|(store, place)| store.key(*place) < key) {
                add(&mut builder, store, place)?;
            }
            sorted.next_if(|(store, place)| store.key(*place) == key);
            if let Some(values) = update.values { builder.put(key, &values.to_vec())? } else { builder.delete(key)? }
        }
        sorted.try_for_each(|(store, place)| add(&mut builder, store, place))?;
        builder.finish()
    }
}

/// For each key that any of the stores (the oldest first) speaks of, in order, the newest that does and the key's place in it.
pub(super) fn newest(stores: &[Arc<SuffixStore>]) -> Vec<(&SuffixStore, usize)> {
    let mut all: Vec<(&SuffixStore, usize)> = Vec::with_capacity(stores.iter().map(|store| store.len()).sum());
    for store in stores.iter().rev() {
        all.extend((0..store.len()).map(|place| (&**store, place)));
    }
    // The sort keeps the newer one first, and what is first stays.
    all.sort_by(|(one, a), (other, b)| one.key(*a).cmp(other.key(*b)));
    all.dedup_by(|(one, a), (other, b)| one.key(*a) == other.key(*b));
    all
}
