//! Slices that questions fill by what they compute anyway, and the thread that writes the full ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_shard::{LayerId, Shard};
use forebay_types::{Error, Result};
use parking_lot::{Condvar, Mutex};

use super::LayerChange;
use crate::store::Store;

/// How often the sealer looks for slices that are full.
const PERIOD: Duration = Duration::from_millis(100);
/// How long it waits after it failed: a disk that is full now may be full for a while.
const PERIOD_AFTER_ERROR: Duration = Duration::from_secs(5);

impl Store {
    /// Begins to fill slices from what questions compute anyway (BlowFish, section 3.1), in each part that can have them; they
    /// are used as far as they are filled. [`Self::seal_filled`], or a [`Sealer`], writes the full ones.
    pub fn fill_layers(&self, ids: &[LayerId]) -> Result<()> {
        let view = self.view.load_full();
        for &id in ids {
            let begun: Vec<Result<()>> = view.shards.iter().map(|mapped| mapped.shard.begin_filling(id)).collect();
            // Parts differ in their number of slices, and in what they have.
            if begun.iter().all(Result::is_err) {
                begun.into_iter().next().unwrap_or(Ok(()))?;
            }
        }
        Ok(())
    }

    /// Writes the slices that are full by now, and says which. One that can't be written does not keep others from it; the first
    /// error is returned then.
    pub fn seal_filled(&self) -> Result<Vec<LayerId>> {
        let mut sealed = BTreeSet::new();
        self.change_layers(|layers, view| {
            let mut outcome = Ok(());
            for (place, mapped) in view.shards.iter().enumerate() {
                let named: BTreeSet<LayerId> = layers.files(place).layer_ids().collect();
                for id in filled(&mapped.shard).filter(|id| !named.contains(id)) {
                    match seal(&mapped.shard, place, id, layers) {
                        Ok(true) => _ = sealed.insert(id),
                        Ok(false) => {}
                        Err(error) => outcome = outcome.and(Err(error)),
                    }
                }
            }
            outcome
        })?;
        Ok(sealed.into_iter().collect())
    }
}

/// The slices that have all their values.
fn filled(shard: &Shard) -> impl Iterator<Item = LayerId> {
    shard.layers().into_iter().filter(|layer| layer.filled >= 1.0).map(|layer| layer.id)
}

/// Writes a slice of a part that questions have filled; it takes the place of what was filled. False while values are missing.
fn seal(shard: &Shard, place: usize, id: LayerId, layers: &mut LayerChange<'_>) -> Result<bool> {
    let Some(bytes) = shard.seal(id) else { return Ok(false) };
    layers.add(place, id, &bytes, |part| shard.verify_layer(part))?;
    Ok(true)
}

/// A thread that writes slices as soon as questions have filled them. It ends with this. What it can't write it says in the log, and
/// tries again.
pub struct Sealer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Sealer {
    /// Starts it.
    pub fn start(store: Arc<Store>) -> Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (flag, stopped) = (stop.clone(), stop.clone());
        let work = move || loop {
            let outcome = store.seal_filled();
            let mut wait = PERIOD;
            if let Err(error) = &outcome {
                tracing::warn!(%error, "layers could not be sealed");
                wait = PERIOD_AFTER_ERROR;
            }
            let mut stop = flag.0.lock();
            if !*stop {
                flag.1.wait_for(&mut stop, wait);
            }
            if *stop {
                return outcome.map(drop);
            }
        };
        let thread = std::thread::Builder::new().name("shard-sealer".to_string()).spawn(work)?;
        Ok(Self { stop: stopped, thread: Some(thread) })
    }

    /// Ends it, and says what went wrong the last time that it looked.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| Err(Error::internal("the thread that seals layers failed"))),
            None => Ok(()),
        }
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "layers could not be sealed");
        }
    }
}
