//! Shards that are served: compressed, searchable parts of datasets in shared storage.
//!
//! Owns: the shards that are here (files below the data folder, which survive a restart), bringing them and making room for
//! them, a queue for each, the layers that each is kept with here and what is ordered of them, and answering for those that are
//! asked too rarely to be brought.
//!
//! Never does: keep the only copy of anything, but for changes of datasets that are to have it so, for seconds and beside another worker.
//! Shared storage has the base of each shard and the log of what was changed since; what is derived from them here may go at any time.
//!
//! Start with [`Shards::ask`].

mod answer;
mod bring;
mod budget;
mod changes;
mod claims;
mod dial;
mod far;
mod folder;
mod garbage;
mod lanes;
mod layers;
mod log;
mod navigate;
mod newer;
mod orders;
mod repair;
mod served;
mod spent;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_metrics::{Histogram, Kinds, table};
use forebay_placement::rank;
use forebay_protocol::{DatasetId, ShardState};
use forebay_shard_store::{Dataset, DatasetShard, LogPlace};
use forebay_types::{Error, Key, MountId, Result, RouteKey};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::background::Background;
use crate::cluster::Cluster;
use crate::origin::Origin;
use crate::single_flight::SingleFlight;
use crate::write::Writes;
pub(crate) use answer::Asking;
use answer::Questions;
use changes::{Move, moved};
use claims::Claims;
pub(crate) use claims::look_after;
use far::{FAR_MAX, Far};
use folder::Kept;
use lanes::Queued;
use log::Told;
use lru::LruCache;
pub(crate) use navigate::navigate;
use repair::Copies;
use served::Served;

/// Manifests that are remembered.
const MANIFESTS_MAX: usize = 256;
/// Shards that are brought here at a time: each is many requests.
const BROUGHT_AT_ONCE: usize = 2;

/// When it makes sense to ask again for one that is on its way.
const BROUGHT_SOON: Duration = Duration::from_secs(1);

/// The shards of a worker.
pub(crate) struct Shards {
    /// By the hash of what they are made of.
    served: Mutex<HashMap<u128, Arc<Served>>>,
    kept: Arc<Kept>,
    /// Those that are answered from afar, by the same hash.
    far: Mutex<LruCache<u128, Arc<Far>>>,
    known: Known,
    turns: Turns,
    garbage: Garbage,
    told: Told,
    claims: Claims,
    writes: Arc<Writes>,
    origin: Arc<Origin>,
    cluster: Arc<Cluster>,
    background: Arc<Background>,
    /// How long calls took that were answered.
    seconds: Kinds<Histogram>,
}

/// Manifests that were read.
struct Known {
    manifests: Mutex<LruCache<DatasetId, Arc<Manifest>>>,
    /// The latest one that is known of each log.
    newest: Mutex<LruCache<(MountId, String), Arc<Manifest>>>,
    /// The datasets that have other shards now, by their mount, folder and log of before.
    moved: Mutex<LruCache<(MountId, String, String), Arc<Manifest>>>,
}

/// What is done once for everyone who waits, and what is done by few at a time.
struct Turns {
    opening: SingleFlight<u128, ()>,
    bringing: SingleFlight<u128, ()>,
    reading: SingleFlight<DatasetId, ()>,
    /// Shards that are being merged.
    merging: SingleFlight<u128, ()>,
    /// Datasets whose shards give way to others, by their logs: when the last who tried it began, and what came of it.
    moving: SingleFlight<(MountId, String), (Instant, Result<Move>)>,
    /// When the last look into the log of each began.
    following: SingleFlight<u128, Instant>,
    room: Semaphore,
    /// Calls of many bytes whose changes are read.
    parsing: Arc<Semaphore>,
    copies: Copies,
    /// One shard's layers are made at a time, or one is merged.
    layering: Arc<Semaphore>,
}

/// Objects that no manifest names.
struct Garbage {
    /// When it was looked for in the folders of datasets.
    collected: Mutex<LruCache<(MountId, String), Instant>>,
    after: Duration,
}

/// What the shards of a worker are held to.
pub(crate) struct Limits {
    /// Bytes of files.
    pub(crate) bytes_max: u64,
    /// How long objects stay that no manifest names.
    pub(crate) garbage_after: Duration,
    /// Bytes of other workers' shards that are copied a second.
    pub(crate) copy_bytes_per_sec: u64,
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

    /// Where what was changed in it since is; none where nobody changes it.
    fn log(&self) -> Option<LogPlace> {
        let folder = self.folder().as_str().trim_end_matches('/').to_string();
        self.manifest.dataset.log.clone().map(|log| LogPlace { folder, log, shard: self.number })
    }
}

