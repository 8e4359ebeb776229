//! Connections: what comes in, whether it may, and which room answers it.
//!
//! Owns: a connection's pins and uploads, what is held at its word, and the turn from messages to calls and back.
//!
//! Never does: anything that a room does.
//!
//! Start with [`WorkerService`].

mod answers;
mod reads;
mod refused;
mod rights;
mod traced;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use forebay_protocol::{
    AtHand, DataNotice, DataReply, Handed, NodeCall, PeerCall, PeerRequest, TraceContext, decode_from, encode, node_reply_for,
    reply_for, speaking,
};
use forebay_rights::{Need, Place, needs};
use forebay_trace::{Kind, Span, within};
use forebay_transport::{Deed, Leaving, Peer, Response, Service, Session};
use forebay_types::{Error, Result, ResultExt};

use crate::in_place::SessionPins;
use crate::nodes;
use crate::origin::Bringer;
use crate::rooms::Rooms;
use crate::write::SessionUploads;

use refused::Refused;

/// Makes a session of each connection.
pub(crate) struct WorkerService {
    rooms: Arc<Rooms>,
    refused: Arc<Refused>,
}

impl WorkerService {
    pub(crate) fn new(rooms: Arc<Rooms>) -> Self {
        Self { rooms, refused: Arc::default() }
    }
}

/// One connection: its pins and uploads end with it, and what is held of what it had brought.
pub(crate) struct WorkerSession {
    rooms: Arc<Rooms>,
    refused: Arc<Refused>,
    peer: Peer,
    attached: AtomicBool,
    /// Accesses are recorded over this connection, and the audit log has that.
    records: AtomicBool,
    bringer: Bringer,
    pins: SessionPins,
    uploads: SessionUploads,
}

impl Service for WorkerService {
    type Session = WorkerSession;

    fn open(&self, peer: Peer) -> Result<WorkerSession> {
        let (rooms, uploads) = (Arc::clone(&self.rooms), SessionUploads::new(&self.rooms.writes));
        let refused = Arc::clone(&self.refused);
        let (bringer, pins) = (rooms.origin.claims.bringer(), rooms.in_place.session());
        let (attached, records) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(WorkerSession { rooms, refused, peer, attached, records, bringer, pins, uploads })
    }

    fn leaving(&self) -> Option<Leaving> {
        Some(self.rooms.signals.load.leaving())
    }
}

