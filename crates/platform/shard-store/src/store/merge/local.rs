//! A merge: updates and compressed shards become new compressed shards.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_shard::Record;
use forebay_types::{Result, ResultExt};

use crate::folder::{ColdEntry, FileEntry, Manifest, PartWriter, ShardFiles, step};
use crate::store::build::{Parts, values};
use crate::store::bulk::newest;
use crate::store::open::open_shard;
use crate::store::{Mapped, Store, View};

/// Compressed shards on their way: written, and not named by the manifest yet.
struct Merged<'f> {
    /// What they were made of.
    view: Arc<View>,
    /// The number of the first update that they may not have.
    cut: u64,
    /// What their layers were chosen for.
    size: f64,
    parts: PartWriter<'f>,
    rewritten: Rewritten,
}

/// What a merge wrote.
struct Rewritten {
    files: Vec<ShardFiles>,
    shards: Vec<Arc<Mapped>>,
    cold: Option<ColdEntry>,
}

impl Store {
    /// Compresses all updates so far into the shard. Questions and changes, also those of layers, go on meanwhile.
    pub fn merge(&self) -> Result<()> {
        let writer = self.writer()?;
        // One at a time; what takes long is done before the manifest is locked.
        let _compressing = writer.compressing.lock();
        if let Some(merged) = self.compress()? { self.put_in_place(merged) } else { Ok(()) }
    }

