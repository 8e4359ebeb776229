//! Datasets that stay open between requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_shard_store::DatasetOrders;
use forebay_shards::Shards;
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use lru::LruCache;
use parking_lot::Mutex;

use super::visit::MayRead;
use crate::asking::OwnCluster;

/// Datasets that are open at a time.
const OPENED_MAX: usize = 64;
/// How long a dataset is taken as it is without another look for a later manifest.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Datasets that were asked before: what is known of their workers' queues is of use to the next request.
pub(super) struct Opened {
    cluster: Arc<OwnCluster>,
    known: Mutex<LruCache<ForebayPath, Known>>,
}

#[derive(Clone)]
struct Known {
    shards: Shards,
    looked: Instant,
}

impl Opened {
    pub(super) fn new(cluster: Arc<OwnCluster>) -> Self {
        let known = Mutex::new(LruCache::new(NonZeroUsize::new(OPENED_MAX).expect("not 0")));
        Self { cluster, known }
    }

    /// What asks for all datasets.
    pub(super) async fn client(&self) -> Result<&Client> {
        self.cluster.client().await
    }

    /// The dataset that a caller may read, at its latest manifest as the mount's rule has it, at most a second ago. `NotFound` when
    /// there is none.
    pub(super) async fn open(&self, may: &MayRead) -> Result<Shards> {
        let (client, path) = (self.client().await?, may.dataset());
        let known = self.known.lock().get(path).cloned();
        if let Some(known) = &known
            && known.looked.elapsed() < LOOK_AFTER
        {
            return Ok(known.shards.clone());
        }
        let opened = Shards::open(client, path).await?;
        // Another one may have been put in its place under the same number, and another mount under the same name.
        let shards = known.map(|known| known.shards).filter(|shards| shards.id() == opened.id()).unwrap_or(opened);
        Ok(self.keep(path, shards))
    }

    /// Has the dataset's next manifest order something else of its replicas, and gives the dataset at that one.
    pub(super) async fn order(&self, may: &MayRead, change: impl Fn(&mut DatasetOrders) + Send) -> Result<Shards> {
        let (client, path) = (self.client().await?, may.dataset());
        let shards = Shards::set_orders(client, path, change).await?;
        Ok(self.keep(path, shards))
    }

    /// Has the dataset's next manifest say how often it is refreshed, and gives the dataset at that one.
    pub(super) async fn refresh_every(&self, may: &MayRead, every: Option<Duration>) -> Result<Shards> {
        let (client, path) = (self.client().await?, may.dataset());
        let shards = Shards::set_refresh(client, path, every).await?;
        // The worker that is to look at the objects hears of it.
        shards.status().await?;
        Ok(self.keep(path, shards))
    }

    fn keep(&self, path: &ForebayPath, shards: Shards) -> Shards {
        let known = Known { shards: shards.clone(), looked: forebay_runtime::now() };
        self.known.lock().put(path.clone(), known);
        shards
    }

    /// What a question has failed with says whether the dataset is to be looked at anew: what its manifest names may be gone.
    pub(super) fn failed(&self, may: &MayRead, error: &Error) {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) {
            self.known.lock().pop(may.dataset());
        }
    }
}
