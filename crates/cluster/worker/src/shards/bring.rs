//! Manifests and shards, from shared storage or from workers that have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use forebay_metrics::table;
use forebay_protocol::DatasetId;
use forebay_shard_store::{Dataset, DatasetFile, Store, data_key, manifest_key, manifest_tag};
use forebay_trace::{Kind, Span, current, within};
use forebay_types::{Error, ErrorKind, Key, Result, ResultExt};
use tokio::sync::oneshot;

use super::folder::{Kept, remove};
use super::log::Follower;
use super::served::Served;
use super::{Asked, Manifest, Shards};
use crate::background::aside;
use crate::origin::MountDoor;

impl Shards {
    /// A dataset's manifest, which never changes.
    pub(super) async fn manifest(&self, id: &DatasetId) -> Result<Arc<Manifest>> {
        let known = || self.known.manifests.lock().get(id).cloned();
        if let Some(known) = known() {
            return Ok(known);
        }
        let asking = self.turns.reading.join(id.clone());
        let _turn = asking.turn().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        let door = self.origin.mount(id.mount).await?;
        let manifest = self.read_manifest(&door, &id.folder, id.manifest).await?;
        let manifest = manifest.ok_or_else(|| {
            Error::not_found(format!("{} of /{}: there is no manifest {} of shards", id.folder, door.mount.name, id.manifest))
        })?;
        if manifest.id.tag != id.tag {
            let what = format!("{} of /{}", id.folder, door.mount.name);
            return Err(Error::conflict(format!("{what}: manifest {} is another one now: open the dataset anew", id.manifest)));
        }
        self.known.manifests.lock().put(id.clone(), Arc::clone(&manifest));
        // This one with its log says the same: one behind it that can't be read, as of a later version, is no reason not to answer.
        if let Err(error) = self.look_for_newer(&door, &manifest).await {
            tracing::warn!(folder = %id.folder, %error, "later manifests can't be read");
        }
        Ok(manifest)
    }

    /// A manifest as shared storage has it; none where there is none of that number.
    pub(super) async fn read_manifest(&self, door: &MountDoor, folder: &Key, number: u64) -> Result<Option<Arc<Manifest>>> {
        let key = below(folder, &manifest_key(number))?;
        let bytes = match self.origin.read_whole(door, &key).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let dataset = Dataset::decode(&bytes, &format!("/{}/{key}", door.mount.name))?;
        let mount = door.mount.id;
        let ids = (0..dataset.shards.len()).map(|number| dataset.shard_id(mount.0, folder.as_str(), number)).collect();
        let id = DatasetId { mount, folder: folder.clone(), manifest: number, tag: manifest_tag(&bytes) };
        Ok(Some(Arc::new(Manifest { id, dataset, ids })))
    }

    /// The shard, opened; brought here first where it is not. That goes on when who asks for it goes away: a shard may take longer
    /// than anyone waits for an answer.
    pub(super) async fn served(self: &Arc<Self>, asked: &Arc<Asked>) -> Result<Arc<Served>> {
        if let Some(served) = self.find(asked.id()) {
            return Ok(served);
        }
        // One worker is enough to look for what others' merges and refreshes left.
        let may_have_left = asked.manifest.id.manifest > 1 || asked.manifest.dataset.following.is_some();
        if asked.number == 0 && may_have_left && self.place_of(&asked.manifest.id, 0) == Some(0) {
            self.collect_meanwhile(&asked.manifest);
        }
        let (shards, asked) = (Arc::clone(self), Arc::clone(asked));
        let (done, served) = oneshot::channel();
        // It is done for who asked first, whoever waits for it beside.
        self.background.spawn(within(current(), async move {
            // Nobody may wait any more.
            let _ = done.send(shards.find_or_bring(&asked).await);
        }));
        served.await.map_err(|_| Error::closed("the worker is stopping"))?
    }

