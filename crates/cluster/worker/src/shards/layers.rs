//! Layers: how much of a shard is stored here, beside its base.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arc_swap::ArcSwap;
use forebay_metrics::table;
use forebay_navigation::{KeptAt, start};
use forebay_shard_store::{DatasetOrders, LogPlace, Store};
use forebay_types::{Error, ErrorKind, Result};

use super::folder::Kept;
use super::served::Served;
use super::{Asked, Shards};

impl Shards {
    /// Has a shard begin at the size that this worker's place among its holders says, and return to it from wherever its load
    /// brings it, but not below where it is pinned. A worker that is not one of them, and answers because these are away, begins without
    /// layers.
    pub(super) fn start_at(&self, served: &Arc<Served>, size: Option<f64>, orders: DatasetOrders) {
        let level = |size: f64| served.dial.level_of(size);
        let lowest = size.and_then(|size| orders.least(size)).map_or(0, level);
        served.dial.hold(lowest, orders.frozen);
        if let Some(level) = served.dial.start_at(size.map_or(0, level).max(lowest)) {
            self.keep_at(served, level);
        }
    }

    /// Has a shard brought to a level; nothing waits for it.
    pub(super) fn keep_at(&self, served: &Arc<Served>, level: u32) {
        if !served.dial.order(level) {
            return;
        }
        let size = served.dial.size(level);
        let wanted = ((size * served.part.input_bytes as f64) as u64).max(served.bytes.load(Relaxed));
        if let Err(error) = self.kept.grow(served.id, wanted) {
            served.dial.explain(format!("no layers: {}", error.message()));
            served.dial.ended(false);
            return;
        }
        let (served, layering, path) = (Arc::clone(served), Arc::clone(&self.turns.layering), self.kept.path(served.id));
        let (kept, answering) = (Arc::clone(&self.kept), Arc::clone(&served));
        // Waited for when the worker stops: what comes after it in this process finds the folder at rest.
        self.background.spawn(async move {
            let Ok(_turn) = layering.acquire().await else { return };
            // Its folder is put aside, or is another one by now.
            if served.marks.is_leaving.load(Relaxed) {
                let _ = kept.measure(served.id);
                served.dial.ended(false);
                return;
            }
            let (within, id, before) = (Arc::clone(&kept), served.id, served.dial.now());
            let tuned = forebay_runtime::run_behind(move || {
                tune_within(&within, id, &path, size, before).inspect_err(|error| {
                    // All of a base is read for layers, more of it than for gets: who answers is to know of damage, too.
                    if error.kind() == ErrorKind::Corrupt {
                        let _ = answering.store.load().verify();
                    }
                })
            });
            let came = match tuned.await {
                Some(Ok((store, bytes, came))) => {
                    let before = served.replace(store);
                    // Where no get waits for it.
                    let _ = forebay_runtime::spawn_blocking(move || drop(before)).await;
                    served.bytes.store(bytes, Relaxed);
                    if came {
                        table::WORKER_SHARDS_LAYERED.only().add(1);
                    }
                    came
                }
                Some(Err(error)) => {
                    tracing::warn!(folder = %served.part.folder, shard = served.part.number, %error, "layers stay as they are");
                    false
                }
                None => {
                    tracing::warn!(folder = %served.part.folder, shard = served.part.number, "the making of layers ended early");
                    false
                }
            };
            // What was reserved for the layers is what they take from now on.
            if let Err(error) = kept.measure(served.id) {
                tracing::debug!(%error, "a shard went while its layers were made");
            }
            served.dial.ended(came);
        });
    }

    /// Has shards whose layers were chosen before anything was known of their questions get those that these pay for, at the size that
    /// they have; once each.
    pub(super) async fn steer(&self, settled: Vec<Arc<Served>>) {
        for served in settled.into_iter().filter(|served| served.may_be_steered()) {
            let store = served.store.load_full();
            let looked = forebay_runtime::spawn_blocking(move || match store.what_was_asked() {
                Some(_) => store.wants_other_layers().map(Some),
                None => Ok(None),
            });
            match looked.await {
                Ok(Ok(Some(wants))) => {
                    served.marks.is_steered.store(true, Relaxed);
                    if wants {
                        tracing::info!(folder = %served.part.folder, shard = served.part.number, "layers for what is asked");
                        self.keep_at(&served, served.dial.level_of(served.dial.now()));
                    }
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::debug!(folder = %served.part.folder, shard = served.part.number, %error, "layers stay as they are")
                }
                Err(error) => {
                    tracing::warn!(folder = %served.part.folder, shard = served.part.number, %error, "a look at layers ended early")
                }
            }
        }
    }