impl WorkerSession {
    async fn answered(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> Response {
        if let Some(call) = NodeCall::decode(&meta) {
            let pins = self.attached.load(Relaxed).then_some(&self.pins);
            let call = call.and_then(|call| self.may(|| needs::node(&call.op), || of_node(&call)).map(|()| call));
            if self.refused.has(&meta, payload.len()) {
                return nodes::failed();
            }
            let _watched = call.as_ref().ok().map(|call| self.refused.watch(call, &meta, payload.len(), &self.peer));
            return self.of_nodes(self.rooms.nodes.answer(pins, call, payload).await);
        }
        // In a place of its own: calls about nodes are small and many, and would be as large as the largest of all others.
        Box::pin(self.answered_else(meta, payload)).await
    }

    /// The same for what is no call about temporary nodes of a client.
    async fn answered_else(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> Response {
        if let Some(call) = PeerCall::decode(&meta) {
            let call =
                call.and_then(|call| self.may(|| needs::node_peer(&call.op), || of_peer((&call.op).into())).map(|()| call));
            return self.of_nodes(self.rooms.nodes.answer_peer(call, payload).await);
        }
        let version = self.peer.version;
        let answer = match speaking(version, || PeerRequest::decode(&meta)) {
            Some(request) => self.answer_peer(request, payload).await,
            None => {
                let request = decode_from(version, &meta);
                // Most often somebody takes it for the coordinator, of which `forebay up` prints the address above this one.
                let request = request.context(
                    || "this is a worker, and what it was asked is nothing that one answers: is that the coordinator's address?",
                );
                self.answer(request, payload).await
            }
        };
        let answer = answer.unwrap_or_else(|error| failed(&error));
        Response { meta: reply_for(version, answer.meta), ..answer }
    }

    /// The same as a part of what is recorded where it was asked.
    async fn answered_below(self: &Arc<Self>, asked: TraceContext, meta: Bytes, payload: Bytes) -> Response {
        let mut span = Span::below(Some(asked), "answer", Kind::Server);
        span.set("forebay.worker", || self.rooms.cluster.id.to_string());
        within(span.context(), self.answered(meta, payload)).await
    }

    /// An answer about temporary nodes, for who asked.
    fn of_nodes(&self, answer: Response) -> Response {
        Response { meta: node_reply_for(self.peer.version, answer.meta), ..answer }
    }
}

impl Session for WorkerSession {
    async fn call(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> Response {
        match TraceContext::split(meta) {
            (None, meta) => self.answered(meta, payload).await,
            (Some(asked), meta) => Box::pin(self.answered_below(asked, meta, payload)).await,
        }
    }

    fn place(self: &Arc<Self>, meta: &Bytes, payload_bytes: u32) -> Option<Box<dyn forebay_transport::Place>> {
        if let Some(call) = PeerCall::decode(meta) {
            let call = call.ok()?;
            self.may_quietly(|| needs::node_peer(&call.op)).ok()?;
            let place = self.rooms.nodes.place_of_peer(&call, payload_bytes)?;
            self.may(|| needs::node_peer(&call.op), || of_peer((&call.op).into())).ok()?;
            return Some(place);
        }
        let (asked, meta) = TraceContext::split(meta.clone());
        let call = NodeCall::decode(&meta)?.ok()?;
        self.may_quietly(|| needs::node(&call.op)).ok()?;
        let place = self.rooms.nodes.place(&call, payload_bytes)?;
        // With no place the call comes as any other, and is told then.
        self.may(|| needs::node(&call.op), || of_node(&call)).ok()?;
        Some(traced::placed(asked, self.rooms.cluster.id, place))
    }

    fn failed(&self, meta: &Bytes) -> Response {
        let (_, meta) = TraceContext::split(meta.clone());
        match NodeCall::decode(&meta) {
            Some(_) => nodes::failed(),
            None => failed(&Error::internal(format!(
                "worker {}: a request failed by a defect: see the worker's log",
                self.rooms.cluster.id
            ))),
        }
    }

    fn given_up(&self, meta: &Bytes) -> Response {
        let (_, message) = TraceContext::split(meta.clone());
        let why = format!(
            "worker {}: it was not done while its caller waited, and is given up; what it was to change may have changed",
            self.rooms.cluster.id
        );
        match NodeCall::decode(&message).is_some() || PeerCall::decode(&message).is_some() {
            true => nodes::given_up(why),
            false => failed(&Error::retry(why)),
        }
    }

    fn notice(self: &Arc<Self>, meta: Bytes) {
        let notice =
            decode_from(self.peer.version, &meta).and_then(|notice| self.may_quietly(|| needs::notice(&notice)).map(|()| notice));
        match notice {
            Ok(DataNotice::Unpin { pins, counts }) => {
                self.pins.release(&pins);
                self.rooms.reads.count_in_place(&self.may_have_made(counts));
            }
            Ok(DataNotice::Ended { operation }) => self.rooms.origin.claims.ended(operation),
            Err(error) => tracing::warn!(peer = self.peer.address, %error, "unreadable notice"),
        }
    }

    fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        self.may_quietly(|| Need::read(Place::Mount(wanted.mount))).ok()?;
        self.rooms.reads.at_hand(wanted)
    }

    fn closed(&self) -> Option<Box<dyn Send>> {
        self.uploads.close(&self.rooms.writes);
        self.rooms.origin.claims.gone(self.bringer);
        self.pins.close().map(|left| Box::new(left) as Box<dyn Send>)
    }
}

fn of_node(call: &NodeCall<'_>) -> Deed {
    Deed { port: "data", what: (&call.op).into(), on: format!("/tmp/{}", call.path) }
}

fn of_peer(what: &'static str) -> Deed {
    Deed { port: "data", what, on: String::new() }
}

fn reply(reply: DataReply) -> Response {
    Response::new(encode(&reply))
}

fn failed(error: &Error) -> Response {
    reply(DataReply::failed(error))
}

#[cfg(test)]
mod tests {
    use forebay_coordinator::CoordinatorSettings;
    use forebay_nodes::{NodeErrorKind, ROOT};
    use forebay_protocol::{DataRequest, NodeOp, NodeReply, PROTOCOL_VERSION, PeerOp};
    use forebay_rights::{Caller, Who};
    use forebay_types::ErrorKind;

    use super::*;
    use crate::Tuning;
    use crate::process::bed::Bed;

    /// A call is put into memory of its size as soon as it comes, and copied there, whatever it is.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_about_nodes_takes_less_memory_than_what_else_is_asked() {
        let bed = Bed::start(CoordinatorSettings::LEASE).await;
        let worker = bed.worker("one", Tuning::default()).await;
        let caller = Caller::new(Who::Owner);
        let peer = Peer { caller, address: String::new(), unix: true, same_user: true, version: PROTOCOL_VERSION };
        let session = Arc::new(WorkerService::new(Arc::clone(&worker.rooms)).open(peer).unwrap());
        let meta = NodeCall { from: ROOT, moves: 0, path: "a", op: NodeOp::Get, number: None }.encode();
        let call = size_of_val(&session.call(meta.clone(), Bytes::new()));
        let other = size_of_val(&session.answered_else(meta, Bytes::new()));
        assert!(call < other, "{call} bytes, and {other} of what is no call about nodes");
        drop(session);
        worker.shutdown().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_given_up_is_answered_in_the_messages_of_who_asked() {
        let bed = Bed::start(CoordinatorSettings::LEASE).await;
        let worker = bed.worker("one", Tuning::default()).await;
        let caller = Caller::new(Who::Owner);
        let peer = Peer { caller, address: String::new(), unix: true, same_user: true, version: PROTOCOL_VERSION };
        let session = WorkerService::new(Arc::clone(&worker.rooms)).open(peer).unwrap();
        let of_nodes = [
            NodeCall { from: ROOT, moves: 0, path: "a", op: NodeOp::Get, number: None }.encode(),
            PeerCall { from: ROOT, path: "a", op: PeerOp::RemoveNodes { recursive: true } }.encode(),
        ];
        for call in &of_nodes {
            let answer = session.given_up(call);
            let NodeReply::Failed(error) = NodeReply::decode(&answer.meta).unwrap() else { panic!("it is given up") };
            assert_eq!(error.kind, NodeErrorKind::Retry, "not that there is none: {error}");
        }
        let answer = session.given_up(&encode(&DataRequest::Queue));
        let reply: DataReply = decode_from(PROTOCOL_VERSION, &answer.meta).unwrap();
        assert_eq!(reply.or_error().unwrap_err().kind(), ErrorKind::Retry);
        drop(session);
        worker.shutdown().await;
    }
}
