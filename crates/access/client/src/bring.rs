use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_protocol::{ControlCall, ControlReply, ControlRequest, DataReply, DataRequest, MemberRequest};
use forebay_types::{CallerInfo, Error, ObjectVersion, OperationId, PAGE_BYTES, PageRun, Result, SegmentId, Verifier, WorkerId};
use parking_lot::RwLock;

use crate::ask::{Failure, ask};
use crate::client::Client;
use crate::control::unexpected;
use crate::core::Core;

/// Runs of pages that one message asks after at most.
const RUNS_MAX: usize = 20_000;

/// For who schedules data and tasks together: bytes go to, and are read at, the worker that the schedule names rather than
/// where the routing table would look for them.
impl Client {
    /// Brings ranges of one version, (start, length) within segments, into this worker's tiers, after all demand, or `urgent`:
    /// beside it; gives the bytes that it had to fetch. `Retry` when the worker is gone or has no room.
    pub async fn bring(
        &self,
        operation: OperationId,
        worker: WorkerId,
        version: &ObjectVersion,
        ranges: Vec<(u64, u32)>,
        urgent: bool,
    ) -> Result<u64> {
        let request = DataRequest::Prefetch { operation, version: version.clone(), ranges, keep: false, urgent };
        let known = self.core.view.known_arc();
        let Some(info) = known.worker(worker) else { return Err(gone(worker)) };
        let link = self.core.connections.link(info).await?;
        self.core.ask_to_fetch(&link, &request).await.map_err(Failure::into_error)
    }

    /// Which of these runs of pages a worker holds whole, in the same order.
    pub async fn present(&self, worker: WorkerId, runs: &[(SegmentId, PageRun)]) -> Result<Vec<bool>> {
        let known = self.core.view.known_arc();
        let Some(info) = known.worker(worker) else { return Err(gone(worker)) };
        let link = self.core.connections.link(info).await?;
        let mut present = Vec::with_capacity(runs.len());
        for runs in runs.chunks(RUNS_MAX) {
            let request = DataRequest::Present { runs: runs.to_vec() };
            let reply = ask(&link, &request, Vec::new(), self.core.settings.read_deadline).await;
            let DataReply::Present(some) = reply.map_err(Failure::into_error)? else {
                return Err(unexpected("a worker", "present"));
            };
            present.extend(some);
        }
        match present.len() == runs.len() {
            true => Ok(present),
            false => Err(unexpected("a worker", "present")),
        }
    }

    /// Where the scheduler of distributed SQL is; none when there is none.
    pub async fn scheduler(&self) -> Result<Option<String>> {
        self.about_scheduler(ControlRequest::Scheduler.into()).await
    }

    /// Says where the scheduler of distributed SQL is, which is the caller: known for one lease, so that it says so every second.
    /// `Denied` to who is no process of the cluster.
    pub async fn serve_as_scheduler(&self, serves: String) -> Result<Option<String>> {
        self.about_scheduler(MemberRequest::Scheduler { serves }.into()).await
    }

    async fn about_scheduler(&self, call: ControlCall) -> Result<Option<String>> {
        match self.control(call).await? {
            ControlReply::Scheduler(address) => Ok(address),
            _ => Err(unexpected("the coordinator", "scheduler")),
        }
    }

    /// What a process of the cluster checks the proofs of those who come to it against.
    pub async fn credentials(&self) -> Result<Vec<Verifier>> {
        match self.control(MemberRequest::Credentials).await? {
            ControlReply::Credentials { verifiers, .. } => Ok(verifiers),
            _ => Err(unexpected("the coordinator", "credentials")),
        }
    }

    /// Who this client is to the coordinator.
    pub async fn who_am_i(&self) -> Result<CallerInfo> {
        match self.control(ControlRequest::WhoAmI).await? {
            ControlReply::Caller(caller) => Ok(caller),
            _ => Err(unexpected("the coordinator", "who am I")),
        }
    }

    /// Reads of this operation that begin within these pages ask these workers first. Dropping the answer ends that.
    pub fn read_at(&self, operation: OperationId, places: impl IntoIterator<Item = (SegmentId, PageRun, WorkerId)>) -> ReadAt {
        let mut by_segment = Of::new();
        for (segment, run, worker) in places {
            by_segment.entry(segment).or_default().push((run, worker));
        }
        let places = Arc::new(by_segment);
        self.core.places.add(operation, &places);
        ReadAt { client: self.clone(), operation, places }
    }
}

fn gone(worker: WorkerId) -> Error {
    Error::retry(format!("worker {worker} is not there: the schedule goes on without it"))
}

/// Where an operation reads, as long as this is kept.
pub struct ReadAt {
    client: Client,
    operation: OperationId,
    places: Kept,
}

impl Drop for ReadAt {
    fn drop(&mut self) {
        self.client.core.places.remove(self.operation, &self.places);
    }
}

impl std::fmt::Debug for ReadAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadAt").field("operation", &self.operation).field("segments", &self.places.len()).finish()
    }
}

type Of = HashMap<SegmentId, Vec<(PageRun, WorkerId)>>;
type Kept = Arc<Of>;

/// Where operations read that were told.
#[derive(Default)]
pub(crate) struct Places {
    any: AtomicUsize,
    kept: RwLock<HashMap<OperationId, Vec<Kept>>>,
}

impl Places {
    fn add(&self, operation: OperationId, places: &Kept) {
        self.kept.write().entry(operation).or_default().push(Arc::clone(places));
        self.any.fetch_add(1, Ordering::Release);
    }

    fn remove(&self, operation: OperationId, places: &Kept) {
        let mut kept = self.kept.write();
        if let Some(of_operation) = kept.get_mut(&operation) {
            let before = of_operation.len();
            of_operation.retain(|other| !Arc::ptr_eq(other, places));
            self.any.fetch_sub(before - of_operation.len(), Ordering::Release);
            if of_operation.is_empty() {
                kept.remove(&operation);
            }
        }
    }

    fn of(&self, operation: OperationId, segment: SegmentId, page: u32) -> Option<WorkerId> {
        if self.any.load(Ordering::Acquire) == 0 {
            return None;
        }
        let kept = self.kept.read();
        let within = |of: &Kept| of.get(&segment)?.iter().find(|(run, _)| run.pages().contains(&page)).map(|(_, worker)| *worker);
        kept.get(&operation)?.iter().rev().find_map(within)
    }
}

impl Core {
    /// The worker that this operation was told to ask for this byte of a segment, unless it failed a moment ago.
    pub(crate) fn place_of(&self, operation: OperationId, segment: SegmentId, start: u32) -> Option<WorkerId> {
        self.places
            .of(operation, segment, (u64::from(start) / PAGE_BYTES) as u32)
            .filter(|worker| !self.failures.is_shunned(*worker))
    }
}
