use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_shard::LayerId;
use forebay_types::{Error, Result};
use parking_lot::{Condvar, Mutex};

use super::Store;

/// How often the sealer looks for slices that are full.
const PERIOD: Duration = Duration::from_millis(100);

impl Store {
    /// Begins to fill slices from what questions compute anyway (BlowFish, section 3.1); they are used as far as they are
    /// filled. [`Self::seal_filled`], or a [`Sealer`], writes the full ones.
    pub fn fill_layers(&self, ids: &[LayerId]) -> Result<()> {
        let view = self.view.load_full();
        for mapped in &view.shards {
            ids.iter().try_for_each(|&id| mapped.shard.begin_filling(id))?;
        }
        Ok(())
    }

    /// Writes the slices that are full by now, and says which.
    pub fn seal_filled(&self) -> Result<Vec<LayerId>> {
        let view = self.view.load_full();
        let known = {
            let manifest = self.writer()?.manifest.lock();
            let files = manifest.shards.iter().flat_map(|shard| &shard.layers);
            files.filter_map(super::tune::layer_of).collect::<std::collections::BTreeSet<_>>()
        };
        let mut sealed = Vec::new();
        for layer in view.shards.iter().flat_map(|mapped| mapped.shard.layers()) {
            if layer.filled >= 1.0 && !known.contains(&layer.id) && !sealed.contains(&layer.id) && self.seal(layer.id)? {
                sealed.push(layer.id);
            }
        }
        Ok(sealed)
    }
}

/// A thread that writes slices as soon as questions have filled them. It ends with this.
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
            store.seal_filled()?;
            let mut stop = flag.0.lock();
            if !*stop {
                flag.1.wait_for(&mut stop, PERIOD);
            }
            if *stop {
                return Ok(());
            }
        };
        let thread = std::thread::Builder::new().name("shard-sealer".to_string()).spawn(work)?;
        Ok(Self { stop: stopped, thread: Some(thread) })
    }

    /// Ends it, and says what went wrong in it.
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
