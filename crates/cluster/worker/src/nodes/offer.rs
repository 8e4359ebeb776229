//! Which worker a block goes to.

use bytes::Bytes;
use forebay_nodes::{Affinity, BlockRef, Candidate, NodeError, NodeErrorKind, NodeResult, ROOT, StorageClass, offer};
use forebay_placement::rank;
use forebay_protocol::{NodeReply, PeerCall, PeerOp};
use forebay_types::{RouteKey, WorkerId};

use super::Nodes;
use super::tree::misfit;

impl Nodes {
    /// Keeps a block where its node asks to lie; elsewhere when nobody there has room.
    pub(super) async fn offer_block(&self, route: RouteKey, bytes: &[u8], affinity: &Affinity) -> NodeResult<BlockRef> {
        let mut refused: Option<NodeError> = None;
        for worker in self.order_of(route, affinity) {
            let written = match worker == self.worker {
                true => self.write_block(bytes, affinity.class).await,
                false => self.send_block(worker, bytes, affinity.class).await,
            };
            let error = match written {
                Ok(block) => return Ok(block),
                Err(error) => error,
            };
            tracing::debug!(worker = %WorkerId(worker), %error, "block offered to another worker");
            if error.kind == NodeErrorKind::NoSpace {
                self.blocks.full.lock().note(worker, self.now());
            }
            // What this worker itself has no room for says more than that another one is gone.
            if refused.is_none() || worker == self.worker {
                refused = Some(error);
            }
        }
        Err(refused.expect("it is offered to this worker too"))
    }

    /// This worker and those that take what is new.
    fn order_of(&self, route: RouteKey, affinity: &Affinity) -> Vec<u64> {
        let view = self.cluster.view();
        let me = WorkerId(self.worker);
        let mut workers: Vec<WorkerId> = view.placeable().map(|worker| worker.id).collect();
        let is_placeable = workers.contains(&me);
        if !is_placeable {
            workers.push(me);
        }
        let (full, now) = (self.blocks.full.lock(), self.now());
        let candidates: Vec<Candidate<'_>> = rank(route, &workers)
            .into_iter()
            .map(|id| {
                let info = view.workers.iter().find(|info| info.id == id);
                let is_beside = id == me;
                Candidate {
                    worker: id.0,
                    // While this one is being drained it is as good as elsewhere.
                    location: info.filter(|_| !is_beside || is_placeable).map_or("", |info| &info.location),
                    has_disk: if is_beside { self.store.has_disk() } else { info.is_some_and(|info| info.disk_bytes > 0) },
                    is_beside,
                    is_full: full.is(id.0, now),
                }
            })
            .collect();
        offer(&candidates, &affinity.location, affinity.class)
    }

    async fn send_block(&self, worker: u64, bytes: &[u8], class: StorageClass) -> NodeResult<BlockRef> {
        self.bring_block(worker, Bytes::copy_from_slice(bytes), class).await
    }

    /// Has another worker keep a block for a node of this one or, as a copy, of any.
    pub(super) async fn bring_block(&self, worker: u64, bytes: Bytes, class: StorageClass) -> NodeResult<BlockRef> {
        let call = PeerCall { from: ROOT, path: "", op: PeerOp::BlockKeep { class } };
        match self.ask_nodes(worker, &call, Some(bytes)).await?.reply()? {
            NodeReply::Block(block) => Ok(block),
            _ => Err(misfit()),
        }
    }
}
