//! Objects that no manifest names any more: what merges replaced, and what somebody stored and never said.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use forebay_metrics::table;
use forebay_shard_store::{Stored, decode_sources, garbage, manifest_number, needed};
use forebay_types::{Error, ErrorKind, Key, ObjectInfo, Result};

use super::bring::below;
use super::{Manifest, Shards};
use crate::origin::MountDoor;

/// Objects of a folder that are looked at, and deleted, at a time.
const LOOKED_AT_MAX: usize = 100_000;
const DELETED_MAX: usize = 1000;
/// Manifests that are read for it, at most: with more that count there is much to do first.
const READ_MAX: usize = 512;
/// Objects of a page of a listing.
const PAGE: usize = 1000;
/// It is looked for garbage so often in the time that this has to be old.
const LOOKS: u32 = 24;

impl Shards {
    /// Deletes what a dataset does not need any more, where nobody has looked for that of late; nothing waits for it.
    pub(super) fn collect_meanwhile(self: &Arc<Self>, manifest: &Arc<Manifest>) {
        let now = forebay_runtime::now();
        let place = (manifest.id.mount, manifest.id.folder.as_str().to_string());
        let mut collected = self.garbage.collected.lock();
        if collected.get(&place).is_some_and(|last| now - *last < self.garbage.after / LOOKS) {
            return;
        }
        collected.put(place, now);
        drop(collected);
        let (shards, manifest) = (Arc::clone(self), Arc::clone(manifest));
        self.background.spawn(async move {
            if let Err(error) = shards.collect(&manifest).await {
                tracing::debug!(folder = %manifest.id.folder, %error, "objects that may be garbage stay");
            }
        });
    }

    async fn collect(self: &Arc<Self>, manifest: &Manifest) -> Result<()> {
        let (folder, after) = (&manifest.id.folder, self.garbage.after);
        let door = self.origin.mount(manifest.id.mount).await?;
        // Whoever stored an object that is old here has named it by now, or never will.
        let objects = self.named(&door, &below(folder, "data/")?, None, |name| Some(name.to_string())).await?;
        let manifests = self.named(&door, &below(folder, "manifest-")?, None, manifest_number).await?;
        // The clock of shared storage, as far as it has been seen: no other one can be compared with what it tells.
        let times = objects.iter().map(|object| object.modified_ms).chain(manifests.iter().map(|manifest| manifest.modified_ms));
        let now_ms = times.max().unwrap_or(i64::MIN);
        let numbers = needed(&manifests, now_ms, after);
        if numbers.len() > READ_MAX {
            return Err(Error::retry(format!("{folder}: {} manifests count still", numbers.len())));
        }
        let mut named: HashSet<String> = HashSet::new();
        let mut sources: HashSet<String> = HashSet::new();
        for number in numbers {
            let read = self.read_manifest(&door, folder, number).await?;
            // What can't be read names what is not known.
            let gone = || Error::retry(format!("{folder}: manifest {number} has gone meanwhile"));
            let read = read.ok_or_else(gone)?;
            named.extend(read.dataset.objects().map(str::to_string));
            sources.extend(read.dataset.sources_key());
        }
        // What a refresh under way is about to name is young, or is named already: it writes them anew only over those that it has read.
        for name in sources {
            let key = below(folder, &name)?;
            let bytes = self.origin.read_whole(&door, &key).await?;
            let read = decode_sources(&bytes, &format!("/{}/{key}", door.mount.name))?;
            named.extend(read.into_iter().map(|source| source.keys));
        }
        for name in garbage(&objects, &named, now_ms, after, DELETED_MAX) {
            let key = below(folder, &format!("data/{name}"))?;
            match self.writes.delete(manifest.id.mount, &key).await {
                Ok(()) => table::WORKER_SHARD_GARBAGE.only().add(1),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The objects of a folder that begin with a prefix, from behind a key, by the name that their last part is of. Those of folders in it
    /// are others'.
    pub(super) async fn named<N>(
        &self,
        door: &MountDoor,
        prefix: &Key,
        mut after: Option<Key>,
        name: impl Fn(&str) -> Option<N>,
    ) -> Result<Vec<Stored<N>>> {
        let storage = door.storage()?;
        let folder_len = prefix.as_str().rfind('/').map_or(0, |slash| slash + 1);
        let mut all = Vec::new();
        loop {
            let page = storage.list(prefix, false, after.as_ref(), PAGE).await?;
            let stored = |info: &ObjectInfo| {
                let name = name(info.version.key.as_str().get(folder_len..).filter(|rest| !rest.contains('/'))?)?;
                Some(Stored { name, modified_ms: info.modified_ms })
            };
            all.extend(page.objects.iter().filter_map(stored));
            if all.len() > LOOKED_AT_MAX {
                return Err(Error::retry(format!("{prefix}: more than {LOOKED_AT_MAX} objects are not looked through")));
            }
            let Some(next) = page.next else { return Ok(all) };
            after = Some(next);
        }
    }

    /// So long an object may be stored before a manifest names it.
    pub(super) fn to_be_named_within(&self) -> Duration {
        self.garbage.after / 2
    }
}
