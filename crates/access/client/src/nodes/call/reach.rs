//! One question to one worker.

use std::sync::Arc;

use bytes::Bytes;
use forebay_nodes::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, ROOT};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, Span, WorkerInfo, check_known};
use forebay_runtime::time::instant;
use forebay_types::{Error, ErrorKind, SegmentId};

use super::silence::{Failed, Met, Silence};
use crate::connect::{Weight, of_node, said};
use crate::in_place::{Pin, Rescued, Session, pin_of_node};
use crate::nodes::Nodes;
use crate::route::Unanswered;

/// What is asked for with a call that is to be a matter of microseconds, at most.
const NEAR_READ_MAX: u32 = 16 << 10;
/// Bytes that go with one, at most.
const NEAR_BYTES_MAX: usize = NEAR_READ_MAX as usize;
const NEAR_VALUES_MAX: usize = 64;

/// A worker's answer.
pub(crate) struct NodeAnswer {
    pub(crate) meta: Bytes,
    pub(crate) payload: Bytes,
    /// Where bytes in place are.
    session: Option<Arc<Session>>,
}

impl NodeAnswer {
    /// The reply; one that says it failed is the error.
    pub(crate) fn reply(&self) -> NodeResult<NodeReply<'_>> {
        match NodeReply::decode(&self.meta) {
            Ok(NodeReply::Failed(error)) => Err(error),
            Ok(reply) => Ok(reply),
            Err(_) => Err(misfit()),
        }
    }

    /// Bytes in place. They hold their pin.
    pub(crate) fn in_place(&self, pin: u64, span: Span) -> NodeResult<Bytes> {
        let (session, Ok(len)) = (self.session.as_ref().ok_or_else(misfit)?, u32::try_from(span.len)) else {
            return Err(misfit());
        };
        // No read of an object finds this pin, so it needs no segment.
        let pin = Pin::new(session, pin, span, SegmentId(0), 0..len).map_err(|_| misfit())?;
        Ok(pin.bytes(0..len))
    }

    pub(crate) fn done(&self) -> NodeResult<()> {
        match self.reply()? {
            NodeReply::Done => Ok(()),
            _ => Err(misfit()),
        }
    }

    pub(crate) fn length(&self) -> NodeResult<u64> {
        if let NodeReply::Length(length) = self.reply()? { Ok(length) } else { Err(misfit()) }
    }
}

/// The error for an answer that doesn't fit the question.
pub(crate) fn misfit() -> NodeError {
    NodeError::new(NodeErrorKind::Retry, "a worker's answer doesn't fit the question: run one version of forebay")
}

impl Nodes {
    /// Asks one worker, and looks whether the cluster still has it where it says nothing.
    pub(super) async fn ask(
        &self,
        worker: &Arc<WorkerInfo>,
        call: &NodeCall<'_>,
        payload: Vec<Bytes>,
    ) -> Result<NodeAnswer, Silence> {
        let losses = self.shared.routes.view.known().view.losses;
        let failed = match self.reach(worker, call, payload).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        if matches!(failed, Failed::Unreached(_) | Failed::Broken(_)) {
            self.refresh().await;
        }
        let is_live = self.shared.routes.is_live(worker, losses);
        tracing::debug!(worker = %worker.id, ?failed, is_live, "worker of temporary nodes gives no answer");
        Err(Silence::of(failed, worker.id, is_live, &call.op))
    }

