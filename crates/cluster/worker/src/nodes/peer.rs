//! What other workers ask.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use forebay_nodes::{NodeError, NodeErrorKind, NodeResult};
use forebay_protocol::{NodeReply, PeerCall, PeerOp};
use forebay_transport::Response;
use forebay_types::Result;

use super::values::reply;
use super::{Brought, Nodes};

impl Nodes {
    /// Answers another worker.
    pub(crate) async fn answer_peer(self: &Arc<Self>, call: Result<PeerCall<'_>>, payload: Bytes) -> Response {
        let answered = match call {
            Ok(call) => self.answer_peer_call(call, payload).await,
            Err(error) => Err(NodeError::from(&error)),
        };
        answered.unwrap_or_else(|error| reply(&NodeReply::Failed(error)))
    }

    async fn answer_peer_call(self: &Arc<Self>, call: PeerCall<'_>, payload: Bytes) -> NodeResult<Response> {
        let PeerCall { from, path, op } = call;
        let done = || reply(&NodeReply::Done);
        Ok(match op {
            PeerOp::BlockFree { blocks } => {
                self.free_here(&blocks);
                done()
            }
            PeerOp::BlockUnknown { blocks } => reply(&NodeReply::Blocks(self.unknown(blocks))),
            PeerOp::BlockKeep { class } => {
                self.check_class(Some(class))?;
                reply(&NodeReply::Block(self.keep_block(&payload, class, Brought::ByWorker).await?))
            }
            PeerOp::BlockClaim { claims } => {
                self.claimed(&claims)?;
                done()
            }
            PeerOp::BlockUnclaim { claims } => {
                self.unclaimed(&claims);
                done()
            }
            PeerOp::Adopt { kind, affinity, parent } => {
                self.check_takes_new()?;
                let id = self.names.write().adopt(kind, affinity, parent)?;
                self.came(id);
                reply(&NodeReply::Dir(id))
            }
            PeerOp::RemoveNodes { .. } | PeerOp::Reparent { .. } if let Some(to) = self.moved_to(from) => {
                return self.pass_on(to, op).await;
            }
            PeerOp::RemoveNodes { recursive } => {
                self.remove_nodes(from, recursive).await?;
                done()
            }
            PeerOp::Reparent { parent } => {
                self.names.write().set_parent(from, parent)?;
                done()
            }
            PeerOp::Arrive { rename, source, name: own, node } => {
                return self.arrive(rename, source, (from, path), own, node.0).await;
            }
            PeerOp::Settle { rename, committed } => {
                self.settle(rename, committed);
                done()
            }
            PeerOp::Outcome { rename } => reply(&NodeReply::Outcome(self.outcome(rename)?)),
            PeerOp::Room => self.room(),
            PeerOp::TakeOver { source, carton } => return self.take_over(source, carton.0),
            PeerOp::TakeOverNodes => return self.take_over_nodes(from, &payload),
            PeerOp::TakeOverEnd => {
                self.names.write().end_takeover(from)?;
                done()
            }
            PeerOp::TakeOverDrop => {
                self.names.write().drop_takeover_of(from);
                done()
            }
            PeerOp::TookOver { old, parent } => reply(&NodeReply::Outcome(self.took_over(from, old, Some(parent)).await?)),
            PeerOp::Relink { old, new } => reply(&NodeReply::Outcome(self.names.write().relink(old, new)?)),
            PeerOp::BlocksOf { worker, limit } => self.blocks_for(worker, limit),
            PeerOp::BlocksMoved { moved } => self.blocks_moved(&moved),
            PeerOp::Nameless { containers } => {
                check_count(containers.len())?;
                reply(&NodeReply::Dirs(self.names.read().nameless(containers)))
            }
            PeerOp::Missing { containers } => {
                check_count(containers.len())?;
                // What is missing with a worker's new process, or since it was lost, is given to others next.
                if !self.may_replace_lost() {
                    return Err(NodeError::new(NodeErrorKind::Retry, "not all workers know yet what was lost here"));
                }
                reply(&NodeReply::Dirs(self.names.read().missing(containers)))
            }
            PeerOp::WayUp { outer } => return self.answer_way_up(from, outer),
            PeerOp::Moved => {
                self.moves.fetch_add(1, Relaxed);
                done()
            }
        })
    }
}

fn check_count(containers: usize) -> NodeResult<()> {
    match containers <= super::named::ASKED_MAX {
        true => Ok(()),
        false => Err(NodeError::new(NodeErrorKind::Invalid, format!("{containers} containers are too many for one question"))),
    }
}
