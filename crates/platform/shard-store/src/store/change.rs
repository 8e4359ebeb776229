//! Changes: of who holds the folder, and of a log that is elsewhere.

use std::sync::Arc;

use forebay_shard::Key;
use forebay_types::{Error, Result, ResultExt};

use super::Store;
use crate::update::{Change, LogStore};

impl Store {
    /// Makes changes durable and visible, all of them together. When it returns they survive this process; of two changes
    /// of one key the later one counts.
    pub fn change(&self, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let writer = self.writer()?;
        let schema = self.records()?.schema();
        let mut entry = Vec::new();
        for change in &changes {
            if change.key().key_type() != schema.key_type {
                return Err(Error::invalid(format!("{} is no key of this shard: it is of another type", change.key())));
            }
            if let Change::Put(_, values) = change
                && values.len() != schema.attributes.len()
            {
                let message = format!("a record has {} values beside its key, not {}", schema.attributes.len(), values.len());
                return Err(Error::invalid(message));
            }
            change.encode(&mut entry);
        }
        if self.view.load().pending().1 > writer.limits.pending_bytes {
            let room = || self.view.load().pending().1 <= writer.limits.pending_bytes;
            let context = || format!("{}: changes wait for a merge, which fails", self.path.display());
            writer.merging.wait_until(room).context(context)?;
        }
        let number = {
            // From the log to the view in one piece, so that a merge between the two can't miss it.
            let _publishing = writer.publishing.read();
            let number = writer.log.append(&entry)?;
            let mut run = LogStore::default();
            changes.into_iter().for_each(|change| run.apply(number, change));
            self.push(Arc::new(run));
            number
        };
        tracing::trace!(number, "updates are durable");
        if self.wants_gather() {
            writer.gathered.wake();
        }
        if self.wants_merge() {
            writer.merging.wake();
        }
        Ok(())
    }

    /// Whether there are so many updates that a suffix array is worth the work.
    pub(super) fn wants_gather(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| self.view.load().logged().1 > writer.limits.gather_bytes)
    }

    /// Whether so much was updated that compressing it is worth the work.
    pub(super) fn wants_merge(&self) -> bool {
        let view = self.view.load();
        let input = view.shards.iter().map(|mapped| mapped.shard.info().input_bytes).sum();
        self.writer.as_ref().is_some_and(|writer| view.pending().1 > writer.limits.merge_from(input))
    }
}

/// Changes as a store takes them over: what takes long of that is done when they are made so.
pub struct Updates(Arc<LogStore>);

impl Updates {
    /// `number` is theirs in the log: of two changes of a key that with the larger one counts, and of the same number the later one.
    pub fn new(number: u64, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut run = LogStore::default();
        changes.into_iter().for_each(|change| run.apply(number, change));
        Self(Arc::new(run))
    }
}

/// Updates of a store that is only read, from a log that is elsewhere.
impl Store {
    /// Has what begins from now on see changes on top of the files.
    pub fn add(&self, updates: Updates) {
        self.push(updates.0);
    }

    /// The same of changes with a number in the log.
    pub fn add_updates(&self, number: u64, changes: impl IntoIterator<Item = Change>) {
        self.add(Updates::new(number, changes));
    }

    /// Takes over what another store of the same files was told by [`Self::add_updates`].
    pub fn adopt_updates(&self, other: &Self) {
        self.adopt_updates_from(other, 0);
    }

    /// The same of the changes from a number on.
    pub fn adopt_updates_from(&self, other: &Self, first: u64) {
        let view = other.view.load();
        let runs: Vec<Arc<LogStore>> = view.runs.iter().filter_map(|run| run_from(run, first)).collect();
        self.view.rcu(|view| {
            let mut next = (**view).clone();
            next.runs.extend(runs.iter().cloned());
            Arc::new(next)
        });
    }

    /// About the bytes of the updates that are in memory only.
    pub fn update_bytes(&self) -> usize {
        self.view.load().logged().1
    }

    /// The number of the last update of a record, there or deleted: that before `log_from` for one that its files have.
    pub fn version(&self, key: &Key, log_from: u64) -> u64 {
        let base = log_from.saturating_sub(1);
        self.view.load().newest(key).map_or(base, |update| update.number)
    }