    /// Asks one worker.
    pub(crate) async fn reach(
        &self,
        worker: &Arc<WorkerInfo>,
        call: &NodeCall<'_>,
        payload: Vec<Bytes>,
    ) -> Result<NodeAnswer, Failed> {
        let routes = &self.shared.routes;
        let weight = weight(&call.op, &payload);
        let link = match routes.connections.link_for(worker, weight).await {
            Ok(link) => link,
            Err(error) if error.kind() == ErrorKind::Denied => return Err(Failed::Denied(NodeError::from(&error))),
            Err(error) => {
                routes.view.surprised();
                return Err(Failed::Unreached(error));
            }
        };
        let refused = |kind, message: String| Err(Failed::Refused(NodeError::new(kind, message)));
        if let Err(error) = check_known(&call.op, (&call.op).into(), link.connection.version()) {
            return refused(NodeErrorKind::Retry, format!("worker {}: {}", worker.id, error.message()));
        }
        let deadline = routes.connections.read_deadline();
        let may_be_in_place = matches!(call.op, NodeOp::Get | NodeOp::BlockRead { .. });
        let session = link.in_place().filter(|_| may_be_in_place).cloned();
        let span = of_node(worker.id, &call.op);
        let version = link.connection.version();
        let message = said(&span, version, call.encode_for(version));
        let answering = async {
            match &session {
                Some(session) => {
                    let connection = link.connection.clone();
                    let asked = async move { connection.call_near(message, Vec::new()).await };
                    Rescued::new(asked, &session.outbox, pin_of_node).await
                }
                None => match is_near(&call.op) {
                    true => link.connection.call_near(message, payload).await,
                    false => link.connection.call(message, payload).await,
                },
            }
        };
        let answered = routes.answered_by(worker, instant().checked_add(deadline), answering).await;
        match answered {
            Ok(Ok(answer)) => {
                if weight == Weight::Value {
                    link.came(answer.payload.len());
                }
                Ok(NodeAnswer { meta: answer.meta, payload: answer.payload, session })
            }
            Ok(Err(error)) if error.kind() == ErrorKind::Invalid => refused(NodeErrorKind::Invalid, error.message().to_owned()),
            Ok(Err(error)) => {
                routes.view.surprised();
                Err(Failed::Broken(error))
            }
            Err(Unanswered::Late) => {
                refused(NodeErrorKind::Retry, format!("worker {} did not answer within {} s", worker.id, deadline.as_secs()))
            }
            Err(Unanswered::Lost) => Err(Failed::Broken(Error::retry("the cluster lost it before it answered"))),
        }
    }

    /// Does something with a block, on the worker that has it.
    pub(crate) async fn ask_block(&self, block: BlockRef, start: u32, bytes: u32) -> NodeResult<Bytes> {
        let call = NodeCall { from: ROOT, moves: 0, path: "", op: NodeOp::BlockRead { block, start, bytes }, number: None };
        let (at, mut met) = (DirId { worker: block.worker, number: block.number }, Met::new());
        let answer = loop {
            let asked = match self.worker_of(at).await {
                Ok(worker) => self.ask(&worker, &call, Vec::new()).await,
                Err(silence) => Err(silence),
            };
            match asked {
                Ok(answer) => break answer,
                Err(silence) => met.silence("", at, &call.op, silence).await?,
            }
        };
        match answer.reply()? {
            NodeReply::Bytes(_) if answer.payload.len() == bytes as usize => Ok(answer.payload),
            NodeReply::InPlace { pin, span } if span.len == u64::from(bytes) => answer.in_place(pin, span),
            _ => Err(misfit()),
        }
    }
}

/// What a call moves. How long a value is, only its answer says.
fn weight(op: &NodeOp<'_>, payload: &[Bytes]) -> Weight {
    match op {
        NodeOp::BlockRead { .. } | NodeOp::PutMany { .. } => Weight::Large,
        _ if !is_near(op) || payload.iter().map(Bytes::len).sum::<usize>() > NEAR_BYTES_MAX => Weight::Large,
        NodeOp::Get | NodeOp::GetMany { .. } => Weight::Value,
        _ => Weight::Small,
    }
}

/// Whether a call is one that a worker answers in microseconds as a rule. A long message is none, whatever it asks for.
fn is_near(op: &NodeOp<'_>) -> bool {
    match op {
        NodeOp::List { .. } | NodeOp::BlockWrite { .. } => false,
        NodeOp::Read { bytes, .. } => *bytes <= NEAR_READ_MAX,
        NodeOp::GetMany { names } => names.len() <= NEAR_VALUES_MAX,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use forebay_protocol::Raw;

    use super::*;

    #[test]
    fn what_a_call_moves_is_known_before_its_answer_but_for_values() {
        let put = NodeOp::Put { value: Raw(b"") };
        let read = |bytes| NodeOp::Read { offset: 0, bytes };
        let half = Bytes::from(vec![7; NEAR_BYTES_MAX / 2 + 1]);
        assert_eq!([&put, &NodeOp::Stat, &read(NEAR_READ_MAX)].map(|op| weight(op, &[])), [Weight::Small; 3]);
        assert_eq!([&NodeOp::Get, &NodeOp::GetMany { names: vec!["a"] }].map(|op| weight(op, &[])), [Weight::Value; 2]);
        assert_eq!(
            [&NodeOp::PutMany { values: Vec::new() }, &read(NEAR_READ_MAX + 1)].map(|op| weight(op, &[])),
            [Weight::Large; 2]
        );
        assert_eq!(weight(&put, std::slice::from_ref(&half)), Weight::Small);
        assert_eq!(weight(&put, &[half.clone(), half]), Weight::Large, "its bytes together");
    }
}