impl Shards {
    /// Keeps files below `folder`, and what is changed and not in shared storage yet below `claims`; what a process before this one left there
    /// is found again.
    pub(crate) fn open(
        (folder, claims): (&std::path::Path, &std::path::Path),
        limits: Limits,
        writes: Arc<Writes>,
        origin: Arc<Origin>,
        cluster: Arc<Cluster>,
        background: Arc<Background>,
    ) -> Result<Self> {
        let manifests = std::num::NonZeroUsize::new(MANIFESTS_MAX).expect("not 0");
        let far = std::num::NonZeroUsize::new(FAR_MAX).expect("not 0");
        let Limits { bytes_max, garbage_after, copy_bytes_per_sec } = limits;
        Ok(Self {
            served: Mutex::default(),
            kept: Arc::new(Kept::open(folder, bytes_max)?),
            far: Mutex::new(LruCache::new(far)),
            known: Known::new(manifests),
            turns: Turns {
                opening: SingleFlight::default(),
                bringing: SingleFlight::default(),
                reading: SingleFlight::default(),
                merging: SingleFlight::default(),
                moving: SingleFlight::default(),
                following: SingleFlight::default(),
                room: Semaphore::new(BROUGHT_AT_ONCE),
                parsing: Arc::new(Semaphore::new(changes::PARSED_AT_ONCE)),
                copies: Copies::new(copy_bytes_per_sec),
                layering: Arc::new(Semaphore::new(1)),
            },
            garbage: Garbage { collected: Mutex::new(LruCache::new(manifests)), after: garbage_after },
            told: Told::default(),
            claims: Claims::open(claims)?,
            writes,
            origin,
            cluster,
            background,
            seconds: Kinds::new(&table::WORKER_SHARD_SECONDS, &["get", "search", "change"]),
        })
    }