    /// Whether a key has a record.
    pub fn contains(&self, key: &Key) -> Result<bool> {
        Ok(self.view.load().get(key, Some(&[]))?.is_some())
    }

    fn push(&self, run: Arc<LogStore>) {
        if run.is_empty() {
            return;
        }
        self.view.rcu(|view| {
            let mut next = (**view).clone();
            next.push(Arc::clone(&run));
            Arc::new(next)
        });
    }
}

/// What a stretch has from a number on, shared where that is all of it; none where it is nothing.
fn run_from(run: &Arc<LogStore>, first: u64) -> Option<Arc<LogStore>> {
    let rest = (first > 0).then(|| run.from(first)).filter(|rest| rest.len() < run.len());
    rest.map_or_else(|| Some(Arc::clone(run)), |rest| (!rest.is_empty()).then(|| Arc::new(rest)))
}

#[cfg(test)]
mod tests {
    use forebay_shard::Value;

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};

    fn columns() -> Columns {
        Columns::new(vec![Column::new("k", ColumnKind::Uint), Column::new("v", ColumnKind::Text)], "k").unwrap()
    }

    fn put(key: u64, text: &str) -> Change {
        Change::Put(Key::U64(key), vec![Value::Text(text.into())])
    }

    #[test]
    fn updates_lie_on_top_of_the_files_and_move_to_another_store_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut building = Store::build(&path, columns(), 0.5).unwrap();
        (0..100).for_each(|key| building.push(Key::U64(key), vec![Value::Text(format!("v{key}"))]).unwrap());
        building.finish().unwrap();
        let store = Store::open(&path).unwrap();
        store.add_updates(5, [put(7, "new"), put(200, "more"), Change::Delete(Key::U64(8))]);
        store.add_updates(4, [put(7, "late to come, and older")]);
        let again = Store::open(&path).unwrap();
        again.adopt_updates(&store);
        for store in [&store, &again] {
            let get = |key| store.get_json(&Key::U64(key), None).unwrap().map(|record| record["v"].clone());
            assert_eq!(get(7), Some("new".into()));
            assert_eq!(get(9), Some("v9".into()));
            assert_eq!((get(8), get(200)), (None, Some("more".into())));
            assert_eq!(store.count_all().unwrap(), 100, "one more, one less");
            let versions = [7, 8, 9, 300].map(|key| store.version(&Key::U64(key), 4));
            assert_eq!(versions, [5, 5, 3, 3]);
            assert!(store.contains(&Key::U64(200)).unwrap() && !store.contains(&Key::U64(8)).unwrap());
            assert!(store.update_bytes() > 0);
        }
    }

    #[test]
    fn changes_from_a_number_on_move_to_another_store_and_those_before_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        Store::build(&path, columns(), 0.5).unwrap().finish().unwrap();
        let store = Store::open(&path).unwrap();
        (1..=9).for_each(|number| store.add_updates(number, [put(number, "x"), put(100, &format!("{number}"))]));
        let again = Store::open(&path).unwrap();
        again.adopt_updates_from(&store, 6);
        assert_eq!(again.count_all().unwrap(), 5);
        assert_eq!((again.version(&Key::U64(5), 6), again.version(&Key::U64(6), 6)), (5, 6));
        assert_eq!(again.get_json(&Key::U64(100), None).unwrap().map(|record| record["v"].clone()), Some("9".into()));
    }

    #[test]
    fn of_changes_with_one_number_the_later_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        Store::build(&path, columns(), 0.5).unwrap().finish().unwrap();
        let store = Store::open(&path).unwrap();
        // So many that what comes behind them stays by itself.
        store.add_updates(5, (0..100).map(|key| put(key, "first")));
        store.add_updates(5, [Change::Delete(Key::U64(7)), put(8, "second")]);
        assert_eq!(store.count_all().unwrap(), 99);
        assert_eq!(store.get_json(&Key::U64(8), None).unwrap().map(|record| record["v"].clone()), Some("second".into()));
        assert_eq!(store.standing().unwrap().input_bytes(), store.update_bytes() as u64);
    }
}
