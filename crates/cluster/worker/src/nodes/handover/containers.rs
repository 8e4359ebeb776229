//! A container goes to another worker, step by step.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_nodes::{Carton, DirId, NodeError, NodeErrorKind, NodeResult, ROOT};
use forebay_protocol::{ClusterView, ControlReply, MemberRequest, NodeReply, PeerCall, PeerOp, Raw};
use forebay_runtime::simulated;
use forebay_transport::{Address, Connection, Response, Security};
use forebay_types::{ErrorKind, WorkerId};

use crate::cluster::ask;
use crate::nodes::Nodes;
use crate::nodes::tree::misfit;

/// Bytes of nodes that one message takes along.
const PACK_BYTES: u64 = 1 << 20;
/// Time between two tries to say something that has to be heard.
const AGAIN: Duration = Duration::from_millis(50);

/// The coordinator, for what it alone can say.
pub(in crate::nodes) struct Line {
    pub(in crate::nodes) coordinator: Address,
    pub(in crate::nodes) security: Security,
    pub(in crate::nodes) connection: Option<Connection>,
    /// Takes a view over at once.
    pub(in crate::nodes) follow: Box<dyn Fn(ClusterView) + Send + Sync>,
}

/// A container that is another worker's.
#[derive(Clone, Copy)]
pub(in crate::nodes) struct HandedOver {
    pub(in crate::nodes) old: DirId,
    pub(in crate::nodes) new: DirId,
    /// The container that its name is in.
    pub(in crate::nodes) parent: DirId,
    pub(in crate::nodes) since: Instant,
}

/// The side that gives a container up. The target has it whole, and the source changes nothing, before the commit; from then on
/// the source names the target to whoever comes with the old identity.
impl Nodes {
    /// Moves a container with its nodes to another worker. What fails leaves it where it was.
    pub(in crate::nodes) async fn hand_over(&self, id: DirId, to: u64, line: &mut Line) -> NodeResult<HandedOver> {
        let new = match self.prepare_handover(id, to).await {
            Ok(new) => new,
            Err((error, began)) => {
                if began {
                    self.abort_handover(id, to).await;
                }
                return Err(error);
            }
        };
        let parent = if id == ROOT {
            self.pass_root(to, line).await?;
            ROOT
        } else {
            self.names.write().commit_handover(id, new).unwrap_or(ROOT)
        };
        Ok(HandedOver { old: id, new, parent, since: forebay_runtime::now() })
    }

    /// The steps before the commit. With an error comes whether the container is to be given free again.
    pub(in crate::nodes) async fn prepare_handover(&self, id: DirId, to: u64) -> Result<DirId, (NodeError, bool)> {
        let carton = self.names.write().begin_handover(id).map_err(|error| (error, false))?;
        let sent = async {
            let carton = boxed(&carton);
            let op = PeerOp::TakeOver { source: self.worker, carton: Raw(&carton) };
            let new = match self.say(to, ROOT, op, None).await? {
                Said::Dir(new) => new,
                Said::Done => return Err(misfit()),
            };
            let mut after: Option<String> = None;
            loop {
                let (packed, last) = self.names.read().pack(id, after.as_deref(), PACK_BYTES, self.now())?;
                after = packed.last().map(|node| node.name().to_string()).or(after);
                let nodes = postcard::to_stdvec(&packed).expect("nodes are encodable");
                self.say(to, new, PeerOp::TakeOverNodes, Some(nodes.into())).await?;
                if last {
                    break;
                }
            }
            self.say(to, new, PeerOp::TakeOverEnd, None).await?;
            simulated::lingers("handover", Duration::from_millis(300)).await;
            Ok(new)
        };
        sent.await.map_err(|error| (error, true))
    }

    /// The target must have nothing of it, or be gone, before anything is changed here: what it has would be believed when this
    /// worker died.
    pub(in crate::nodes) async fn abort_handover(&self, id: DirId, to: u64) {
        loop {
            let dropped = self.say(to, id, PeerOp::TakeOverDrop, None).await;
            match dropped {
                Ok(_) => break,
                Err(error) if error.kind == NodeErrorKind::DataLost => break,
                Err(error) => tracing::debug!(to, %error, "a container that stays is not dropped yet where it was to come"),
            }
            forebay_runtime::time::sleep(AGAIN).await;
        }
        self.names.write().abort_handover(id);
    }

