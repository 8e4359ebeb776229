//! Later manifests of the same dataset: merges say the same in other files.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::DatasetId;
use forebay_shard_store::{LogPlace, manifest_number};
use forebay_types::{Key, MountId, Result};
use lru::LruCache;
use parking_lot::Mutex;

use super::bring::Gone;
use super::served::Served;
use super::{Asked, Known, Manifest, Shards};
use crate::origin::MountDoor;

/// How long after a manifest its files are asked for: who has merged them gives them by then, and shared storage need not. Until they are
/// here the files before them answer.
const GIVEN_AFTER: Duration = Duration::from_millis(500);

impl Shards {
    /// The manifest by which a shard is answered for who has opened this one: the latest that has the same log, once its shard is here or
    /// none is. Until then files answer that are here, this one's or those of another merge. So nobody waits for the files of a merge.
    pub(super) fn newest_of(&self, manifest: Arc<Manifest>, number: u32) -> Arc<Manifest> {
        let newest = self.latest_known(&manifest);
        if newest.id.manifest == manifest.id.manifest {
            return manifest;
        }
        let served = self.served.lock();
        let is_here = |of: &Manifest| of.ids.get(number as usize).is_some_and(|id| served.contains_key(id));
        if is_here(&newest) {
            return newest;
        }
        if is_here(&manifest) {
            return manifest;
        }
        let log = newest.dataset.log.as_deref();
        let is_it = |place: &LogPlace| Some(place.log.as_str()) == log && place.shard == number;
        let of_shard = served.values().filter(|served| served.log.as_ref().is_some_and(|log| log.is_of(newest.id.mount, is_it)));
        let other = of_shard.map(|served| &served.part.manifest).max_by_key(|manifest| manifest.id.manifest).cloned();
        other.unwrap_or(newest)
    }

    /// The latest manifest that is known here with the same log, which this one may be.
    pub(super) fn latest_known(&self, manifest: &Arc<Manifest>) -> Arc<Manifest> {
        let name = manifest.dataset.log.clone().map(|log| (manifest.id.mount, log));
        let newest = name.and_then(|name| self.known.newest.lock().get(&name).cloned());
        let is_later =
            |newest: &Arc<Manifest>| newest.id.manifest > manifest.id.manifest && newest.ids.len() == manifest.ids.len();
        newest.filter(is_later).unwrap_or_else(|| Arc::clone(manifest))
    }

    /// The datasets that follow objects, of those that were asked for here, whose refreshes are this worker's: it is the first of those that
    /// hold their first shard. With how often they are to be refreshed.
    pub(crate) fn followed(&self) -> Vec<(MountId, Key, Duration)> {
        let mut latest: HashMap<(MountId, Key), Arc<Manifest>> = HashMap::new();
        for manifest in self.known.of(|_| true) {
            let last = latest.entry((manifest.id.mount, manifest.id.folder.clone())).or_insert_with(|| Arc::clone(&manifest));
            if last.id.manifest < manifest.id.manifest {
                *last = manifest;
            }
        }
        let followed = latest.into_values().filter_map(|manifest| {
            let every_ms = manifest.dataset.following.as_ref()?.every_ms;
            let is_here = every_ms > 0 && self.place_of(&manifest.id, 0) == Some(0);
            is_here.then(|| (manifest.id.mount, manifest.id.folder.clone(), Duration::from_millis(every_ms)))
        });
        followed.collect()
    }

    /// Looks for manifests behind one, up to the last.
    pub(super) async fn look_for_newer(&self, door: &MountDoor, manifest: &Arc<Manifest>) -> Result<()> {
        if manifest.dataset.log.is_none() {
            return Ok(());
        }
        let mut number = manifest.id.manifest + 1;
        while let Some(newer) = self.read_manifest(door, &manifest.id.folder, number).await? {
            if manifest.is_or_was(&newer) {
                self.learn(newer);
            }
            number += 1;
        }
        Ok(())
    }

    /// A manifest is there.
    pub(super) fn learn(&self, manifest: Arc<Manifest>) {
        self.known.learn(manifest);
    }

