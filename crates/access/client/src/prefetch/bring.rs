//! What a schedule of data and tasks brings to workers, and where its reads go.

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{Accesses, DataNotice, DataReply, DataRequest, Departed, RANGES_MAX, RUNS_MAX, WantedAccesses, encode};
use forebay_types::{Error, ObjectVersion, OperationId, PageRun, Result, SegmentId, Standing, WorkerId};

use super::{DEADLINE, Prefetches, fetch};
use crate::connect::{Failure, ask, unexpected};
use crate::route::{Kept, Of, Routes};

/// How long what was brought is held at most for the task that reads it, where nobody says that it won't.
const HOLD_MS: u32 = 120_000;

/// For who schedules data and tasks together: bytes go to, and are read at, the worker that the schedule names rather than
/// where the routing table would look for them.
impl Prefetches {
    /// Brings ranges of one version, (start, length) within segments, into this worker's tiers, after all demand, or `urgent`:
    /// beside it; gives the bytes that it had to fetch. `Retry` when the worker is gone or has no room.
    pub(crate) async fn bring(
        &self,
        (operation, standing): (OperationId, Standing),
        worker: WorkerId,
        version: &ObjectVersion,
        ranges: Vec<(u64, u32)>,
        urgent: bool,
    ) -> Result<u64> {
        let link = self.routes.link_to(worker, gone).await?;
        let mut fetched = 0;
        for ranges in ranges.chunks(RANGES_MAX) {
            let (ranges, version) = (ranges.to_vec(), version.clone());
            let request = DataRequest::Prefetch { operation, version, ranges, keep: false, urgent, hold_ms: HOLD_MS, standing };
            fetched += fetch(&link, &request, DEADLINE).await.map_err(Failure::into_error)?;
        }
        Ok(fetched)
    }

    /// Tells a worker that an operation reads nothing there any more: what was brought for it is held no longer. `Retry` when the worker is
    /// gone, and all of that with it.
    pub(crate) async fn ended(&self, operation: OperationId, worker: WorkerId) -> Result<()> {
        let link = self.routes.link_to(worker, gone).await?;
        link.connection.notify(encode(&DataNotice::Ended { operation }))
    }

    /// Which of these runs of pages a worker holds whole, in the same order.
    pub(crate) async fn present(&self, worker: WorkerId, runs: &[(SegmentId, PageRun)]) -> Result<Vec<bool>> {
        let link = self.routes.link_to(worker, gone).await?;
        let mut present = Vec::with_capacity(runs.len());
        for runs in runs.chunks(RUNS_MAX) {
            let request = DataRequest::Present { runs: runs.to_vec() };
            let reply = ask(&link, &request, self.routes.connections.read_deadline()).await;
            let DataReply::Present(some) = reply.map_err(Failure::into_error)? else {
                return Err(unexpected("a worker", "present"));
            };
            present.extend(some);
        }
        if present.len() == runs.len() { Ok(present) } else { Err(unexpected("a worker", "present")) }
    }

    /// What left a worker's tiers, and came into them, since an answer before, whose `next` is `since`, as soon as there is something: for who counts on
    /// what was brought. The first answer has `lost`, as it begins with what is there then.
    pub(crate) async fn departed(&self, worker: WorkerId, since: u64, within: Duration) -> Result<Departed> {
        match self.ask_within(worker, within, |within_ms| DataRequest::Departed { since, within_ms }).await? {
            DataReply::Departed(departed) => Ok(departed),
            _ => Err(unexpected("a worker", "departed")),
        }
    }

    /// Accesses at a worker since an answer before, whose `next` is `since`, as soon as there are many, or those that there are after
    /// `within`. The first answer has none, as it begins with what is accessed then.
    pub(crate) async fn accesses(&self, worker: WorkerId, since: u64, one_in: u32, within: Duration) -> Result<Accesses> {
        let asking = |within_ms| DataRequest::Accesses(WantedAccesses { since, one_in, within_ms });
        match self.ask_within(worker, within, asking).await? {
            DataReply::Accesses(accesses) => Ok(accesses),
            _ => Err(unexpected("a worker", "accesses")),
        }
    }

    /// Asks a worker for what it may take so long to say.
    async fn ask_within(&self, worker: WorkerId, within: Duration, asking: impl FnOnce(u32) -> DataRequest) -> Result<DataReply> {
        let link = self.routes.link_to(worker, gone).await?;
        let request = asking(u32::try_from(within.as_millis()).unwrap_or(u32::MAX));
        let deadline = within.saturating_add(self.routes.connections.read_deadline());
        ask(&link, &request, deadline).await.map_err(Failure::into_error)
    }

    /// Reads of this operation that begin within these pages ask these workers first. Dropping the answer ends that.
    pub(crate) fn read_at(
        &self,
        operation: OperationId,
        places: impl IntoIterator<Item = (SegmentId, PageRun, WorkerId)>,
    ) -> ReadAt {
        let mut by_segment = Of::new();
        for (segment, run, worker) in places {
            by_segment.entry(segment).or_default().push((run, worker));
        }
        let places = Arc::new(by_segment);
        self.routes.places.add(operation, &places);
        ReadAt { routes: Arc::clone(&self.routes), operation, places }
    }
}

fn gone(worker: WorkerId) -> Error {
    Error::retry(format!("worker {worker} is not there: the schedule goes on without it"))
}

/// Where an operation reads, as long as this is kept.
pub struct ReadAt {
    routes: Arc<Routes>,
    operation: OperationId,
    places: Kept,
}

impl Drop for ReadAt {
    fn drop(&mut self) {
        self.routes.places.remove(self.operation, &self.places);
    }
}

impl std::fmt::Debug for ReadAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadAt").field("operation", &self.operation).field("segments", &self.places.len()).finish()
    }
}