    /// A shard that is about to be served: with the layers that the same records have here in other files, from before a merge, so
    /// that answers do not become slower with it, and those files answer until then; or with those that it had when the worker stopped.
    pub(super) async fn carry_layers(&self, asked: &Asked, store: Store) -> Served {
        let mut served = Served::new(asked, store);
        let Some(before) = self.served_before(asked) else {
            if let Some(size) = self.size_before(asked) {
                return self.carry_size(served, size).await;
            }
            // Those that a process before this one made here: its load was no other.
            let size = served.store.load().inspect().map_or(0.0, |inspection| inspection.size_set);
            let level = served.dial.level_of(size);
            if level > 0 {
                served.dial.carry(level);
                served.dial.explain("the layers that it had when the worker was started".to_string());
            }
            return served;
        };
        let level = served.dial.level_of(before.dial.now());
        match self.make_layers(&served, Some(&before), level).await {
            Ok(store) => {
                served.store = ArcSwap::from_pointee(store);
                served.dial.carry(level);
            }
            Err(error) => {
                tracing::debug!(folder = %served.part.folder, shard = served.part.number, %error, "layers are made anew after a merge");
            }
        }
        served
    }

    async fn make_layers(&self, served: &Served, before: Option<&Served>, level: u32) -> Result<Store> {
        let size = served.dial.size(level);
        self.kept.grow(served.id, (size * served.part.input_bytes as f64) as u64)?;
        let _turn = self.turns.layering.acquire().await.map_err(|_| Error::closed("the worker is stopping"))?;
        let (path, before) = (self.kept.path(served.id), before.map(|before| before.store.load_full()));
        let (kept, id, none) = (Arc::clone(&self.kept), served.id, served.dial.size(0));
        let tuned = forebay_runtime::run_behind(move || {
            before.map_or(Ok(()), |before| before.hand_asked_to(&path))?;
            tune_within(&kept, id, &path, size, none)
        });
        match tuned.await.ok_or_else(|| Error::internal("the making of layers ended early"))?? {
            (store, _, true) => Ok(store),
            (.., false) => Err(Error::retry("the layers take more than there is room for")),
        }
    }

    /// The same for a shard with records of others: as much is stored for them as was.
    async fn carry_size(&self, mut served: Served, size: f64) -> Served {
        let level = served.dial.level_of(size);
        match self.make_layers(&served, None, level).await {
            Ok(store) => {
                served.store = ArcSwap::from_pointee(store);
                served.dial.carry(level);
                served.dial.explain("the size that its records had in the shards before".to_string());
            }
            Err(error) => {
                tracing::debug!(folder = %served.part.folder, shard = served.part.number, %error, "a new shard has no layers yet");
            }
        }
        served
    }

    /// The size that this worker kept the records of a new shard at in the shards that it was cut out of; none where it had none of these.
    fn size_before(&self, asked: &Asked) -> Option<f64> {
        let (log, after) = (asked.manifest.dataset.before.last()?, asked.manifest.dataset.map());
        let served = self.served.lock();
        let is_of = |served: &&Arc<Served>| {
            let is_log = |place: &LogPlace| place.log == *log;
            served.part.folder == *asked.folder()
                && served.log.as_ref().is_some_and(|of| of.is_of(asked.manifest.id.mount, is_log))
        };
        let before: Vec<&Arc<Served>> = served.values().filter(is_of).collect();
        let map = before.first()?.part.manifest.dataset.map();
        let from = map.recut(&after).ok()?.into_iter().nth(asked.number as usize)?;
        let kept = from.iter().filter_map(|share| {
            let of = before.iter().filter(|served| served.part.number == share.shard);
            let grown = of.max_by(|a, b| a.dial.now().total_cmp(&b.dial.now()))?;
            Some(KeptAt { size: grown.dial.now(), bytes: share.part * grown.part.input_bytes as f64 })
        });
        start(&kept.collect::<Vec<_>>())
    }

    /// The same shard of the same log in other files, if it is served; where there are several, the one that has grown most.
    pub(super) fn served_before(&self, asked: &Asked) -> Option<Arc<Served>> {
        let (place, mount) = (asked.log()?, asked.manifest.id.mount);
        let served = self.served.lock();
        let is_it = |served: &&Arc<Served>| served.log.as_ref().is_some_and(|log| log.is_of(mount, |of| *of == place));
        served.values().filter(is_it).max_by(|a, b| a.dial.now().total_cmp(&b.dial.now())).cloned()
    }
}

/// Makes or drops layers, or goes to the size `otherwise` where they take more than was presumed and than there is room for: what was
/// reserved is what the size says, and files have heads. Whether they came.
fn tune_within(kept: &Kept, id: u128, path: &std::path::Path, size: f64, otherwise: f64) -> Result<(Store, u64, bool)> {
    let (store, bytes) = tune(path, size)?;
    if kept.grow(id, bytes).is_ok() {
        return Ok((store, bytes, true));
    }
    drop(store);
    let (store, bytes) = tune(path, otherwise)?;
    Ok((store, bytes, false))
}

/// Makes or drops layers with one thread, beside those who answer.
fn tune(path: &std::path::Path, size: f64) -> Result<(Store, u64)> {
    let writer = Store::open_to_change(path)?;
    writer.tune_with(size, 1)?;
    let store = Store::open(path)?;
    store.adopt_verified(&writer);
    writer.close()?;
    let bytes = store.inspect()?.bytes;
    Ok((store, bytes))
}
