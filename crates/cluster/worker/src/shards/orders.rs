//! What a dataset's manifest orders of its replicas, followed where this worker is one of those who hold them.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_types::{Key, MountId, Result};

use super::folder::Pin;
use super::served::Served;
use super::{Asked, Manifest, Shards};

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
