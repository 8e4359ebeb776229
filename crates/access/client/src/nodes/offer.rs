//! Which workers new blocks are offered to.

use std::sync::Arc;
use std::time::Instant;

use forebay_nodes::{Affinity, Candidate, Full, NodeError, NodeErrorKind, NodeResult, offer};
use forebay_placement::rank;
use forebay_protocol::WorkerInfo;
use forebay_types::{RouteKey, WorkerId};
use parking_lot::Mutex;

use super::Nodes;

/// Workers that had no room for a block a moment ago.
pub(crate) struct FullWorkers {
    since: Instant,
    full: Mutex<Full>,
}

impl FullWorkers {
    pub(crate) fn new() -> Self {
        Self { since: forebay_runtime::now(), full: Mutex::default() }
    }

    pub(super) fn note(&self, worker: WorkerId) {
        self.full.lock().note(worker.0, self.since.elapsed());
    }
}

impl Nodes {
    /// The workers that new blocks of a node are offered to, one after the other: where it asks to lie, then beside this process,
    /// then spread over all by the path.
    pub(super) fn data_workers(&self, path: &str, affinity: &Affinity) -> NodeResult<Vec<Arc<WorkerInfo>>> {
        let known = self.shared.routes.view.known();
        let hash =
            path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let order = {
            let full_workers = &self.shared.full_workers;
            let (full, now) = (full_workers.full.lock(), full_workers.since.elapsed());
            let ranked = rank(RouteKey(hash), &known.workers);
            let infos = ranked.iter().filter_map(|id| known.worker(*id));
            let candidates: Vec<Candidate<'_>> = infos
                .map(|info| Candidate {
                    worker: info.id.0,
                    location: &info.location,
                    has_disk: info.disk_bytes > 0,
                    is_beside: self.shared.routes.connections.is_beside(info),
                    is_full: full.is(info.id.0, now),
                })
                .collect();
            offer(&candidates, &affinity.location, affinity.class)
        };
        let workers: Vec<_> = order.into_iter().filter_map(|id| known.worker(WorkerId(id)).cloned()).collect();
        if workers.is_empty() {
            return Err(NodeError::new(NodeErrorKind::Retry, "there is no worker to write to: start one"));
        }
        Ok(workers)
    }

    /// The first of them for a node that asks for nothing.
    pub(super) fn data_worker(&self, path: &str) -> NodeResult<Arc<WorkerInfo>> {
        Ok(self.data_workers(path, &Affinity::default())?.swap_remove(0))
    }
}
