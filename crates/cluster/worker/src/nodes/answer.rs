//! What clients ask.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use forebay_nodes::{At, BlockRef, CreateOptions, DirId, Got, Namespace, NodeError, NodeErrorKind, NodeResult, ROOT};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, Raw};
use forebay_transport::Response;
use forebay_types::Result;

use super::fence::{Reached, is_about_names};
use super::values::{beside, reply};
use super::{Brought, Nodes};
use crate::in_place::SessionPins;

/// What a call comes to: an answer, or where it has to go on.
pub(super) enum Way<'p> {
    Here(Reached, &'p str),
    Answer(Response),
}

/// What a call is answered that failed by a defect.
pub(crate) fn failed() -> Response {
    let message = "the call failed by a defect of the worker, whose log has more";
    reply(&NodeReply::Failed(NodeError::new(NodeErrorKind::Internal, message)))
}

/// What a call is answered that nobody waits for any more, also one of another worker.
pub(crate) fn given_up(why: String) -> Response {
    reply(&NodeReply::Failed(NodeError::new(NodeErrorKind::Retry, why)))
}

impl Nodes {
    /// Answers a call about temporary nodes; in place where `pins` are of a client that has the tier mapped.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        pins: Option<&SessionPins>,
        call: Result<NodeCall<'_>>,
        payload: Bytes,
    ) -> Response {
        let answered = match call {
            Ok(call) => {
                let (began, kind) = (forebay_runtime::now(), <&str>::from(&call.op));
                let answered = self.answer_fenced(pins, call, payload).await;
                if let Some(seconds) = self.seconds.of(kind) {
                    seconds.record(began.elapsed());
                }
                answered
            }
            Err(error) => Err(NodeError::from(&error)),
        };
        answered.unwrap_or_else(|error| reply(&NodeReply::Failed(error)))
    }

    /// Answers under this worker's lease what is about names.
    async fn answer_fenced(
        self: &Arc<Self>,
        pins: Option<&SessionPins>,
        call: NodeCall<'_>,
        payload: Bytes,
    ) -> NodeResult<Response> {
        if !is_about_names(&call.op) {
            return self.answer_call(pins, call, payload).await;
        }
        let life = self.begins().await?;
        let answered = self.answer_call(pins, call, payload).await;
        self.counts(life).await?;
        answered
    }

    async fn answer_call(
        self: &Arc<Self>,
        pins: Option<&SessionPins>,
        call: NodeCall<'_>,
        payload: Bytes,
    ) -> NodeResult<Response> {
        let (at, name) = match self.way(&call) {
            Ok(Way::Here(at, name)) => (at, name),
            Ok(Way::Answer(response)) => return Ok(response),
            Err(error) => {
                if let NodeOp::PutBlocks { blocks } = &call.op {
                    Box::pin(self.leads_nowhere(blocks, &error)).await;
                }
                return Err(error);
            }
        };
        // What may wait does so in a place of its own, so that a call which need not is small: most are answered at once.
        let done = || reply(&NodeReply::Done);
        let bytes_of = |bytes: Raw<'_>| if payload.is_empty() { Bytes::copy_from_slice(bytes.0) } else { payload.clone() };
        Ok(match call.op {
            NodeOp::Get => return self.get(pins, at, name).await,
            NodeOp::Put { value } => return self.put(at, name, value.0, payload).await,
            NodeOp::PutBlocks { blocks } => return Box::pin(self.put_blocks(at, name, &blocks)).await,
            NodeOp::Create { kind, enumerable, class, location } => {
                self.check_class(class)?;
                Box::pin(self.create(at, name, CreateOptions { kind, enumerable, class, location })).await?;
                done()
            }
            NodeOp::Stat => reply(&NodeReply::Stat(self.reached(at)?.stat(at.dir, name)?)),
            NodeOp::List { after, limit } => return self.list(at, name, after, limit),
            NodeOp::Append { writer, bytes } => {
                reply(&NodeReply::Length(Box::pin(self.append(at, name, &bytes_of(bytes), writer)).await?))
            }
            NodeOp::AppendBlocks { writer, blocks } => {
                reply(&NodeReply::Length(Box::pin(self.append_blocks(at, name, &blocks, writer)).await?))
            }
            NodeOp::Write { writer, offset, bytes } => {
                reply(&NodeReply::Length(Box::pin(self.write(at, name, offset, &bytes_of(bytes), writer)).await?))
            }
            NodeOp::Read { offset, bytes } => return Box::pin(self.read(at, name, offset, bytes)).await,
            NodeOp::Extents { offset, bytes } => return self.extents_of(at, name, offset, bytes),
            NodeOp::Delete { recursive } => {
                Box::pin(self.delete(at, name, recursive)).await?;
                done()
            }
            NodeOp::Replace { name: to, condition } => {
                self.replace(at, (name, to), condition)?;
                done()
            }
            NodeOp::DeleteIf { condition } => {
                self.delete_if(at, name, condition)?;
                done()
            }
            NodeOp::Parent => reply(&NodeReply::Dir(at.dir)),
            NodeOp::Rename { dir: to, name: to_name, inside } => {
                Box::pin(self.rename((at, name), (to, to_name), inside)).await?;
                done()
            }
            NodeOp::OpenWriter { writer } => {
                let len = self.changing(at)?.open_writer(at.dir, name, writer, self.now(), super::WRITER_LEASE)?;
                reply(&NodeReply::Length(len))
            }
            NodeOp::CloseWriter { writer } => {
                self.changing(at)?.close_writer(at.dir, name, writer)?;
                done()
            }
            NodeOp::Lease { ttl_ms } => {
                self.set_lease(at, name, ttl_ms)?;
                done()
            }
            NodeOp::BlockWrite { class } => {
                self.check_class(Some(class))?;
                reply(&NodeReply::Block(Box::pin(self.keep_block(&payload, class, Brought::ByClient)).await?))
            }
            NodeOp::BlockRead { block, start, bytes } => match Box::pin(self.find_block(block, start, bytes)).await? {
                Some(found) => found.answer(pins),
                None => return Err(super::values::gone()),
            },
            NodeOp::Prepare { bytes, descriptor } => return self.prepare_block(pins, bytes, descriptor),
            NodeOp::Written { pin } => return Self::written(pins, pin),
            NodeOp::GetMany { names } => return self.get_many(at, &names),
            NodeOp::PutMany { values } => return self.put_many(at, &values),
            NodeOp::Usage => reply(&NodeReply::Usage(self.reached(at)?.usage(at.dir)?)),
            NodeOp::SetQuota { bytes } => {
                self.set_quota(at, bytes)?;
                done()
            }
            NodeOp::WasDone { number, within_ms } => reply(&self.was_done(number, within_ms)?),
        })
    }

    /// Blocks that were brought for a value of no node are freed, but for `Moving`: who asked asks again.
    async fn leads_nowhere(&self, blocks: &[BlockRef], error: &NodeError) {
        if error.kind == NodeErrorKind::Moving {
            return;
        }
        match self.take_brought(blocks).await {
            Ok(taken) => taken.give_back(),
            Err(error) => tracing::debug!(%error, "blocks of a value that was refused stay until they are looked for"),
        }
    }

    /// Walks along the path, for what is about a node; what one look there is enough for is answered by it.
    fn way<'p>(&self, call: &NodeCall<'p>) -> NodeResult<Way<'p>> {
        use NodeOp::*;
        let NodeCall { from, moves, path, ref op, number } = *call;
        // About what is named by more than a path.
        if matches!(op, BlockWrite { .. } | BlockRead { .. } | Prepare { .. } | Written { .. } | WasDone { .. }) {
            return Ok(Way::Here(Reached { number, ..from.into() }, path));
        }
        let names = self.names.read();
        let (known, losses) = (self.moves.load(Relaxed), Some(self.fence.losses.load(Relaxed)));
        if !names.has(from) {
            if from == ROOT {
                return Err(NodeError::new(NodeErrorKind::Moving, "this worker hasn't got /tmp: ask for the workers anew"));
            }
            if let Some(dir) = names.moved_to(from) {
                return Ok(Way::Answer(reply(&NodeReply::Elsewhere { dir, rest: path.len() as u32 })));
            }
            return Ok(Way::Answer(reply(&NodeReply::Stale { moves: known })));
        }
        if from != ROOT && moves != known {
            return Ok(Way::Answer(reply(&NodeReply::Stale { moves: known })));
        }
        if matches!(op, List { .. } | GetMany { .. } | PutMany { .. } | Usage | SetQuota { .. }) {
            let (dir, rest) = names.container(from, path)?;
            if !names.has(dir) {
                return Ok(Way::Answer(reply(&NodeReply::Elsewhere { dir, rest: rest.len() as u32 })));
            }
            return Ok(Way::Here(Reached { dir, losses, number }, ""));
        }
        match names.walk(from, path)? {
            At::Here(dir, name) => Ok(match at_once(&names, (dir, name), op).filter(|_| number.is_none()) {
                Some(answer) => Way::Answer(answer?),
                None => Way::Here(Reached { dir, losses, number }, name),
            }),
            At::Elsewhere(dir, rest) => Ok(Way::Answer(reply(&NodeReply::Elsewhere { dir, rest: rest.len() as u32 }))),
            At::Itself => Err(NodeError::new(NodeErrorKind::Invalid, "/tmp itself is always there, and can't be changed")),
        }
    }
}

/// What only looks at a node, and needs nothing but its name for that.
fn at_once(names: &Namespace, (dir, name): (DirId, &str), op: &NodeOp<'_>) -> Option<NodeResult<Response>> {
    match op {
        NodeOp::Get => match names.get(dir, name) {
            Ok(Got::Inline(bytes)) => Some(Ok(beside(bytes))),
            Ok(Got::Blocks(_)) => None,
            Err(error) => Some(Err(error)),
        },
        NodeOp::Stat => Some(names.stat(dir, name).map(|stat| reply(&NodeReply::Stat(stat)))),
        _ => None,
    }
}
