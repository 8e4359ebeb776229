//! Questions to other workers.

use bytes::Bytes;
use forebay_nodes::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, PeerCall, PeerOp, WorkerInfo};
use forebay_transport::Response;
use forebay_types::{ErrorKind, WorkerId};

use super::Nodes;
use crate::cluster::Cluster;

/// What another worker answered.
pub(super) struct PeerAnswer {
    meta: Bytes,
    pub(super) payload: Bytes,
}

impl PeerAnswer {
    /// The answer as it came, for who passes it on.
    pub(super) fn into_response(self) -> Response {
        Response { payload: vec![self.payload], ..Response::new(self.meta) }
    }

    /// The reply; one that says it failed is the error.
    pub(super) fn reply(&self) -> NodeResult<NodeReply<'_>> {
        match NodeReply::decode(&self.meta) {
            Ok(NodeReply::Failed(error)) => Err(error),
            Ok(reply) => Ok(reply),
            Err(error) => Err(NodeError::new(NodeErrorKind::Retry, error.message())),
        }
    }
}

/// What this worker says to itself.
impl From<Response> for PeerAnswer {
    fn from(answer: Response) -> Self {
        debug_assert!(answer.payload.is_empty(), "it has no bytes to say");
        Self { meta: answer.meta, payload: Bytes::new() }
    }
}

impl Nodes {
    /// Asks another worker about nodes. `DataLost` when the view has it no more, `Retry` when it does not answer.
    pub(super) async fn ask_nodes(&self, worker: u64, call: &PeerCall<'_>, payload: Option<Bytes>) -> NodeResult<PeerAnswer> {
        ask(&self.cluster, worker, call.encode(), payload).await
    }

    /// The same about a block, which clients may ask as well.
    pub(super) async fn ask_block(&self, worker: u64, op: NodeOp<'_>, payload: Option<Bytes>) -> NodeResult<PeerAnswer> {
        let call = NodeCall { from: ROOT, moves: 0, path: "", op, number: None };
        ask(&self.cluster, worker, call.encode(), payload).await
    }

    /// Tells another worker something about nodes, those of its container `from` where it is about one, without waiting for it.
    pub(super) fn tell_nodes(&self, worker: u64, from: DirId, op: PeerOp<'static>) {
        let Some(peer) = worker_info(&self.cluster, worker) else { return };
        let message = PeerCall { from, path: "", op }.encode();
        let told = self.cluster.peers.ask_nodes_owned(peer, message);
        self.background.spawn(async move {
            if let Err(error) = told.await {
                tracing::debug!(%error, "a worker did not hear of nodes that are gone");
            }
        });
    }
}

/// Asks another worker, also for who outlives these nodes.
pub(super) async fn ask(cluster: &Cluster, worker: u64, message: Bytes, payload: Option<Bytes>) -> NodeResult<PeerAnswer> {
    let peer = worker_info(cluster, worker).ok_or_else(|| {
        NodeError::new(NodeErrorKind::DataLost, format!("worker {} is gone, and what it had", WorkerId(worker)))
    })?;
    match cluster.peers.ask_nodes(&peer, message, payload).await {
        Ok(answer) => Ok(PeerAnswer { meta: answer.meta, payload: answer.payload }),
        Err(error) => {
            let kind = if error.kind() == ErrorKind::Invalid { NodeErrorKind::Invalid } else { NodeErrorKind::Retry };
            Err(NodeError::new(kind, format!("worker {}: {}", peer.id, error.message())))
        }
    }
}

fn worker_info(cluster: &Cluster, worker: u64) -> Option<WorkerInfo> {
    // 0 stands for whoever has the root.
    let id = if worker == ROOT.worker { cluster.view().root()?.id } else { WorkerId(worker) };
    cluster.worker(id)
}
