//! The dial: which layers the size asks for, which of them are missing, and building those.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forebay_shard::{FlatText, LayerId, LayerInfo, QueryCounters, Shard};
use forebay_types::{Error, Result, ResultExt};

use super::{LayerChange, steering};
use crate::folder::Manifest;
use crate::store::Store;

impl Store {
    /// Sets how much is stored, as a part of the input: drops layers, or builds some with all cores. Questions go on
    /// meanwhile, each answered from the layers that were there when it began.
    pub fn tune(&self, size: f64) -> Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        self.tune_with(size, threads)
    }

    /// The same with so many threads.
    pub fn tune_with(&self, size: f64, threads: usize) -> Result<()> {
        self.settle(Some(size), threads)
    }

    /// Lets the layers be those of a size, or of the one that is set.
    pub(in crate::store) fn settle(&self, size: Option<f64>, threads: usize) -> Result<()> {
        self.change_layers(|layers, view| {
            let size = layers.size(size);
            if let Some(text) = &view.text {
                return tune_text(text, size, threads, layers);
            }
            let counters = self.steering();
            // All that goes makes room before anything comes.
            let mut missing = Vec::new();
            for (place, mapped) in view.shards.iter().enumerate() {
                let wanted: BTreeSet<LayerId> = mapped.shard.dial(size, &counters).into_iter().collect();
                missing.push(drop_others(layers, place, &wanted));
            }
            for ((place, mapped), missing) in view.shards.iter().enumerate().zip(&missing) {
                add_to(&mapped.shard, place, missing, threads, layers)?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// What the choice of layers goes by.
    pub(in crate::store) fn steering(&self) -> QueryCounters {
        steering(self.asked.as_ref().map(|asked| asked.keep()).unwrap_or_default())
    }

    /// Whether what was asked calls for other layers than there are, at the size that is set.
    pub fn wants_other_layers(&self) -> Result<bool> {
        let (manifest, counters, view) = (Manifest::read(&self.path)?, self.steering(), self.view.load_full());
        let differs = view.shards.iter().zip(&manifest.shards).any(|(mapped, files)| {
            let wanted: BTreeSet<LayerId> = mapped.shard.dial(manifest.size, &counters).into_iter().collect();
            wanted != files.layer_ids().collect::<BTreeSet<_>>()
        });
        Ok(differs)
    }

    /// Drops layers: in the folder, then for questions that begin from there on. Says how long the latter took.
    pub fn drop_layers(&self, ids: &[LayerId]) -> Result<Duration> {
        self.change_layers(|layers, view| {
            (0..view.shards.len()).for_each(|place| layers.drop(place, ids));
            Ok(())
        })
    }

    /// The layers that are there, of all compressed shards.
    pub fn layers(&self) -> Vec<LayerInfo> {
        self.view.load().shards.iter().flat_map(|mapped| mapped.shard.layers()).collect()
    }
}

/// Drops the layers that nobody wants, and says which wanted ones are not there.
fn drop_others(layers: &mut LayerChange<'_>, place: usize, wanted: &BTreeSet<LayerId>) -> Vec<LayerId> {
    let there: BTreeSet<LayerId> = layers.files(place).layer_ids().collect();
    layers.drop(place, &there.difference(wanted).copied().collect::<Vec<_>>());
    wanted.difference(&there).copied().collect()
}

/// Builds layers in one pass, which takes as much memory as they do.
fn add_to(shard: &Shard, place: usize, ids: &[LayerId], threads: usize, layers: &mut LayerChange<'_>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    for (id, bytes) in construct(shard, ids, threads)? {
        layers.add(place, id, &bytes, |part| shard.verify_layer(part))?;
    }
    Ok(())
}

/// Sets how much of flat text's samples are stored.
fn tune_text(text: &FlatText, size: f64, threads: usize, layers: &mut LayerChange<'_>) -> Result<()> {
    let wanted: BTreeSet<LayerId> = text.dial(size, false).into_iter().collect();
    let missing = drop_others(layers, 0, &wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let builder = text.layer_builder(&missing)?;
    in_parallel(&builder.steps(), threads, |step| {
        builder.run(step);
        Ok(())
    })?;
    for (id, bytes) in builder.finish()? {
        layers.add(0, id, &bytes, |part| text.verify_layer(part))?;
    }
    Ok(())
}

/// Builds layers in one pass over the records.
fn construct(shard: &Shard, ids: &[LayerId], threads: usize) -> Result<BTreeMap<LayerId, Bytes>> {
    let builder = shard.layer_builder(ids)?;
    in_parallel(&builder.steps(), threads, |step| builder.run(step))?;
    Ok(builder.finish()?.into_iter().collect())
}

/// Threads take one step after the other until none is left.
fn in_parallel(steps: &[Range<u32>], threads: usize, run: impl Fn(Range<u32>) -> Result<()> + Sync) -> Result<()> {
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