    async fn find_or_bring(&self, asked: &Asked) -> Result<Arc<Served>> {
        let id = asked.id();
        let asking = self.turns.bringing.join(id);
        let _turn = asking.turn().await;
        // Files from before a merge are nothing to whom those behind it can answer, and may be on their way out.
        if let Some(served) = self.find(id).or_else(|| self.served_behind(asked)) {
            return Ok(served);
        }
        // Until it is served, others' making of room must not take it away under the one who opens it.
        let _held = self.kept.hold(id);
        let (store, _room) = match self.open_kept(asked).await? {
            Some(store) => (store, None),
            None => {
                // As long it counts as one that is on its way: what is held can't make room for a further one.
                let room = self.turns.room.acquire().await.map_err(|_| Error::closed("the worker is stopping"))?;
                (self.bring(asked).await?, Some(room))
            }
        };
        let served = Arc::new(self.carry_layers(asked, store).await);
        served.bytes.store(self.kept.measure(id)?, Relaxed);
        if let Some(before) = self.served_before(asked) {
            served.go_on_from(&before);
        }
        self.served.lock().insert(id, Arc::clone(&served));
        self.retire_before(asked);
        Ok(served)
    }

    /// The same shard in the files from behind a merge, if it is served.
    fn served_behind(&self, asked: &Asked) -> Option<Arc<Served>> {
        let (place, mount, from) = (asked.log()?, asked.manifest.id.mount, asked.shard().log_from);
        let is_behind = |log: &Follower| log.from > from && log.is_of(mount, |of| *of == place);
        let served = self.served.lock();
        served.values().find(|served| served.log.as_ref().is_some_and(is_behind)).cloned()
    }

    /// Lets the same shard go in the files from before a merge: whoever asks for these is answered from the ones behind it, which have in
    /// them what those had in memory. What is being answered goes on.
    fn retire_before(&self, asked: &Asked) {
        let (Some(place), mount, from) = (asked.log(), asked.manifest.id.mount, asked.shard().log_from) else { return };
        let is_before = |log: &Follower| log.from < from && log.is_of(mount, |of| *of == place);
        self.retire(is_before);
    }

    /// Lets shards go that answer nothing any more, by their logs: their changes and files, of which nobody waits for the end.
    pub(super) fn retire(&self, is_over: impl Fn(&Follower) -> bool) {
        let gone: Vec<Arc<Served>> = {
            let mut served = self.served.lock();
            let over = served.values().filter(|served| served.log.as_ref().is_some_and(&is_over));
            let over: Vec<u128> = over.map(|served| served.id).collect();
            over.iter().filter_map(|id| served.remove(id)).collect()
        };
        if gone.is_empty() {
            return;
        }
        let kept = Arc::clone(&self.kept);
        self.background.spawn(async move {
            let letting_go = forebay_runtime::spawn_blocking(move || {
                for served in gone {
                    // Its files go later where somebody changes them now, or a pin has to be looked at first.
                    if !served.dial.told().1
                        && !kept.pins.has(served.id)
                        && let Err(error) = kept.forget(served.id)
                    {
                        tracing::debug!(folder = %served.part.folder, shard = served.part.number, %error, "files of a shard that is elsewhere stay");
                    }
                }
            });
            if letting_go.await.is_err() {
                tracing::warn!("letting go of files of shards ended early");
            }
        });
    }

    /// A shard that a process before this one left here; none where there is none, or it does not verify any more.
    async fn open_kept(&self, asked: &Asked) -> Result<Option<Store>> {
        let id = asked.id();
        if !self.kept.has(id) {
            return Ok(None);
        }
        match open(self.kept.path(id)).await {
            Ok(store) => Ok(Some(store)),
            Err(error) => {
                tracing::warn!(shard = asked.number, folder = %asked.folder(), %error, "a shard on disk is brought anew");
                self.kept.forget(id)?;
                Ok(None)
            }
        }
    }

    pub(super) fn find(&self, id: u128) -> Option<Arc<Served>> {
        let served = self.served.lock().get(&id).cloned()?;
        self.kept.touch(id);
        Some(served)
    }

