//! What a dataset's manifest orders of its replicas, followed where this worker is one of those who hold them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_shard_store::{Dataset, DatasetOrders, manifest_key, manifest_number};
use forebay_types::{Error, ErrorKind, Key, MountId, Result};

use super::bring::below;
use super::folder::Pin;
use super::served::Served;
use super::{Asked, Manifest, Shards};
use crate::origin::MountDoor;

/// Objects that are named as manifests and may be none, of which one that is one is looked for.
const LOOKED_AT_MAX: usize = 64;

impl Shards {
    /// Has a shard return to the size that this worker's place among its holders says, and be kept as the dataset's orders say.
    pub(super) fn place(&self, served: &Arc<Served>, asked: &Asked) {
        let id = &asked.manifest.id;
        let view = self.cluster.view();
        if served.is_placed((view.epoch, view.version, id.manifest)) {
            return;
        }
        drop(view);
        let (size, orders) = (self.size_of(asked), asked.manifest.dataset.orders);
        self.start_at(served, size, orders);
        let pin = Pin { mount: id.mount, folder: id.folder.clone(), manifest: id.manifest, shard: asked.number };
        let is_pinned = size.is_some() && orders.pin.is_some();
        if let Err(error) = self.kept.pins.set(served.id, &pin, is_pinned) {
            tracing::warn!(folder = %id.folder, shard = asked.number, %error, "a pin is not kept over a restart");
        }
    }

    /// Whether an object that is about to be written changes what a dataset's manifests order of its replicas, with the condition and the
    /// bytes that it is written with; without these whether it is named as a manifest.
    pub(crate) async fn orders_else(&self, mount: MountId, key: &Key, written: Option<(&PutCondition, &Bytes)>) -> Result<bool> {
        let Some((folder, number)) = manifest_at(key)? else { return Ok(false) };
        let Some((condition, bytes)) = written else { return Ok(true) };
        let door = self.origin.mount(mount).await?;
        // What is no manifest orders nothing.
        let next = Dataset::decode(bytes, key.as_str()).ok().map(|next| next.orders);
        let there = match condition {
            // It takes the place of none.
            PutCondition::Absent => None,
            _ => self.orders_of(&door, &folder, number).await?,
        };
        match (there, next) {
            (Some(there), Some(next)) => Ok(next != there),
            (Some(there), None) => self.matters(&door, &folder, number, there).await,
            (None, Some(next)) => Ok(next != self.orders_before(&door, &folder, number).await?),
            (None, None) => Ok(false),
        }
    }

    /// The same of an object that is about to be deleted.
    pub(crate) async fn orders_else_without(&self, mount: MountId, key: &Key) -> Result<bool> {
        let Some((folder, number)) = manifest_at(key)? else { return Ok(false) };
        let door = self.origin.mount(mount).await?;
        match self.orders_of(&door, &folder, number).await? {
            Some(there) => self.matters(&door, &folder, number, there).await,
            None => Ok(false),
        }
    }

    /// Whether it matters to the orders of a dataset that a manifest with these is there: it is the last one, and it orders something, or the
    /// one before it does, which would be the last.
    async fn matters(&self, door: &MountDoor, folder: &Key, number: u64, there: DatasetOrders) -> Result<bool> {
        if self.is_followed(door, folder, number).await? {
            return Ok(false);
        }
        Ok(!there.is_none() || !self.orders_before(door, folder, number).await?.is_none())
    }

    /// Whether there is a manifest behind a number.
    async fn is_followed(&self, door: &MountDoor, folder: &Key, number: u64) -> Result<bool> {
        let is_next = self.orders_of(door, folder, number + 1).await?.is_some();
        Ok(is_next || self.last_orders(door, folder, Some(number), u64::MAX).await?.is_some())
    }

    /// What the last manifest before a number orders: that with the number before it, unless this is missing or none.
    async fn orders_before(&self, door: &MountDoor, folder: &Key, number: u64) -> Result<DatasetOrders> {
        if let Some(before) = number.checked_sub(1)
            && let Some(orders) = self.orders_of(door, folder, before).await?
        {
            return Ok(orders);
        }
        Ok(self.last_orders(door, folder, None, number).await?.unwrap_or_default())
    }

