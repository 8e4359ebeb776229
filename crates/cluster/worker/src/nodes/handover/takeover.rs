//! A container comes from another worker.

use bytes::Bytes;
use forebay_nodes::{DirId, NodeError, NodeErrorKind, NodeResult, Packed, ROOT};
use forebay_protocol::{NodeReply, PeerCall, PeerOp};
use forebay_transport::Response;
use futures::stream::{self, StreamExt};

use super::containers::unboxed;
use crate::nodes::Nodes;
use crate::nodes::named::NAME_WITHIN;
use crate::nodes::tree::misfit;
use crate::nodes::values::reply;

/// Containers that are told of their parent at a time.
const TOLD: usize = 16;

/// The side that takes a container over.
impl Nodes {
    /// Room for what others give up.
    pub(in crate::nodes) fn room(&self) -> Response {
        let names = self.names.read().room();
        let used = self.blocks.bytes.load(std::sync::atomic::Ordering::Relaxed);
        let blocks = self.blocks.bytes_max.saturating_sub(used);
        reply(&NodeReply::Room { names, blocks, has_disk: self.store.has_disk() })
    }

    /// Makes place for a container.
    pub(in crate::nodes) fn take_over(&self, source: u64, carton: &[u8]) -> NodeResult<Response> {
        self.check_takes_new()?;
        let carton = unboxed(carton).map_err(unreadable)?;
        Ok(reply(&NodeReply::Dir(self.names.write().begin_takeover(source, carton)?)))
    }

    /// Takes some of its nodes.
    pub(in crate::nodes) fn take_over_nodes(&self, id: DirId, nodes: &Bytes) -> NodeResult<Response> {
        let nodes: Vec<Packed> = postcard::from_bytes(nodes).map_err(unreadable)?;
        self.names.write().unpack(id, nodes, self.now())?;
        Ok(reply(&NodeReply::Done))
    }

    /// The container is here now, and was `old` before: tells the containers in it, and has its name lead here. Whether there
    /// is such a name. May be said again.
    pub(in crate::nodes) async fn took_over(&self, id: DirId, old: DirId, parent: Option<DirId>) -> NodeResult<bool> {
        let (inside, parent) = self.names.write().settle_takeover(id, parent);
        self.came(id);
        let Some(parent) = parent else {
            // Deleted meanwhile, with its name.
            return Ok(true);
        };
        let told = stream::iter(inside).map(async |child: DirId| {
            let op = PeerOp::Reparent { parent: id };
            let told = self.ask_nodes(child.worker, &PeerCall { from: child, path: "", op }, None).await;
            match told.and_then(|answer| answer.reply().map(drop)) {
                Err(error) if error.kind != NodeErrorKind::DataLost => Err(error),
                _ => Ok(()),
            }
        });
        let told: Vec<NodeResult<()>> = told.buffer_unordered(TOLD).collect().await;
        told.into_iter().collect::<NodeResult<()>>()?;
        self.relink(old, id, parent).await
    }

    /// Has the name of a container lead to what it is now, wherever the name is.
    async fn relink(&self, old: DirId, new: DirId, parent: DirId) -> NodeResult<bool> {
        let view = self.cluster.view();
        let first = if parent.worker == ROOT.worker { view.root().map(|root| root.id.0) } else { Some(parent.worker) };
        let others = view.workers.iter().map(|worker| worker.id.0).filter(|worker| Some(*worker) != first);
        for worker in first.into_iter().chain(others) {
            let op = PeerOp::Relink { old, new };
            let asked = self.ask_nodes(worker, &PeerCall { from: ROOT, path: "", op }, None).await;
            let found = match asked.as_ref().map(|answer| answer.reply()) {
                Ok(Ok(NodeReply::Outcome(found))) => found,
                Ok(Ok(_)) => return Err(misfit()),
                Err(error) if error.kind == NodeErrorKind::DataLost => false,
                Ok(Err(error)) => return Err(error),
                Err(error) => return Err(error.clone()),
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes containers over whose sources are gone: what came as a whole is here, all else never was.
    pub(in crate::nodes) async fn end_takeovers(&self) {
        let view = self.cluster.view();
        let coming = self.names.read().coming();
        for (id, old, source, is_whole) in coming {
            if view.workers.iter().any(|worker| worker.id.0 == source) {
                continue;
            }
            // The root is taken over by the view that says so, which is this one or none.
            if is_whole && id != ROOT {
                tracing::info!(container = ?id, source, "container taken over from a worker that is gone");
                self.apart.unlinked.lock().insert(id, (old, forebay_runtime::now()));
            } else {
                self.names.write().drop_takeover(id);
            }
        }
        let unlinked: Vec<_> = self.apart.unlinked.lock().iter().map(|(id, (old, since))| (*id, *old, *since)).collect();
        for (id, old, since) in unlinked {
            match self.took_over(id, old, None).await {
                Ok(true) => {}
                Ok(false) if since.elapsed() > NAME_WITHIN => {
                    if let Err(error) = self.remove_nodes(id, true).await {
                        tracing::debug!(container = ?id, %error, "a container without a name stays for now");
                        continue;
                    }
                }
                Ok(false) => continue,
                Err(error) => {
                    tracing::debug!(container = ?id, %error, "a container's name does not lead here yet");
                    continue;
                }
            }
            self.apart.unlinked.lock().remove(&id);
        }
    }
}

fn unreadable(error: postcard::Error) -> NodeError {
    NodeError::new(NodeErrorKind::Invalid, format!("a container can't be read: {error}"))
}