    async fn bring(&self, asked: &Asked) -> Result<Store> {
        let (id, shard) = (asked.id(), asked.shard());
        let door = self.origin.mount(asked.manifest.id.mount).await?;
        let gone = self.make_room(id, shard.bytes())?;
        let reserved = Reserved { kept: &self.kept, id };
        gone.removed().await?;
        let unfinished = self.kept.begin(id)?;
        let mut span = Span::below(current(), "bring shard", Kind::Internal);
        span.set("forebay.path", || format!("/{}/{}", door.mount.name, asked.folder()));
        span.set("forebay.shard", || u64::from(asked.number));
        span.set("forebay.bytes", || shard.bytes());
        let gathered = within(span.context(), self.gather(&door, asked, &unfinished)).await;
        let gathered = gathered.inspect_err(|error| span.fail(error));
        let placed = gathered.and_then(|stored_bytes| self.kept.place(id, &unfinished).map(|()| stored_bytes));
        let stored_bytes = match placed {
            Ok(stored_bytes) => stored_bytes,
            Err(error) if error.kind() == ErrorKind::NotFound && self.is_merged_elsewhere(&door, asked).await? => {
                return Err(Error::retry(format!("{}: the shard was merged into other files: ask again", asked.folder())));
            }
            Err(error) => return Err(error.context(format!("/{}/{} shard {}", door.mount.name, asked.folder(), asked.number))),
        };
        reserved.keep();
        span.set("forebay.bytes_of_storage", || stored_bytes);
        // Of a copy no more than small files are from there.
        if stored_bytes > shard.bytes() / 2 {
            table::WORKER_SHARDS_BROUGHT.only().add(1);
        }
        table::WORKER_SHARD_BROUGHT_BYTES.only().add(stored_bytes);
        open(self.kept.path(id)).await
    }

    /// Whether a later manifest, which this worker was not told of, has the shard in other files.
    async fn is_merged_elsewhere(&self, door: &MountDoor, asked: &Asked) -> Result<bool> {
        self.look_for_newer(door, &asked.manifest).await?;
        Ok(!Arc::ptr_eq(&self.newest_of(Arc::clone(&asked.manifest), asked.number), &asked.manifest))
    }

    /// A file of a shard, from shared storage.
    pub(super) async fn download(&self, door: &MountDoor, folder: &Key, file: &DatasetFile, path: &Path) -> Result<()> {
        let key = below(folder, &data_key(&file.object))?;
        match self.origin.download(door, &key, file.bytes, path).await? == file.crc32c {
            true => Ok(()),
            false => Err(Error::corrupt(format!("{key}: its bytes do not verify: delete it, and create the dataset again"))),
        }
    }

    /// Gives up shards that were not asked for longest, until this one has room for `bytes`, once their files are removed.
    pub(super) fn make_room(&self, id: u128, bytes: u64) -> Result<Gone> {
        // One step for all others: who is brought again meanwhile must not lose what came.
        let mut served = self.served.lock();
        let mut gone = Gone(Vec::new());
        for id in self.kept.make_room(id, bytes, |id| served.get(&id).is_some_and(|served| served.dial.told().1))? {
            gone.0.push((served.remove(&id), self.kept.put_aside(id)?));
            table::WORKER_SHARDS_EVICTED.only().add(1);
        }
        Ok(gone)
    }
}

/// Shards that made room, or whose dataset is gone, and the folders that their files are in.
#[must_use]
pub(super) struct Gone(pub(super) Vec<(Option<Arc<Served>>, PathBuf)>);

impl Gone {
    /// Removes the files, of which there may be gigabytes: no question waits for that.
    pub(super) async fn removed(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let removing = move || {
            self.0.into_iter().try_for_each(|(served, folder)| {
                drop(served);
                remove(&folder)
            })
        };
        aside("removing files of shards", removing).await
    }
}

/// Room for a shard that is on its way; given back when it does not come, or when who waited for it went away.
pub(super) struct Reserved<'a> {
    pub(super) kept: &'a Kept,
    pub(super) id: u128,
}

impl Reserved<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.kept.give_up(self.id) {
            tracing::warn!(%error, "the rest of a shard that did not come stays until the next start");
        }
    }
}

/// Opens a shard's folder. What it has in layers is verified; most of its base is when it is used first.
pub(super) async fn open(path: PathBuf) -> Result<Store> {
    aside("opening a shard", move || Store::open(&path)).await
}

pub(super) fn below(folder: &Key, name: &str) -> Result<Key> {
    let folder = folder.as_str().trim_end_matches('/');
    let key = if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
    Key::new(key).context(|| folder.to_string())
}
