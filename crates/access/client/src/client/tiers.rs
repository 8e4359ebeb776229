//! What workers hold: brought there, kept there, dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::{Accesses, AdminRequest, Departed, Held};
use forebay_types::{
    ErrorKind, ForebayPath, ObjectVersion, OperationId, PageRun, Result, RouteKey, SegmentId, Standing, WorkerId,
};
use futures::TryStreamExt;

use super::Client;
use crate::prefetch::{Loaded, Prefetch, ReadAt, SegmentPlace};
use crate::read::Planned;

impl Client {
    /// Fetches what a plan is about to read, in this order, a bounded number of bytes ahead of the reads of the same
    /// operation: each [`Client::read`] with it moves the window. Dropping the answer cancels what is under way. What
    /// can't be prefetched is read on demand, so there is no error here. Among the plans of all clients it stands as one that was made now.
    pub fn prefetch(&self, operation: OperationId, plan: Planned) -> Prefetch {
        self.prefetch_in_turn(operation, Self::standing(0), plan)
    }

    /// The same for a plan that is part of something larger: it stands among those of all clients as that does.
    pub fn prefetch_in_turn(&self, operation: OperationId, standing: Standing, plan: Planned) -> Prefetch {
        self.rooms.prefetches.begin(operation, standing, plan, u64::MAX)
    }

    /// As [`Self::prefetch`], with no more than so many bytes ahead of the reads: for a reader of whom there may be many.
    pub fn prefetch_near(&self, operation: OperationId, plan: Planned, ahead_bytes: u64) -> Prefetch {
        self.rooms.prefetches.begin(operation, Self::standing(0), plan, ahead_bytes)
    }

    /// What a plan counts for that is made now. Those of a higher priority go first, then those that were made before.
    pub fn standing(priority: i32) -> Standing {
        Standing { priority, began_ms: forebay_runtime::unix_ms() }
    }

    /// Brings these versions into the tiers, whole, by what all others leave of shared storage's bandwidth; with `keep` they stay there. `progress` gets the
    /// bytes done so far, of all bytes of the versions. Goes on past objects that fail; then fails with the first
    /// one's error and how many there were, so that success means that all is there.
    pub async fn load(&self, versions: Vec<ObjectVersion>, keep: bool, progress: impl Fn(u64) + Send + Sync) -> Result<Loaded> {
        self.rooms.prefetches.load(self.operation(), versions, keep, progress).await
    }

    /// Brings these ranges of versions into the tiers, as [`Self::load`] does all of them. `progress` gets the bytes of ranges done so far.
    pub async fn load_ranges(&self, plan: Planned, progress: impl Fn(u64) + Send + Sync) -> Result<Loaded> {
        self.rooms.prefetches.load_ranges(self.operation(), plan, false, progress).await
    }

    /// Drops these versions from the tiers of all workers, kept ones too; gives the bytes that were given back.
    pub async fn free(&self, versions: impl AsRef<[ObjectVersion]>) -> Result<u64> {
        self.rooms.prefetches.free(versions.as_ref()).await
    }

    /// Sets or clears the administrator's pin on what is held of these versions.
    pub async fn keep(&self, versions: impl AsRef<[ObjectVersion]>, keep: bool) -> Result<()> {
        self.rooms.prefetches.keep(versions.as_ref(), keep).await
    }

    /// Lifts the administrator's pin of exactly this path: what is held of objects below it, and below no other pin, may be evicted again.
    /// `NotFound` when there is no such pin. An error after that says that the pin is lifted and what is held stays until it is freed.
    pub async fn unpin(&self, path: &ForebayPath) -> Result<()> {
        self.control(AdminRequest::PinRemove { path: path.clone() }).await?;
        match self.let_go(path).await {
            // Who administers this mount alone is denied by a worker of the release before. It lets go by itself of what it has fetched since its start.
            Err(error) if error.kind() == ErrorKind::Denied => Ok(()),
            let_go => let_go.map_err(|error| {
                error.context(format!(
                    "{path} is pinned no longer, but what the tiers have of it stays until `forebay free {path}`"
                ))
            }),
        }
    }

