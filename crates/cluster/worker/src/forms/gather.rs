//! Raw bytes of a file, from the tiers of this worker or another.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_placement::rank;
use forebay_types::{Error, ObjectVersion, PageRun, Result, RouteKey, SegmentRange, WorkerId, split_range};

use super::Forms;
use crate::origin::{MountDoor, Priority};
use crate::segment::Segment;

impl Forms {
    /// Bytes of an object that are in the tiers here, or on the worker that readers go to for them. `NotFound` when they
    /// are not: nothing is fetched from shared storage for a form.
    pub(super) async fn gather(&self, door: &Arc<MountDoor>, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        let mut parts = Vec::new();
        for part in split_range(range) {
            parts.extend(self.gather_part(door, version, part).await?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        parts.iter().for_each(|part| all.extend_from_slice(part));
        Ok(all.freeze())
    }

    async fn gather_part(&self, door: &Arc<MountDoor>, version: &ObjectVersion, part: SegmentRange) -> Result<Vec<Bytes>> {
        let segment = Segment::holding(version, part.object_range().start)?;
        let bytes = u64::from(part.start)..u64::from(part.start) + u64::from(part.len);
        let Some(run) = PageRun::covering(bytes.clone()) else { return Ok(Vec::new()) };
        if self.origin.store.state(segment.id, run).missing.is_empty() {
            let wanted = self.origin.wanted(door, segment, Priority::Prefetch, false);
            let (obtained, _) = self.origin.obtain(&wanted, run).await?;
            return Ok(obtained.slices(run, bytes));
        }
        let view = self.cluster.view();
        let holder = self.holder_of(RouteKey::of(version.mount, &version.key, part.index));
        if let Some(peer) = view.workers.iter().find(|worker| Some(worker.id) == holder && worker.id != self.cluster.id) {
            let (runs, payload) = self.cluster.peers.copy(peer, segment.id, run).await?;
            let first = run.bytes().start;
            let wanted = (bytes.start - first) as usize..(bytes.end - first) as usize;
            if runs == [run] && wanted.end <= payload.len() {
                return Ok(vec![payload.slice(wanted)]);
            }
        }
        Err(Error::not_found(format!("{}: bytes {bytes:?} of segment {} are in no tier", version.key, part.index)))
    }

    /// The worker that readers go to first.
    fn holder_of(&self, route: RouteKey) -> Option<WorkerId> {
        let routes = self.cluster.routes();
        if let Some(holders) = routes.holders(route) {
            return holders.iter().map(|(worker, _)| *worker).find(|worker| *worker != self.cluster.id);
        }
        let workers: Vec<_> = self.cluster.view().workers.iter().map(|worker| worker.id).collect();
        rank(route, &workers).first().copied()
    }
}