    /// Answers questions about a shard, each with an answer of its own, and says how long its queue is.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        id: DatasetId,
        number: u32,
        within: Duration,
        asking: Asking,
    ) -> Result<(Vec<u8>, Queued)> {
        let (came, deadline) = (forebay_runtime::now(), forebay_runtime::time::instant() + within);
        let asked = self.asked(&id, number).await?;
        let questions = asking.questions(&asked.manifest.dataset.columns)?;
        let kind = if questions.are_gets { "get" } else { "search" };
        let answered = match self.at_hand(&asked, &questions, deadline)? {
            Some(answered) => answered,
            None => Box::pin(self.ask_in_turn(Arc::new(asked), questions, came, deadline)).await?,
        };
        self.count(kind, came);
        Ok(answered)
    }

    async fn ask_in_turn(
        self: &Arc<Self>,
        asked: Arc<Asked>,
        questions: Questions,
        came: Instant,
        deadline: forebay_runtime::time::Instant,
    ) -> Result<(Vec<u8>, Queued)> {
        if let Some(answered) = self.ask_far(&asked, came, deadline, &questions).await? {
            return Ok(answered);
        }
        let served = self.here_within(&asked, deadline).await?;
        let records = || served.store.load().records().map(|columns| questions.records(columns)).unwrap_or_default();
        let late = || Error::retry("shared storage did not say in time what was changed in the shard");
        let catch_up = self.catch_up(&served, came, records);
        forebay_runtime::time::timeout_at(deadline, catch_up).await.map_err(|_| late())??;
        // What had to wait for a look needs no thread for that.
        let answered = match served.answer_at_hand(&questions, deadline) {
            Some(result) => result,
            None => served.answer(questions, deadline).await,
        };
        answered.map_err(|error| self.failed(&served, error))
    }

    fn count(&self, kind: &str, came: Instant) {
        if let Some(seconds) = self.seconds.of(kind) {
            seconds.record(came.elapsed());
        }
    }

    /// Another worker is about to add an object to a log.
    pub(crate) fn coming(&self, mount: MountId, key: &Key, records: Vec<u64>) {
        self.told.coming(mount, key, records);
    }

    /// An object has changed, or may have where nobody knows that it `is_there`: one of a log is looked for before anything is answered without
    /// it, and a manifest in time.
    pub(crate) fn note_change(self: &Arc<Self>, mount: MountId, key: &Key, is_there: bool) {
        self.told.said(mount, key, is_there);
        self.note_manifest(mount, key);
    }

    /// Compresses what was changed in a shard into its files, for all workers; done when shared storage has them. Of a dataset that is about
    /// to have other shards nothing is compressed: it has them then.
    pub(crate) async fn merge(self: &Arc<Self>, id: DatasetId, number: u32, within: Duration) -> Result<()> {
        let deadline = forebay_runtime::time::instant() + within;
        let asked = self.asked(&id, number).await?;
        if asked.manifest.may_move() {
            let late = || Error::retry("the shards give way to others, which goes on");
            let moving = self.move_on(&asked.manifest);
            if forebay_runtime::time::timeout_at(deadline, moving).await.map_err(|_| late())?? == Move::Done {
                return Ok(());
            }
        }
        let (asked, served) = self.served_within(&id, number, deadline).await?;
        let (merged, done) = tokio::sync::oneshot::channel();
        let shards = Arc::clone(self);
        // It goes on when who asked goes away.
        let merging = async move {
            let _ = merged.send(shards.merge_log(&asked, &served).await.map(drop));
        };
        self.background.spawn(forebay_trace::within(forebay_trace::current(), merging));
        let late = || Error::retry("the merge takes longer, and goes on");
        let done = forebay_runtime::time::timeout_at(deadline, done).await.map_err(|_| late())?;
        done.map_err(|_| Error::closed("the worker is stopping"))?
    }

    /// Nothing that is known of logs now is answered by without a look: somebody has changed shared storage past the workers.
    pub(crate) fn refresh(&self) {
        self.told.untold();
    }

    /// The same where this worker was not told of changes, nor of those that are on their way.
    pub(crate) fn refresh_all(&self) {
        self.told.anything();
    }

    async fn served_within(
        self: &Arc<Self>,
        id: &DatasetId,
        number: u32,
        deadline: forebay_runtime::time::Instant,
    ) -> Result<(Arc<Asked>, Arc<Served>)> {
        let asked = Arc::new(self.asked(id, number).await?);
        let served = self.here_within(&asked, deadline).await?;
        Ok((asked, served))
    }

    async fn here_within(self: &Arc<Self>, asked: &Arc<Asked>, deadline: forebay_runtime::time::Instant) -> Result<Arc<Served>> {
        let late = || Error::retry("the shard is not here yet: it is being brought from shared storage").after(BROUGHT_SOON);
        let served = forebay_runtime::time::timeout_at(deadline, self.served(asked)).await.map_err(|_| late())??;
        self.place(&served, asked);
        Ok(served)
    }

    /// The shards of a dataset that are here, in order of their numbers.
    pub(crate) async fn of(&self, id: &DatasetId) -> Result<Vec<ShardState>> {
        let manifest = self.manifest(id).await?;
        let newest = |number: u32| self.newest_of(Arc::clone(&manifest), number).ids[number as usize];
        let ids: Vec<u128> = (0u32..).take(manifest.ids.len()).map(newest).collect();
        let (served, far) = (self.served.lock(), self.far.lock());
        let state = |number: u32, id: &u128| match served.get(id) {
            Some(served) => {
                let claim = served.log.as_ref().and_then(|log| self.claims.told(&log.name));
                Some(ShardState { claim, ..served.state(number) })
            }
            None => far.peek(id).map(|far| far.state(number)),
        };
        Ok((0u32..).zip(&ids).filter_map(|(number, id)| state(number, id)).collect())
    }

    /// Calls under way or waiting, of all shards.
    pub(crate) fn queue(&self) -> u64 {
        self.served.lock().values().map(|served| u64::from(served.lanes.calls())).sum()
    }

    /// How many logs have changes on this worker's disk that shared storage may not have, and their bytes.
    pub(crate) fn on_two_disks(&self) -> (usize, u64) {
        self.claims.held()
    }

    /// How many shards this worker writes under a claim, the bytes that shared storage has not of them, and how long it has not the first.
    pub(crate) fn claimed(&self) -> (u64, u64, Duration) {
        self.claims.behind()
    }

    /// Calls that are under way end; nothing begins any more.
    pub(crate) fn stop(&self) {
        self.claims.stop();
        self.turns.room.close();
        self.turns.layering.close();
    }

    async fn asked(&self, id: &DatasetId, number: u32) -> Result<Asked> {
        let manifest = self.manifest(id).await?;
        if self.moved_to(&manifest).is_some() {
            return Err(moved(&id.folder));
        }
        let manifest = self.newest_of(manifest, number);
        let count = manifest.ids.len();
        if number as usize >= count {
            return Err(Error::invalid(format!("{}: it has {count} shards, and no number {number}", id.folder)));
        }
        Ok(Asked { manifest, number })
    }

    /// The size that this worker keeps a shard at, as a part of the input, by its place among those who hold it; none where it is not
    /// one of them.
    fn size_of(&self, asked: &Asked) -> Option<f64> {
        let place = self.place_of(&asked.manifest.id, asked.number)?;
        asked.manifest.dataset.replicas.get(place).copied()
    }

    /// This worker's place among those who hold a shard.
    fn place_of(&self, id: &DatasetId, number: u32) -> Option<usize> {
        let workers: Vec<_> = self.cluster.view().placeable().map(|worker| worker.id).collect();
        let order = rank(RouteKey::of(id.mount, &id.folder, number), &workers);
        order.iter().position(|worker| *worker == self.cluster.id)
    }
}
