use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_shard::{LayerId, LayerInfo, Shard};
use forebay_types::{Error, Result, ResultExt};

use super::build::write_part;
use super::{Mapped, Store, View};
use crate::folder::{FileEntry, Manifest, map, step};

impl Store {
    /// Sets how much is stored, as a part of the input: drops layers, or builds some with all cores. Questions go on
    /// meanwhile, each answered from the layers that were there when it began.
    pub fn tune(&self, size: f64) -> Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        self.tune_with(size, threads)
    }

    /// The same with so many threads.
    pub fn tune_with(&self, size: f64, threads: usize) -> Result<()> {
        self.change_layers(|manifest, view| {
            manifest.size = size;
            if let Some(text) = &view.text {
                return self.tune_text(text, size, threads, manifest);
            }
            let mut missing = Vec::new();
            for (place, mapped) in view.shards.iter().enumerate() {
                let wanted: BTreeSet<LayerId> = mapped.shard.dial(size, &mapped.shard.counters()).into_iter().collect();
                let there: BTreeSet<LayerId> = mapped.shard.layers().iter().map(|layer| layer.id).collect();
                drop_from(mapped, place, &there.difference(&wanted).copied().collect::<Vec<_>>(), manifest);
                missing.push(wanted.difference(&there).copied().collect::<Vec<_>>());
            }
            for ((place, mapped), missing) in view.shards.iter().enumerate().zip(&missing) {
                // One pass makes them all, but the memory that it takes is that of the layers.
                self.add_to(mapped, place, missing, threads, manifest)?;
            }
            Ok(())
        })
    }

    /// Drops layers: at once for questions that begin from here on, then in the folder. Says how long the first took.
    pub fn drop_layers(&self, ids: &[LayerId]) -> Result<Duration> {
        let mut dropped = Duration::ZERO;
        self.change_layers(|manifest, view| {
            let started = Instant::now();
            view.shards.iter().enumerate().for_each(|(place, mapped)| drop_from(mapped, place, ids, manifest));
            dropped = started.elapsed();
            Ok(())
        })?;
        Ok(dropped)
    }

    /// The layers that are there, of all compressed shards.
    pub fn layers(&self) -> Vec<LayerInfo> {
        self.view.load().shards.iter().flat_map(|mapped| mapped.shard.layers()).collect()
    }

    /// Changes layers, then the manifest. If the change fails, what was done of it stays, so that what answers questions is
    /// what the folder has.
    pub(super) fn change_layers(&self, change: impl FnOnce(&mut Manifest, &View) -> Result<()>) -> Result<()> {
        let mut manifest = self.writer()?.manifest.lock();
        let before = manifest.clone();
        let outcome = change(&mut manifest, &self.view.load_full());
        self.publish(before, &mut manifest).and(outcome)
    }

    fn publish(&self, before: Manifest, manifest: &mut Manifest) -> Result<()> {
        step();
        if *manifest == before {
            return Ok(());
        }
        if let Err(error) = manifest.write(&self.path) {
            // Files that it doesn't name go when the shard is opened to be changed the next time.
            *manifest = before;
            return Err(error);
        }
        self.remove(before.files().map(|file| file.file.clone()).collect(), manifest);
        Ok(())
    }

    fn add_to(&self, mapped: &Mapped, place: usize, ids: &[LayerId], threads: usize, manifest: &mut Manifest) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        for (id, bytes) in construct(&mapped.shard, ids, threads)? {
            let entry = write_part(&self.path, manifest.name("layer") + &format!("-{id}"), &bytes)?;
            step();
            // From the file from here on: what is mapped can be given back to the system at any time.
            mapped.shard.add_layer(map(&self.path.join(&entry.file))?)?;
            manifest.shards[place].layers.push(entry);
        }
        Ok(())
    }

    /// Writes a slice of a part that questions have filled, and lets it take the place of what was filled. False while values
    /// are missing.
    pub(super) fn seal(&self, mapped: &Mapped, place: usize, id: LayerId, manifest: &mut Manifest) -> Result<bool> {
        let Some(bytes) = mapped.shard.seal(id) else { return Ok(false) };
        let entry = write_part(&self.path, manifest.name("layer") + &format!("-{id}"), &bytes)?;
        mapped.shard.add_layer(map(&self.path.join(&entry.file))?)?;
        manifest.shards[place].layers.push(entry);
        Ok(true)
    }
}

fn drop_from(mapped: &Mapped, place: usize, ids: &[LayerId], manifest: &mut Manifest) {
    for &id in ids {
        mapped.shard.remove_layer(id);
        manifest.shards[place].layers.retain(|entry| layer_of(entry) != Some(id));
    }
}

/// The layer in a file, by its name.
pub(super) fn layer_of(entry: &FileEntry) -> Option<LayerId> {
    entry.file.splitn(3, '-').nth(2)?.parse().ok()
}

/// Builds layers in one pass over the records.
fn construct(shard: &Shard, ids: &[LayerId], threads: usize) -> Result<BTreeMap<LayerId, Bytes>> {
    let builder = shard.layer_builder(ids)?;
    in_parallel(&builder.steps(), threads, |step| builder.run(step))?;
    Ok(builder.finish()?.into_iter().collect())
}

/// Threads take one step after the other until none is left.
pub(super) fn in_parallel(steps: &[Range<u32>], threads: usize, run: impl Fn(Range<u32>) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
            run(step.clone())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.clamp(1, 256)).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let failed = || Err(Error::internal("a thread that builds layers failed"));
        others.into_iter().map(|other| other.join().unwrap_or_else(|_| failed())).fold(mine, |all, one| all.and(one))
    })
    .context(|| "layers can't be built")
}
