//! Shards that are served: compressed, searchable parts of datasets in shared storage.
//!
//! Owns: the shards that are here (files below the data folder, which survive a restart), bringing them and making room for
//! them, a queue for each, and the layers that each is kept with here.
//!
//! Never does: change a dataset. Shared storage has the base of each shard; what is derived from it here may go at any time.
//!
//! Start with [`Shards::ask`].

mod answer;
mod bring;
mod dial;
mod folder;
mod lanes;
mod layers;
mod navigate;
mod served;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_metrics::{Histogram, Kinds, table};
use forebay_placement::rank;
use forebay_protocol::{DatasetId, ShardState};
use forebay_shard_store::{Dataset, DatasetShard};
use forebay_types::{Error, Key, Result, RouteKey};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::background::Background;
use crate::cluster::Cluster;
use crate::origin::Origin;
use crate::single_flight::SingleFlight;
use folder::Kept;
use lru::LruCache;
pub(crate) use navigate::navigate;
use served::Served;

/// Manifests that are remembered.
const MANIFESTS_MAX: usize = 256;
/// Shards that are brought here at a time: each is many requests.
const BROUGHT_AT_ONCE: usize = 2;

/// The shards of a worker.
pub(crate) struct Shards {
    /// By the hash of what they are made of.
    served: Mutex<HashMap<u128, Arc<Served>>>,
    kept: Arc<Kept>,
    bringing: SingleFlight<u128, ()>,
    reading: SingleFlight<DatasetId, ()>,
    room: Semaphore,
    /// One shard's layers are made at a time.
    layering: Arc<Semaphore>,
    manifests: Mutex<LruCache<DatasetId, Arc<Manifest>>>,
    origin: Arc<Origin>,
    cluster: Arc<Cluster>,
    background: Arc<Background>,
    /// How long calls took that were answered.
    seconds: Kinds<Histogram>,
}

/// A dataset's manifest, with the names that its shards are kept under here.
struct Manifest {
    id: DatasetId,
    dataset: Dataset,
    ids: Vec<u128>,
}

/// One shard of a dataset that is asked.
struct Asked {
    manifest: Arc<Manifest>,
    number: u32,
}

impl Asked {
    fn id(&self) -> u128 {
        self.manifest.ids[self.number as usize]
    }

    fn shard(&self) -> &DatasetShard {
        &self.manifest.dataset.shards[self.number as usize]
    }

    fn folder(&self) -> &Key {
        &self.manifest.id.folder
    }
}

impl Shards {
    /// Keeps up to `bytes_max` bytes of files below `folder`; what a process before this one left there is found again.
    pub(crate) fn open(
        folder: &std::path::Path,
        bytes_max: u64,
        origin: Arc<Origin>,
        cluster: Arc<Cluster>,
        background: Arc<Background>,
    ) -> Result<Self> {
        let manifests = std::num::NonZeroUsize::new(MANIFESTS_MAX).expect("not 0");
        Ok(Self {
            served: Mutex::default(),
            kept: Arc::new(Kept::open(folder, bytes_max)?),
            bringing: SingleFlight::default(),
            reading: SingleFlight::default(),
            room: Semaphore::new(BROUGHT_AT_ONCE),
            layering: Arc::new(Semaphore::new(1)),
            manifests: Mutex::new(LruCache::new(manifests)),
            origin,
            cluster,
            background,
            seconds: Kinds::new(&table::WORKER_SHARD_SECONDS, &["get", "search"]),
        })
    }

    /// Answers questions about a shard, one JSON object a line, with one line each; and says how many other calls it has.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        id: DatasetId,
        number: u32,
        within: Duration,
        questions: Bytes,
    ) -> Result<(Vec<u8>, u32)> {
        let (began, deadline) = (forebay_runtime::now(), forebay_runtime::time::instant() + within);
        let questions = answer::split(&questions)?;
        let kind = if questions.are_gets { "get" } else { "search" };
        let asked = Arc::new(self.asked(&id, number).await?);
        let late = || Error::retry("the shard is not here yet: it is being brought from shared storage");
        let served = forebay_runtime::time::timeout_at(deadline, self.served(&asked)).await.map_err(|_| late())??;
        self.start_at(&served, self.size_of(&asked));
        let result = served.answer(questions, deadline).await?;
        if let Some(seconds) = self.seconds.of(kind) {
            seconds.record(began.elapsed());
        }
        Ok((result, served.lanes.queue()))
    }

    /// The shards of a dataset that are here, in order of their numbers.
    pub(crate) async fn of(&self, id: &DatasetId) -> Result<Vec<ShardState>> {
        let manifest = self.manifest(id).await?;
        let served = self.served.lock();
        let numbered = (0u32..).zip(&manifest.ids);
        Ok(numbered.filter_map(|(number, id)| Some(served.get(id)?.state(number))).collect())
    }

    /// Calls under way or waiting, of all shards.
    pub(crate) fn queue(&self) -> u64 {
        self.served.lock().values().map(|served| u64::from(served.lanes.queue())).sum()
    }

    /// Calls that are under way end; nothing begins any more.
    pub(crate) fn stop(&self) {
        self.room.close();
        self.layering.close();
    }

    async fn asked(&self, id: &DatasetId, number: u32) -> Result<Asked> {
        let manifest = self.manifest(id).await?;
        let count = manifest.ids.len();
        if number as usize >= count {
            return Err(Error::invalid(format!("{}: it has {count} shards, and no number {number}", id.folder)));
        }
        Ok(Asked { manifest, number })
    }

    /// The size that this worker keeps a shard at, as a part of the input, by its place among those who hold it; none where it is not
    /// one of them.
    fn size_of(&self, asked: &Asked) -> Option<f64> {
        let workers: Vec<_> = self.cluster.view().placeable().map(|worker| worker.id).collect();
        let order = rank(RouteKey::of(asked.manifest.id.mount, asked.folder(), asked.number), &workers);
        let place = order.iter().position(|worker| *worker == self.cluster.id)?;
        asked.manifest.dataset.replicas.get(place).copied()
    }
}