    /// What the last manifest orders of those in a folder with numbers above one and below another; none where there is none.
    async fn last_orders(&self, door: &MountDoor, folder: &Key, above: Option<u64>, until: u64) -> Result<Option<DatasetOrders>> {
        let above = above.map(|number| below(folder, &manifest_key(number))).transpose()?;
        let named = self.named(door, &below(folder, "manifest-")?, above, manifest_number).await?;
        let mut numbers: Vec<u64> = named.into_iter().map(|stored| stored.name).filter(|number| *number < until).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.dedup();
        for number in numbers.iter().take(LOOKED_AT_MAX) {
            if let Some(orders) = self.orders_of(door, folder, *number).await? {
                return Ok(Some(orders));
            }
        }
        match numbers.len() > LOOKED_AT_MAX {
            true => {
                Err(Error::invalid(format!("{folder}: {LOOKED_AT_MAX} objects are named as manifests and are none: delete them")))
            }
            false => Ok(None),
        }
    }

    /// What a manifest orders; none where there is none, or something that is no manifest.
    async fn orders_of(&self, door: &MountDoor, folder: &Key, number: u64) -> Result<Option<DatasetOrders>> {
        match self.read_manifest(door, folder, number).await {
            Ok(manifest) => Ok(manifest.map(|manifest| manifest.dataset.orders)),
            Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Corrupt) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a shard is to be here, whatever it is asked.
    pub(super) fn is_pinned_here(&self, asked: &Asked) -> bool {
        asked.manifest.dataset.orders.pin.is_some() && self.size_of(asked).is_some()
    }

    /// Lets shards go, beside what goes on, whose pins nobody could take away here: the dataset was deleted or its shard merged, its mount
    /// removed, or others hold the shard now.
    pub(super) fn check_pins(self: &Arc<Self>) {
        let shards = Arc::clone(self);
        self.background.spawn(async move { shards.check_all_pins().await });
    }

    async fn check_all_pins(&self) {
        // Of a folder that can't be read now nothing is known; it is asked about once.
        let mut latest: HashMap<(MountId, Key), Result<Option<Arc<Manifest>>>> = HashMap::new();
        for (id, pin) in self.kept.pins.all() {
            let of = (pin.mount, pin.folder.clone());
            if !latest.contains_key(&of) {
                let read = self.latest_of(&pin).await.inspect_err(|error| {
                    tracing::debug!(folder = %pin.folder, %error, "it is asked again later whether a dataset is pinned");
                });
                latest.insert(of.clone(), read);
            }
            let Some(Ok(manifest)) = latest.get(&of) else { continue };
            if manifest.as_ref().is_some_and(|manifest| self.is_pinned_by(manifest, id, &pin)) {
                continue;
            }
            tracing::info!(folder = %pin.folder, shard = pin.shard, "a shard is pinned here by no dataset any more");
            if let Err(error) = self.kept.pins.take_away(id, &pin) {
                tracing::warn!(folder = %pin.folder, shard = pin.shard, %error, "a pin stays");
            }
            let served = self.served.lock().get(&id).cloned();
            // Files from before a merge are nothing to the manifest behind it, which would pin them in the place of its own.
            let manifest = manifest.as_ref().filter(|manifest| manifest.ids.get(pin.shard as usize) == Some(&id));
            if let (Some(served), Some(manifest)) = (served, manifest) {
                self.place(&served, &Asked { manifest: Arc::clone(manifest), number: pin.shard });
            }
        }
    }

    /// Whether a dataset's latest manifest pins a shard, in these files and here. A worker that is in no view yet holds what it has.
    fn is_pinned_by(&self, manifest: &Arc<Manifest>, id: u128, pin: &Pin) -> bool {
        let is_known = self.cluster.view().workers.iter().any(|worker| worker.id == self.cluster.id);
        let asked = Asked { manifest: Arc::clone(manifest), number: pin.shard };
        let is_of = manifest.ids.get(pin.shard as usize) == Some(&id);
        is_of && manifest.dataset.orders.pin.is_some() && (!is_known || self.size_of(&asked).is_some())
    }

    /// The same, beside what goes on, where shards of the dataset in a folder are pinned here.
    pub(super) fn check_pins_of(self: &Arc<Self>, mount: MountId, folder: &str) {
        let is_of = |pin: &Pin| pin.mount == mount && pin.folder.as_str().trim_end_matches('/') == folder;
        if !self.kept.pins.all().iter().any(|(_, pin)| is_of(pin)) {
            return;
        }
        self.check_pins();
    }

    /// The latest manifest of a pin's dataset; none where it was deleted.
    async fn latest_of(&self, pin: &Pin) -> Result<Option<Arc<Manifest>>> {
        let is_unmounted = {
            let view = self.cluster.view();
            let is_known = view.workers.iter().any(|worker| worker.id == self.cluster.id);
            is_known && !view.mounts.iter().any(|mount| mount.id == pin.mount)
        };
        if is_unmounted {
            return Ok(None);
        }
        let door = self.origin.mount(pin.mount).await?;
        let Some(mut latest) = self.read_manifest(&door, &pin.folder, pin.manifest).await? else { return Ok(None) };
        while let Some(newer) = self.read_manifest(&door, &pin.folder, latest.id.manifest + 1).await? {
            latest = newer;
        }
        Ok(Some(latest))
    }
}

/// The folder and the number of a manifest; none of what is not named as one. Workers answer of one beside all folders, too.
fn manifest_at(key: &Key) -> Result<Option<(Key, u64)>> {
    let (folder, name) = key.as_str().rsplit_once('/').unwrap_or(("", key.as_str()));
    let Some(number) = manifest_number(name) else { return Ok(None) };
    Ok(Some((Key::new(folder)?, number)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use forebay_coordinator::CoordinatorSettings;
    use forebay_demo::S3Server;
    use forebay_protocol::{AdminRequest, ControlReply, DatasetId};
    use forebay_shard::{Key as RecordKey, Value};
    use forebay_shard_store::{
        Column, ColumnKind, Columns, Dataset, DatasetOrders, DatasetPin, Store, data_key, manifest_key, manifest_tag, pack,
    };
    use forebay_testbed::until;
    use forebay_transport::Security;

    use super::*;
    use crate::cluster::ask;
    use crate::process::bed::Bed;
    use crate::{Tuning, Worker};

    const FOLDER: &str = "a.shards";

    /// Stores the files of a shard and the manifest that has it, pinned, past the worker: as another one creates and merges it.
    fn store(s3: &S3Server, folder: &Path, mount: MountId, manifest: u64) -> DatasetId {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let columns = Columns::new(vec![column("id", ColumnKind::Int), column("name", ColumnKind::Text)], "id").unwrap();
        let built = folder.join(format!("built{manifest}"));
        let mut building = Store::build(&built, columns.clone(), 0.01).unwrap();
        for key in 0..300 {
            building.push(RecordKey::U64(key), vec![Value::Text(format!("clerk {key} of {manifest}"))]).unwrap();
        }
        building.finish().unwrap();
        let put = |key: &str, bytes: &[u8]| drop(s3.put("lake", &format!("{FOLDER}/{key}"), bytes).unwrap());
        let packed = pack(&built).unwrap();
        for (place, file) in packed.shard.files.iter().enumerate() {
            put(&data_key(&file.object), &packed.bytes(place).unwrap());
        }
        if let (Some(file), Some(bytes)) = (&packed.shard.cold, packed.cold_bytes().unwrap()) {
            put(&data_key(&file.object), &bytes);
        }
        let orders = DatasetOrders { pin: Some(DatasetPin::default()), frozen: false, ..DatasetOrders::default() };
        let dataset = Dataset::new(columns, vec![0.5], vec![packed.shard]);
        let dataset = Dataset { log: Some("0123456789abcdef".into()), orders, ..dataset };
        let bytes = dataset.encode().unwrap();
        put(&manifest_key(manifest), &bytes);
        DatasetId { mount, folder: Key::new(FOLDER).unwrap(), manifest, tag: manifest_tag(&bytes) }
    }

    /// Has the shard here, placed as a question for it would have it; gives the name that it is kept under.
    async fn place(shards: &Arc<Shards>, id: &DatasetId) -> u128 {
        let asked = Arc::new(shards.asked(id, 0).await.unwrap());
        let served = shards.served(&asked).await.unwrap();
        shards.place(&served, &asked);
        asked.id()
    }

    /// A worker that knows a mount and looks for pins when the test says so.
    async fn started() -> (S3Server, Bed, Worker, MountId) {
        let (s3, bed) = (S3Server::of_bucket("lake").unwrap(), Bed::start(CoordinatorSettings::LEASE).await);
        let add = AdminRequest::MountAdd { name: "lake".parse().unwrap(), url: "s3://lake".into(), options: s3.mount_options() };
        let added = ask(bed.node.coordinator_at(), &Security::default(), &mut None, add).await.unwrap();
        let ControlReply::Mount(mount) = added else { panic!("a mount") };
        let tuning = Tuning { beat: Duration::from_millis(50), navigate_every: Duration::from_secs(3600), ..Tuning::default() };
        let worker = bed.worker("worker", tuning).await;
        let shards = &worker.rooms.shards;
        let is_known = || !shards.cluster.view().workers.is_empty() && !shards.cluster.view().mounts.is_empty();
        until("the worker is in its own view, and the mount", is_known).await;
        (s3, bed, worker, mount.id)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn files_from_before_a_merge_are_not_pinned_under_the_manifest_behind_it() {
        let (s3, _bed, worker, mount) = started().await;
        let (folder, shards) = (tempfile::tempdir().unwrap(), &worker.rooms.shards);

        let before = place(shards, &store(&s3, folder.path(), mount, 1)).await;
        shards.check_all_pins().await;
        assert!(shards.kept.pins.has(before), "the latest manifest pins it");

        let merged = store(&s3, folder.path(), mount, 2);
        shards.check_all_pins().await;
        assert!(shards.served.lock().contains_key(&before), "it answers until the files behind it are here");
        assert!(!shards.kept.pins.has(before), "a manifest that has other files pins it");

        let after = place(shards, &merged).await;
        shards.check_all_pins().await;
        let pinned: Vec<u128> = shards.kept.pins.all().into_iter().map(|(id, _)| id).collect();
        assert_eq!(pinned, [after], "and {before:032x} is not");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn damage_that_the_making_of_layers_comes_upon_has_a_shard_brought_anew() {
        let (s3, _bed, worker, mount) = started().await;
        let (folder, shards) = (tempfile::tempdir().unwrap(), &worker.rooms.shards);
        let asked = Arc::new(shards.asked(&store(&s3, folder.path(), mount, 1), 0).await.unwrap());
        let before = shards.served(&asked).await.unwrap();
        let mut files = std::fs::read_dir(shards.kept.path(asked.id())).unwrap().map(|file| file.unwrap().path());
        let base = files.find(|file| file.file_name().unwrap().to_str().unwrap().starts_with("base-")).unwrap();
        let whole = std::fs::read(&base).unwrap();
        // The section of records by row, which no get needs.
        let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
        let middle = number(48 + 8 * 24) + number(56 + 8 * 24) / 2;
        let file = File::options().write(true).open(&base).unwrap();
        file.write_all_at(&[whole[middle as usize] ^ 1], middle).unwrap();
        assert!(before.store.load().get(&RecordKey::U64(7), None).is_ok() && before.store.load().damage().is_none());

        shards.keep_at(&before, before.dial.level_of(f64::INFINITY));
        until("who answers knows of the damage", || before.store.load().damage().is_some()).await;
        shards.leave_damaged(&before);
        let again = || shards.find(asked.id()).filter(|served| !Arc::ptr_eq(served, &before));
        until("it is here again", || again().is_some()).await;
        until("it is pinned by its dataset", || shards.kept.pins.has(asked.id())).await;
        again().unwrap().store.load().verify().unwrap();
        assert_eq!(std::fs::read(&base).unwrap(), whole);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn files_of_an_earlier_merge_answer_until_those_of_the_last_are_here() {
        let (s3, _bed, worker, mount) = started().await;
        let (folder, shards) = (tempfile::tempdir().unwrap(), &worker.rooms.shards);
        let first = store(&s3, folder.path(), mount, 1);
        place(shards, &store(&s3, folder.path(), mount, 2)).await;
        let last = store(&s3, folder.path(), mount, 3);
        // Which has looked for those behind it.
        let opened = shards.manifest(&first).await.unwrap();
        let by = || shards.newest_of(Arc::clone(&opened), 0).id.manifest;
        assert_eq!((shards.latest_known(&opened).id.manifest, by()), (3, 2), "nobody waits for the last ones");
        place(shards, &last).await;
        assert_eq!(by(), 3);
        let gone = shards.let_go(mount, &first.folder, |_| true);
        assert!(shards.served.lock().is_empty(), "what a dataset had that is gone answers nobody");
        let aside: Vec<PathBuf> = gone.0.iter().map(|(_, folder)| folder.clone()).collect();
        assert!(!aside.is_empty() && aside.iter().all(|folder| folder.exists()), "no get waits until gigabytes are removed");
        gone.removed().await.unwrap();
        assert!(!aside.iter().any(|folder| folder.exists()));
    }
}