    /// The dataset as it is now, where it is known that it has other shards.
    pub(super) fn moved_to(&self, manifest: &Manifest) -> Option<Arc<Manifest>> {
        self.known.moved_to(manifest)
    }

    /// Where an object is a manifest of a dataset that is known here, shards that are served are brought as it has them.
    pub(super) fn note_manifest(self: &Arc<Self>, mount: MountId, key: &Key) {
        let Some((folder, name)) = key.as_str().rsplit_once('/') else { return };
        let Some(number) = manifest_number(name) else { return };
        let known = self.known.of(|id| id.mount == mount && id.folder.as_str().trim_end_matches('/') == folder);
        // They are numbered upwards: one that is not behind all that are known was deleted, or is of a dataset that was made again.
        if let Some(latest) = known.iter().max_by_key(|known| known.id.manifest).filter(|latest| latest.id.manifest >= number) {
            let (shards, latest) = (Arc::clone(self), Arc::clone(latest));
            self.background.spawn(async move {
                if let Err(error) = shards.forget_if_gone(&latest).await {
                    tracing::debug!(folder = %latest.id.folder, %error, "a dataset that may be gone is remembered");
                }
            });
        }
        let known = known.into_iter().filter(|known| known.id.manifest < number).max_by_key(|known| known.id.manifest);
        // As one that was deleted, or of a dataset that nobody has asked for since the worker's start.
        let Some(known) = known else { return self.check_pins_of(mount, folder) };
        let shards = Arc::clone(self);
        self.background.spawn(async move {
            if let Err(error) = shards.follow_manifests(&known).await {
                tracing::debug!(folder = %known.id.folder, %error, "shards stay in the files that they are in");
            }
        });
    }

    async fn forget_if_gone(&self, latest: &Manifest) -> Result<()> {
        let id = &latest.id;
        let door = self.origin.mount(id.mount).await?;
        let there = self.read_manifest(&door, &id.folder, id.manifest).await?;
        if there.is_none_or(|there| there.id.tag != id.tag) {
            self.known.forget(|known| known.is_or_was(latest));
            self.let_go(id.mount, &id.folder, |log| latest.has_log(log)).removed().await?;
        }
        Ok(())
    }

    /// Lets the shards go that a dataset had which is gone: what they have read of its logs is nothing to one that is put back in its place.
    pub(super) fn let_go(&self, mount: MountId, folder: &Key, has_log: impl Fn(&str) -> bool) -> Gone {
        let name = folder.as_str().trim_end_matches('/');
        let is_its = |place: &LogPlace| place.folder == name && has_log(&place.log);
        let is_gone = |served: &Served| served.log.as_ref().is_some_and(|log| log.is_of(mount, is_its));
        let mut served = self.served.lock();
        let ids: Vec<u128> = served.iter().filter(|(_, served)| is_gone(served)).map(|(id, _)| *id).collect();
        let mut gone = Gone(Vec::new());
        for id in ids {
            let shard = served.remove(&id);
            match self.kept.put_aside(id) {
                Ok(aside) => gone.0.push((shard, aside)),
                Err(error) => tracing::warn!(%folder, %error, "files stay of a shard whose dataset is gone"),
            }
        }
        drop(served);
        let mut far = self.far.lock();
        let ids: Vec<u128> = far.iter().filter(|(_, far)| is_gone(&far.served)).map(|(id, _)| *id).collect();
        for id in ids {
            far.pop(&id);
        }
        gone
    }

    /// The dataset in a folder is gone.
    pub(crate) fn forget_folder(&self, mount: MountId, folder: &Key) {
        self.known.forget(|known| known.id.mount == mount && known.id.folder == *folder);
        let gone = self.let_go(mount, folder, |_| true);
        self.background.spawn(async move {
            if let Err(error) = gone.removed().await {
                tracing::debug!(%error, "files of a dataset that is gone stay until the next start");
            }
        });
    }

