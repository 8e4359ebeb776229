use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_shard::Key;
use forebay_types::{Result, ResultExt};

use super::build::Parts;
use super::open::open_shard;
use super::{Store, View};
use crate::folder::{Manifest, step};
use crate::log::Log;
use crate::update::LogStore;

impl Store {
    /// Compresses all updates so far into the shard. Questions and changes go on meanwhile.
    pub fn merge(&self) -> Result<()> {
        let writer = self.writer()?;
        let mut manifest = writer.manifest.lock();
        // Every update below the cut is in the view, and none at or above it.
        let (cut, view) = {
            let _alone = writer.publishing.write();
            (writer.log.roll()?, self.view.load_full())
        };
        let updates = view.updates();
        if updates.is_empty() {
            return Ok(());
        }
        let mut next = manifest.clone();
        let shards = self.rewrite(&view, &updates, &mut next)?;
        let old: Vec<String> = manifest.files().map(|file| file.file.clone()).collect();
        next.log_from = cut;
        step();
        next.write(&self.path)?;
        *manifest = next;
        self.view.rcu(|now| {
            let mut merged = View { shards: shards.clone(), ..View::default() };
            now.runs.iter().map(|run| run.from(cut)).filter(|run| !run.is_empty()).for_each(|run| merged.push(run));
            Arc::new(merged)
        });
        self.remove(old, &manifest);
        step();
        writer.log.forget(cut)
    }

    /// Writes new compressed shards of what the view has; the old ones stay.
    fn rewrite(&self, view: &View, updates: &LogStore, manifest: &mut Manifest) -> Result<Vec<Arc<super::Mapped>>> {
        let columns = self.records()?.clone();
        let attributes = columns.attributes().count();
        let mut parts = Parts::new(columns, manifest.size)?;
        let mut pending = updates.iter().filter_map(|(key, update)| Some((key, update.values?))).peekable();
        let mut empty = true;
        for (place, mapped) in view.shards.iter().enumerate() {
            let later = &view.shards[place + 1..];
            mapped.shard.scan(None, |key, record| {
                // In the order of keys as far as they come in it: then nothing has to be sorted again.
                while let Some((before, values)) = pending.next_if(|(before, _)| **before < key) {
                    parts.push(before, values, &self.path, manifest)?;
                    empty = false;
                }
                let hidden = updates.get(&key).is_some() || later.iter().any(|later| has(&later.shard, &key));
                if !hidden {
                    let values: Vec<Option<&[u8]>> = (0..attributes).map(|index| record.bytes(index)).collect();
                    parts.push_encoded(&key, &values, &self.path, manifest)?;
                    empty = false;
                }
                Ok(true)
            })?;
        }
        for (key, values) in pending {
            parts.push(key, values, &self.path, manifest)?;
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

/// Whether a compressed shard has a record of a key.
pub(super) fn has(shard: &forebay_shard::Shard, key: &Key) -> bool {
    let mut record = forebay_shard::Record::new();
    // No columns are read, so no values are.
    shard.get_into(key, Some(&[]), &mut record).unwrap_or(false)
}