    /// Keeps what is below a path no longer, where no pin is for it.
    async fn let_go(&self, path: &ForebayPath) -> Result<()> {
        // Not by pins of before: what others have pinned since would be let go, and what was lifted would stay.
        let view = self.refresh_view().await?;
        let mount = self.mount(path.mount()).await?;
        let pins: Vec<_> = view.pins.iter().filter(|pin| pin.mount == mount.id).collect();
        let is_pinned = |version: &ObjectVersion| pins.iter().any(|pin| version.key.as_str().starts_with(pin.prefix.as_str()));
        let mut pages = self.list(path, false).await?;
        while let Some(page) = pages.try_next().await? {
            let versions = page.objects.into_iter().map(|info| info.version);
            let lifted: Vec<_> = versions.filter(|version| !is_pinned(version)).collect();
            if !lifted.is_empty() {
                self.keep(lifted, false).await?;
            }
        }
        Ok(())
    }

    /// What the cluster holds of each version, summed over its segments and all workers, in the same order. A version is
    /// kept when all that is held of it is.
    pub async fn held(&self, versions: impl AsRef<[ObjectVersion]>) -> Result<Vec<Held>> {
        self.rooms.prefetches.held(versions.as_ref()).await
    }

    /// Reads under way at each worker, or waiting; those that don't say so at once are left out.
    pub async fn queue_lengths(&self) -> BTreeMap<WorkerId, u32> {
        self.rooms.routes.queue_lengths().await
    }

    /// Which objects were read and written at a worker since the answer whose `next` is `since`, those of one object of so many: as soon as
    /// there are many, or what there is after `within`. Any number at first; what is accessed from then on is told. `Denied` to who may
    /// not administer everything.
    pub async fn accesses(&self, worker: WorkerId, since: u64, one_in: u32, within: Duration) -> Result<Accesses> {
        self.rooms.prefetches.accesses(worker, since, one_in, within).await
    }

    /// Where each segment of a version is, in their order: which workers hold what of it, and who is asked for it.
    pub async fn segment_places(&self, version: &ObjectVersion) -> Result<Vec<SegmentPlace>> {
        self.rooms.prefetches.segment_places(version).await
    }
}

/// For who schedules data and tasks together: bytes go to, and are read at, the worker that the schedule names rather than
/// where the routing table would look for them.
impl Client {
    /// Brings ranges of one version, (start, length) within segments, into this worker's tiers, after all demand, or `urgent`:
    /// beside it; gives the bytes that it had to fetch. `Retry` when the worker is gone or has no room. All of it is held there until the
    /// operation has read it, for two minutes at most, or until [`Self::ended`].
    pub async fn bring(
        &self,
        (operation, standing): (OperationId, Standing),
        worker: WorkerId,
        version: &ObjectVersion,
        ranges: Vec<(u64, u32)>,
        urgent: bool,
    ) -> Result<u64> {
        self.rooms.prefetches.bring((operation, standing), worker, version, ranges, urgent).await
    }

    /// Tells a worker that an operation reads nothing there any more: what was brought for it is held no longer. `Retry` when the worker is
    /// gone, and all of that with it.
    pub async fn ended(&self, operation: OperationId, worker: WorkerId) -> Result<()> {
        self.rooms.prefetches.ended(operation, worker).await
    }

    /// The workers that a segment of a version is read from, as far as is known here: those that the routing table names, else the first by
    /// hashing. None without workers.
    pub fn routed(&self, version: &ObjectVersion, index: u32) -> Vec<WorkerId> {
        let routes = &self.rooms.routes;
        routes.routed(RouteKey::of(version.mount, &version.key, index), &routes.view.known())
    }

    /// Which of these runs of pages a worker holds whole, in the same order.
    pub async fn present(&self, worker: WorkerId, runs: &[(SegmentId, PageRun)]) -> Result<Vec<bool>> {
        self.rooms.prefetches.present(worker, runs).await
    }

    /// Which pages left a worker's tiers, and which came, since the answer whose `next` is `since`, as soon as there are some, or none after
    /// `within`: so a schedule hears at once that what it brought is not there any more, and of what others brought. Any number at first, to which the answer has `lost`.
    pub async fn departed(&self, worker: WorkerId, since: u64, within: Duration) -> Result<Departed> {
        self.rooms.prefetches.departed(worker, since, within).await
    }

    /// Reads of this operation that begin within these pages ask these workers first. Dropping the answer ends that.
    pub fn read_at(&self, operation: OperationId, places: impl IntoIterator<Item = (SegmentId, PageRun, WorkerId)>) -> ReadAt {
        self.rooms.prefetches.read_at(operation, places)
    }
}