    /// Writes new compressed shards of all updates so far; none without updates.
    fn compress(&self) -> Result<Option<Merged<'_>>> {
        let writer = self.writer()?;
        let cut = self.gather()?;
        // Later updates may have come into a suffix array since. They are compressed as well, and stay in the log too.
        let view = self.view.load_full();
        if view.suffixes.is_empty() {
            return Ok(None);
        }
        let (size, keeps_cold) = {
            let manifest = writer.manifest.lock();
            (manifest.size, manifest.cold.is_some())
        };
        let mut parts = PartWriter::new(&self.path, &writer.names);
        match self.rewrite(&view, size, keeps_cold, &mut parts) {
            Ok(rewritten) => Ok(Some(Merged { view, cut, size, parts, rewritten })),
            Err(error) => {
                // What was written of it is of no use to anyone; the updates stay where they are.
                parts.remove_unnamed();
                Err(error)
            }
        }
    }

    /// Lets new compressed shards take the place of those that they were made of, whatever layers these have by now.
    fn put_in_place(&self, merged: Merged<'_>) -> Result<()> {
        let writer = self.writer()?;
        let Merged { view, cut, size, parts, rewritten: Rewritten { files, shards, cold } } = merged;
        let is_size = {
            let mut manifest = writer.manifest.lock();
            let next = Manifest { shards: files, cold, log_from: cut, next_file: writer.names.last(), ..manifest.clone() };
            step();
            if let Err(error) = next.write(&self.path) {
                parts.remove_unnamed();
                return Err(error);
            }
            let before = std::mem::replace(&mut *manifest, next);
            self.view.rcu(|now| {
                let mut next = View { shards: shards.clone(), ..(**now).clone() };
                next.suffixes.retain(|store| !view.suffixes.iter().any(|merged| Arc::ptr_eq(merged, store)));
                Arc::new(next)
            });
            self.asked.iter().for_each(|asked| asked.replaced(&view));
            self.remove(before.files().chain(before.cold.iter().map(|cold| &cold.entry)), &manifest);
            manifest.size == size
        };
        step();
        writer.log.forget(cut)?;
        // Another size was set meanwhile, and the layers of the shards that are gone followed it.
        if is_size { Ok(()) } else { self.settle(None, 1) }
    }

    /// Writes new compressed shards of what the view has, but for the updates that are not in a suffix array yet; the old
    /// ones stay.
    fn rewrite(&self, view: &View, size: f64, keeps_cold: bool, writer: &mut PartWriter<'_>) -> Result<Rewritten> {
        let columns = self.records()?.clone();
        let attributes = columns.attributes().count();
        let mut parts = Parts::new(columns, size, self.steering(), keeps_cold)?;
        let mut updates = newest(&view.suffixes).into_iter().peekable();
        let mut updated = Record::new();
        for (place, mapped) in view.shards.iter().enumerate() {
            mapped.shard.scan(None, |key, record| {
                // In the order of keys as far as they come in it: then nothing has to be sorted again.
                while let Some((store, at)) = updates.next_if(|(store, at)| *store.key(*at) < key) {
                    if store.read(at, None, &mut updated) {
                        parts.push_encoded(store.key(at), &values(&updated, attributes), writer)?;
                    }
                }
                if !view.suffixes_hide(place, &key)? {
                    parts.push_encoded(&key, &values(record, attributes), writer)?;
                }
                Ok(true)
            })?;
        }
        for (store, at) in updates {
            if store.read(at, None, &mut updated) {
                parts.push_encoded(store.key(at), &values(&updated, attributes), writer)?;
            }
        }
        parts.finish_shard(writer)?;
        let shards = parts.files.iter().map(|files| open_shard(&self.path, files).map(Arc::new)).collect::<Result<_>>()?;
        Ok(Rewritten { files: parts.files, shards, cold: parts.cold })
    }

    /// Removes files that the manifest named before and doesn't name now. Whoever has one mapped keeps it until the end.
    pub(in crate::store) fn remove<'e>(&self, before: impl Iterator<Item = &'e FileEntry>, manifest: &Manifest) {
        let cold = manifest.cold.iter().map(|cold| &cold.entry);
        let kept: BTreeSet<&str> = manifest.files().chain(cold).map(|file| file.file.as_str()).collect();
        for file in before.map(|entry| &entry.file).filter(|file| !kept.contains(file.as_str())) {
            step();
            let path = self.path.join(file);
            let removed = std::fs::remove_file(&path);
            // A cold file need not be here.
            if removed.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                continue;
            }
            if let Err(error) = removed.context(|| path.display()) {
                // It takes room until the shard is opened to be changed the next time.
                tracing::warn!(%error, "a file that is not needed any more could not be removed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use forebay_shard::{Key, LayerId, Value};

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};
    use crate::update::Change;

    fn value(key: u64) -> Vec<Value> {
        vec![Value::Text(format!("word {}", key % 7)), Value::Int(key as i64)]
    }

    fn store(path: &std::path::Path, keys: u64) -> Store {
        let columns = vec![
            Column::new("id", ColumnKind::Int),
            Column::new("word", ColumnKind::Text),
            Column::new("number", ColumnKind::Int),
        ];
        let mut building = Store::build(path, Columns::new(columns, "id").unwrap(), 2.0).unwrap();
        (0..keys).for_each(|key| building.push(Key::U64(key), value(key)).unwrap());
        building.finish().unwrap();
        Store::open_to_change(path).unwrap()
    }

    fn ids(store: &Store) -> BTreeSet<LayerId> {
        store.layers().iter().map(|layer| layer.id).collect()
    }

    #[track_caller]
    fn check(path: &std::path::Path, store: &Store, keys: u64) {
        for store in [store, &Store::open(path).unwrap()] {
            assert_eq!(store.count_all().unwrap(), keys);
            (0..keys).for_each(|key| assert_eq!(store.get(&Key::U64(key), None).unwrap(), Some(value(key))));
        }
    }

    #[test]
    fn layers_the_size_and_records_change_while_a_merge_compresses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.shard");
        let store = store(&path, 500);
        store.change(vec![Change::Put(Key::U64(500), value(500))]).unwrap();
        let merged = store.compress().unwrap().unwrap();
        let some: Vec<LayerId> = ids(&store).into_iter().step_by(2).collect();
        store.drop_layers(&some).unwrap();
        store.tune_with(0.9, 1).unwrap();
        store.change(vec![Change::Put(Key::U64(501), value(501))]).unwrap();
        check(&path, &store, 502);
        store.put_in_place(merged).unwrap();
        check(&path, &store, 502);
        let inspection = store.inspect().unwrap();
        assert_eq!((inspection.size_set, inspection.updates, inspection.records), (0.9, 1, 501));
        assert!(inspection.size <= 0.9, "{inspection:?}");
        // What the size asks for is there, and nothing else is in the folder.
        let layers = ids(&store);
        store.tune_with(0.9, 1).unwrap();
        assert_eq!(ids(&store), layers);
        let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let parts = files.filter(|name| name.starts_with("base-") || name.starts_with("layer-")).count();
        assert_eq!(parts, inspection.parts.len());
    }

    #[test]
    fn a_merge_that_can_t_be_published_leaves_all_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.shard");
        let store = store(&path, 500);
        store.change(vec![Change::Put(Key::U64(500), value(500))]).unwrap();
        std::fs::create_dir(path.join("manifest.tmp")).unwrap();
        let files =
            || std::fs::read_dir(&path).unwrap().filter(|file| !file.as_ref().unwrap().path().ends_with("counters")).count();
        let before = files();
        // What it wrote doesn't pile up while it tries again and again. The log may have begun another part.
        (0..3).for_each(|_| _ = store.merge().unwrap_err());
        assert!(files() <= before + 1);
        check(&path, &store, 501);
        std::fs::remove_dir(path.join("manifest.tmp")).unwrap();
        store.merge().unwrap();
        check(&path, &store, 501);
        assert_eq!(store.inspect().unwrap().updates, 0);
    }
}
