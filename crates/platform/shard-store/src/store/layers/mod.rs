//! Layers come and go: by the size that is set, and by name. Each change is one of the files first, then of the
//! manifest that names them, then of what answers questions.

mod asked;
mod tune;

use std::time::Duration;

use bytes::Bytes;
use forebay_shard::{LayerId, VerifiedLayer};
use forebay_types::{Result, ResultExt};

use crate::folder::{Manifest, PartWriter, ShardFiles, map, step};
use crate::store::{Store, View, Writer};

pub(super) use asked::{Asked, asked_before, begin_with, steering};

/// A change of layers on its way. Questions see nothing of it before the manifest on disk does, so that what answers them is
/// what the folder has, also when the manifest can't be written.
pub(in crate::store) struct LayerChange<'w> {
    store: &'w Store,
    parts: PartWriter<'w>,
    /// As it will be.
    manifest: Manifest,
    /// By compressed shard.
    changed: Vec<Changed>,
}

/// What changes in one compressed shard.
#[derive(Default)]
struct Changed {
    gone: Vec<LayerId>,
    new: Vec<VerifiedLayer>,
}

impl Store {
    /// Changes layers, and says how long it took to let questions have them. If the change fails, what was done of it until
    /// then stays; if it can't be published, nothing does.
    pub(in crate::store) fn change_layers(
        &self,
        change: impl FnOnce(&mut LayerChange<'_>, &View) -> Result<()>,
    ) -> Result<Duration> {
        let writer = self.writer()?;
        let mut manifest = writer.manifest.lock();
        let view = self.view.load_full();
        let mut layers = LayerChange::new(self, writer, manifest.clone());
        let outcome = change(&mut layers, &view);
        step();
        let shown = layers.publish(writer, &mut manifest, &view)?;
        outcome.map(|()| shown)
    }
}

impl<'w> LayerChange<'w> {
    fn new(store: &'w Store, writer: &'w Writer, manifest: Manifest) -> Self {
        let changed = manifest.shards.iter().map(|_| Changed::default()).collect();
        Self { store, parts: PartWriter::new(&store.path, &writer.names), manifest, changed }
    }

    /// What the layers are kept at: sets it, or leaves it as it is.
    pub(in crate::store) fn size(&mut self, size: Option<f64>) -> f64 {
        self.manifest.size = size.unwrap_or(self.manifest.size);
        self.manifest.size
    }

    /// The files that a compressed shard will have, as far as the change has come.
    pub(in crate::store) fn files(&self, place: usize) -> &ShardFiles {
        &self.manifest.shards[place]
    }

    pub(in crate::store) fn drop(&mut self, place: usize, ids: &[LayerId]) {
        self.manifest.shards[place].layers.retain(|entry| !entry.layer().is_some_and(|id| ids.contains(&id)));
        self.changed[place].gone.extend_from_slice(ids);
    }

    /// Writes a layer of a compressed shard. It is read from the file from then on: what is mapped can be given back to the
    /// system at any time.
    pub(in crate::store) fn add(
        &mut self,
        place: usize,
        id: LayerId,
        bytes: &[u8],
        verify: impl FnOnce(Bytes) -> Result<VerifiedLayer>,
    ) -> Result<()> {
        debug_assert!(self.files(place).layer_ids().all(|there| there != id), "layer {id} is there already");
        let entry = self.parts.layer(id, bytes)?;
        step();
        let path = self.store.path.join(&entry.file);
        let layer = verify(map(&path)?).context(|| path.display())?;
        self.manifest.shards[place].layers.push(entry);
        self.changed[place].new.push(layer);
        Ok(())
    }

    fn publish(mut self, writer: &Writer, manifest: &mut Manifest, view: &View) -> Result<Duration> {
        if self.manifest != *manifest {
            self.manifest.next_file = writer.names.last();
            if let Err(error) = self.manifest.write(&self.store.path) {
                self.parts.remove_unnamed();
                return Err(error);
            }
        }
        let started = forebay_runtime::now();
        self.show(view);
        let shown = started.elapsed();
        let before = std::mem::replace(manifest, self.manifest);
        self.store.remove(before.files(), manifest);
        Ok(shown)
    }

    /// Lets questions that begin from here on have it.
    fn show(&self, view: &View) {
        if let (Some(text), [changed]) = (&view.text, &self.changed[..]) {
            text.replace_layers(&changed.gone, &changed.new);
        }
        for (mapped, changed) in view.shards.iter().zip(&self.changed) {
            mapped.shard.replace_layers(&changed.gone, &changed.new);
        }
    }
}