    /// The commit of the root is the coordinator's: all views say who has it.
    async fn pass_root(&self, to: u64, line: &mut Line) -> NodeResult<()> {
        self.names.write().seal(ROOT);
        loop {
            let pass = MemberRequest::PassRoot { from: WorkerId(self.worker), to: WorkerId(to) };
            match ask(&line.coordinator, &line.security, &mut line.connection, pass).await {
                Ok(ControlReply::View(view)) => {
                    *self.drain.passed.lock() = Some((view.epoch, view.version));
                    self.names.write().commit_handover(ROOT, ROOT);
                    (line.follow)(view);
                    return Ok(());
                }
                // An answer before this one was lost: it is the other's.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.names.write().commit_handover(ROOT, ROOT);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.abort_handover(ROOT, to).await;
                    return Err(NodeError::new(NodeErrorKind::Retry, error.message()));
                }
                // It may have been done or not: nobody has the root until that is known.
                Ok(_) => tracing::warn!("the coordinator answered a passed root with something else"),
                Err(error) => tracing::warn!(%error, "the root of temporary data waits for the coordinator"),
            }
            forebay_runtime::time::sleep(AGAIN).await;
        }
    }

    /// Tells the target that the container is its own. Whether its name leads there now.
    pub(in crate::nodes) async fn confirm_handover(&self, done: &HandedOver) -> NodeResult<bool> {
        let HandedOver { old, new, parent, .. } = *done;
        let call = PeerCall { from: new, path: "", op: PeerOp::TookOver { old, parent } };
        match self.ask_nodes(new.worker, &call, None).await?.reply()? {
            NodeReply::Outcome(found) => Ok(found),
            _ => Err(misfit()),
        }
    }

    /// Where a container is that was here.
    pub(in crate::nodes) fn moved_to(&self, id: DirId) -> Option<DirId> {
        self.names.read().moved_to(id)
    }

    /// Has it done where the container is now.
    pub(in crate::nodes) async fn pass_on(&self, to: DirId, op: PeerOp<'_>) -> NodeResult<Response> {
        let answer = self.ask_nodes(to.worker, &PeerCall { from: to, path: "", op }, None).await?;
        Ok(answer.into_response())
    }

    async fn say(&self, to: u64, from: DirId, op: PeerOp<'_>, payload: Option<Bytes>) -> NodeResult<Said> {
        match self.ask_nodes(to, &PeerCall { from, path: "", op }, payload).await?.reply()? {
            NodeReply::Done => Ok(Said::Done),
            NodeReply::Dir(dir) => Ok(Said::Dir(dir)),
            _ => Err(misfit()),
        }
    }
}

/// A container's bytes. Its quota comes behind it, where workers of earlier versions read no further.
fn boxed(carton: &Carton) -> Vec<u8> {
    let bytes = postcard::to_stdvec(carton).expect("containers are encodable");
    if let Some(quota) = carton.quota { postcard::to_extend(&quota, bytes).expect("numbers are encodable") } else { bytes }
}

/// What [`boxed`] has written.
pub(super) fn unboxed(bytes: &[u8]) -> Result<Carton, postcard::Error> {
    let (carton, behind) = postcard::take_from_bytes::<Carton>(bytes)?;
    let quota = if behind.is_empty() { None } else { Some(postcard::from_bytes(behind)?) };
    Ok(Carton { quota, ..carton })
}

enum Said {
    Done,
    Dir(DirId),
}

#[cfg(test)]
mod tests {
    use forebay_nodes::{Affinity, NodeType};

    use super::*;

    #[test]
    fn a_container_takes_its_quota_along_and_one_without_is_as_it_was() {
        let carton = |quota| Carton { old: ROOT, kind: NodeType::Bag, affinity: Affinity::default(), parent: ROOT, quota };
        for quota in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(unboxed(&boxed(&carton(quota))).unwrap(), carton(quota));
        }
        assert_eq!(boxed(&carton(None)), postcard::to_stdvec(&carton(Some(7))).unwrap());
        assert!(unboxed(&[boxed(&carton(None)), vec![0x80]].concat()).is_err());
    }
}