    async fn follow_manifests(self: &Arc<Self>, known: &Arc<Manifest>) -> Result<()> {
        let door = self.origin.mount(known.id.mount).await?;
        self.look_for_newer(&door, known).await?;
        forebay_runtime::time::sleep(GIVEN_AFTER).await;
        if let Some(moved) = self.moved_to(known) {
            self.follow_moved(known, &moved).await;
            return Ok(());
        }
        let Some(log) = known.dataset.log.clone() else { return Ok(()) };
        let Some(newest) = self.known.newest.lock().get(&(known.id.mount, log)).cloned() else { return Ok(()) };
        for (number, id) in (0u32..).zip(&newest.ids) {
            let asked = Arc::new(Asked { manifest: Arc::clone(&newest), number });
            let here = self.served.lock().get(id).cloned();
            let served = match here {
                Some(served) => served,
                None if self.served_as(known.id.mount, &newest, number) => match self.served(&asked).await {
                    Ok(served) => served,
                    // As without room: others may come all the same.
                    Err(error) => {
                        tracing::debug!(folder = %known.id.folder, number, %error, "a shard stays in the files that it is in");
                        continue;
                    }
                },
                None => continue,
            };
            self.place(&served, &asked);
        }
        Ok(())
    }

    /// Brings the shards of a dataset that has others now, those that are to be here, where some of its shards of before are.
    async fn follow_moved(self: &Arc<Self>, before: &Manifest, moved: &Arc<Manifest>) {
        let is_served = (0..before.ids.len() as u32).any(|number| self.served_as(before.id.mount, before, number));
        let mut have_come = true;
        for number in 0..moved.ids.len() as u32 {
            let asked = Arc::new(Asked { manifest: Arc::clone(moved), number });
            if self.size_of(&asked).is_none() || !(is_served || self.is_pinned_here(&asked)) {
                continue;
            }
            match self.served(&asked).await {
                Ok(served) => self.place(&served, &asked),
                Err(error) => {
                    have_come = false;
                    tracing::debug!(folder = %moved.id.folder, number, %error, "a shard comes when it is asked for");
                }
            }
        }
        let (mount, folder) = (moved.id.mount, moved.id.folder.as_str().trim_end_matches('/'));
        // Those of before answer nothing any more. They tell which size the others begin with.
        if have_come {
            let is_its = |place: &LogPlace| place.folder == folder && moved.dataset.before.contains(&place.log);
            self.retire(|log| log.is_of(mount, is_its));
        }
        // What is pinned of before is nothing to the dataset any more.
        self.check_pins_of(mount, folder);
    }

    /// Whether a shard of a dataset is served here in any files.
    fn served_as(&self, mount: MountId, manifest: &Manifest, number: u32) -> bool {
        let log = manifest.dataset.log.as_deref();
        let is_it = |place: &LogPlace| Some(place.log.as_str()) == log && place.shard == number;
        self.served.lock().values().any(|served| served.log.as_ref().is_some_and(|log| log.is_of(mount, is_it)))
    }
}

impl Known {
    /// Remembers so many manifests of each kind.
    pub(super) fn new(most: NonZeroUsize) -> Self {
        Self {
            manifests: Mutex::new(LruCache::new(most)),
            newest: Mutex::new(LruCache::new(most)),
            moved: Mutex::new(LruCache::new(most)),
        }
    }

    fn learn(&self, manifest: Arc<Manifest>) {
        let Some(log) = manifest.dataset.log.clone() else { return };
        let mut moved = self.moved.lock();
        for before in &manifest.dataset.before {
            let name = moved_name(&manifest, before);
            if moved.peek(&name).is_none_or(|known| known.id.manifest < manifest.id.manifest) {
                moved.put(name, Arc::clone(&manifest));
            }
        }
        drop(moved);
        let mut newest = self.newest.lock();
        let name = (manifest.id.mount, log);
        if newest.peek(&name).is_none_or(|known| known.id.manifest < manifest.id.manifest) {
            newest.put(name, manifest);
        }
    }

    fn moved_to(&self, manifest: &Manifest) -> Option<Arc<Manifest>> {
        let mut moved = self.moved.lock();
        // Each question looks.
        if moved.is_empty() {
            return None;
        }
        moved.get(&moved_name(manifest, manifest.dataset.log.as_ref()?)).cloned()
    }

