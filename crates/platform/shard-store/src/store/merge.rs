use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_shard::Record;
use forebay_types::{Result, ResultExt};

use super::build::Parts;
use super::bulk::newest;
use super::open::{open_shard, remove_unnamed};
use super::{Mapped, Store, View};
use crate::folder::{Manifest, step};
use crate::log::Log;

impl Store {
    /// Compresses all updates so far into the shard. Questions and changes go on meanwhile.
    pub fn merge(&self) -> Result<()> {
        let writer = self.writer()?;
        let mut manifest = writer.manifest.lock();
        let cut = self.gather()?;
        // Later updates may have come into a suffix array since. They are compressed as well, and stay in the log too.
        let view = self.view.load_full();
        if view.suffixes.is_empty() {
            return Ok(());
        }
        let mut next = manifest.clone();
        let shards = self.rewrite(&view, &mut next).inspect_err(|_| {
            // What was written of it is of no use to anyone; the updates stay where they are.
            if let Err(error) = remove_unnamed(&self.path, &manifest) {
                tracing::warn!(%error, "what an unfinished merge wrote could not be removed");
            }
        })?;
        let old: Vec<String> = manifest.files().map(|file| file.file.clone()).collect();
        next.log_from = cut;
        step();
        next.write(&self.path)?;
        *manifest = next;
        self.view.rcu(|now| {
            let mut next = View { shards: shards.clone(), ..(**now).clone() };
            next.suffixes.retain(|store| !view.suffixes.iter().any(|merged| Arc::ptr_eq(merged, store)));
            Arc::new(next)
        });
        self.remove(old, &manifest);
        step();
        writer.log.forget(cut)
    }

    /// Writes new compressed shards of what the view has, but for the updates that are not in a suffix array yet; the old
    /// ones stay.
    fn rewrite(&self, view: &View, manifest: &mut Manifest) -> Result<Vec<Arc<Mapped>>> {
        let columns = self.records()?.clone();
        let attributes = columns.attributes().count();
        let mut parts = Parts::new(columns, manifest.size)?;
        let mut updates = newest(&view.suffixes).into_iter().peekable();
        let mut updated = Record::new();
        for (place, mapped) in view.shards.iter().enumerate() {
            mapped.shard.scan(None, |key, record| {
                // In the order of keys as far as they come in it: then nothing has to be sorted again.
                while let Some((store, at)) = updates.next_if(|(store, at)| *store.key(*at) < key) {
                    if store.read(at, None, &mut updated) {
                        parts.push_encoded(store.key(at), &values(&updated, attributes), &self.path, manifest)?;
                    }
                }
                if !view.suffixes_hide(place, &key) {
                    parts.push_encoded(&key, &values(record, attributes), &self.path, manifest)?;
                }
                Ok(true)
            })?;
        }
        for (store, at) in updates {
            if store.read(at, None, &mut updated) {
                parts.push_encoded(store.key(at), &values(&updated, attributes), &self.path, manifest)?;
            }
        }
        parts.finish_shard(&self.path, manifest)?;
        manifest.shards = std::mem::take(&mut parts.files);
        manifest.shards.iter().map(|files| open_shard(&self.path, files).map(Arc::new)).collect()
    }

    /// Removes files that the manifest named before and doesn't name now. Whoever has one mapped keeps it until the end.
    pub(super) fn remove(&self, before: Vec<String>, manifest: &Manifest) {
        let kept: BTreeSet<&str> = manifest.files().map(|file| file.file.as_str()).collect();
        for file in before.iter().filter(|file| !kept.contains(file.as_str())) {
            step();
            let path = self.path.join(file);
            if let Err(error) = std::fs::remove_file(&path).context(|| path.display()) {
                // It takes room until the shard is opened to be changed the next time.
                tracing::warn!(%error, "a file that is not needed any more could not be removed");
            }
        }
    }
}

fn values(record: &Record, attributes: usize) -> Vec<Option<&[u8]>> {
    (0..attributes).map(|index| record.bytes(index)).collect()
}
