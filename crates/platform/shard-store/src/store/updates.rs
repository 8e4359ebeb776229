//! Updates of a store that is only read, from a log that is elsewhere.

use std::sync::Arc;

use forebay_shard::Key;

use super::Store;
use crate::update::{Change, LogStore};

impl Store {
    /// Has what begins from now on see changes on top of the files. `number` is theirs in the log: of two changes of a key that
    /// with the larger one counts, and of the same number the later one.
    pub fn add_updates(&self, number: u64, changes: impl IntoIterator<Item = Change>) {
        let mut run = LogStore::default();
        changes.into_iter().for_each(|change| run.apply(number, change));
        self.push(run);
    }

    /// Takes over what another store of the same files was told by [`Self::add_updates`].
    pub fn adopt_updates(&self, other: &Self) {
        for run in &other.view.load().runs {
            self.push((**run).clone());
        }
    }

    /// What is in memory only: the last change of each key.
    pub fn updates(&self) -> Vec<Change> {
        let view = self.view.load();
        let all = view.runs.iter().fold(LogStore::default(), |all, run| all.join(run));
        let change = |(key, update): (&Key, crate::update::Update<'_>)| match update.values {
            Some(values) => Change::Put(key.clone(), values.to_vec()),
            None => Change::Delete(key.clone()),
        };
        all.iter().map(change).collect()
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
    pub fn contains(&self, key: &Key) -> forebay_types::Result<bool> {
        Ok(self.view.load().get(key, Some(&[]))?.is_some())
    }

    fn push(&self, run: LogStore) {
        if run.is_empty() {
            return;
        }
        self.view.rcu(|view| {
            let mut next = (**view).clone();
            next.push(run.clone());
            Arc::new(next)
        });
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard::Value;

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};

    fn columns() -> Columns {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        Columns::new(vec![column("k", ColumnKind::Uint), column("v", ColumnKind::Text)], "k").unwrap()
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
}