    /// The manifests that are known of some datasets.
    fn of(&self, is_asked: impl Fn(&DatasetId) -> bool) -> Vec<Arc<Manifest>> {
        let of_all = |manifest: &&Arc<Manifest>| is_asked(&manifest.id);
        let mut known: Vec<Arc<Manifest>> =
            self.manifests.lock().iter().map(|(_, manifest)| manifest).filter(of_all).cloned().collect();
        known.extend(self.newest.lock().iter().map(|(_, manifest)| manifest).filter(of_all).cloned());
        known
    }

    /// Forgets manifests that are not in shared storage any more. Who asks by one is told so.
    fn forget(&self, is_gone: impl Fn(&Manifest) -> bool) {
        forget(&self.manifests, &is_gone);
        forget(&self.newest, &is_gone);
        forget(&self.moved, &is_gone);
    }
}

fn forget<N: Clone + Hash + Eq>(of: &Mutex<LruCache<N, Arc<Manifest>>>, is_gone: impl Fn(&Manifest) -> bool) {
    let mut of = of.lock();
    let gone: Vec<N> = of.iter().filter(|(_, manifest)| is_gone(manifest)).map(|(name, _)| name.clone()).collect();
    for name in &gone {
        of.pop(name);
    }
}

impl Manifest {
    /// Whether it is of the dataset that a later one is of, with the shards that this has now or with those that it had before.
    fn is_or_was(&self, later: &Self) -> bool {
        let is_there = self.id.mount == later.id.mount && self.id.folder == later.id.folder;
        is_there && self.dataset.log.as_ref().is_some_and(|log| later.has_log(log))
    }

    /// Whether a log is the dataset's, or was.
    fn has_log(&self, log: &str) -> bool {
        self.dataset.log.iter().chain(&self.dataset.before).any(|its| its == log)
    }
}

/// What a dataset that has other shards now is known by: its log of before, in its folder.
fn moved_name(manifest: &Manifest, before: &str) -> (MountId, String, String) {
    let id = &manifest.id;
    (id.mount, id.folder.as_str().trim_end_matches('/').to_string(), before.to_string())
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::{Column, ColumnKind, Columns, Dataset, DatasetShard};

    use super::*;

    /// A manifest of the dataset in a folder, with one log and those of before, each named by a digit.
    fn manifest(folder: &str, number: u64, log: char, before: &str) -> Arc<Manifest> {
        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
        let named = |log: char| log.to_string().repeat(16);
        let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
        let dataset = Dataset::new(columns, vec![0.5], vec![DatasetShard::default()]);
        let dataset = Dataset { log: Some(named(log)), before: before.chars().map(named).collect(), ..dataset };
        let id = DatasetId { mount: MountId(1), folder: Key::new(folder).unwrap(), manifest: number, tag: number.into() };
        Arc::new(Manifest { id, dataset, ids: vec![1] })
    }

    #[test]
    fn a_dataset_that_was_put_back_to_before_it_had_other_shards_is_answered_by_what_is_there() {
        let known = Known::new(NonZeroUsize::new(8).unwrap());
        let (first, second, third) = (manifest("a", 1, '1', ""), manifest("a", 2, '2', "1"), manifest("a", 3, '3', "12"));
        let other = manifest("b", 5, '5', "4");
        for manifest in [&first, &second, &third, &other] {
            known.manifests.lock().put(manifest.id.clone(), Arc::clone(manifest));
            known.learn(Arc::clone(manifest));
        }
        let moved = |manifest: &Manifest| known.moved_to(manifest).map(|moved| moved.id.manifest);
        assert_eq!((moved(&first), moved(&second), moved(&third)), (Some(3), Some(3), None));
        known.forget(|known| known.is_or_was(&third));
        assert_eq!((moved(&first), moved(&second)), (None, None), "the one with other shards is gone");
        assert_eq!(known.of(|id| id.folder == first.id.folder).len(), 0, "nobody is answered by what came before it either");
        assert_eq!(moved(&manifest("b", 4, '4', "")), Some(5), "that is nothing to another dataset");
        assert_eq!(known.of(|_| true).len(), 2);
    }
}
