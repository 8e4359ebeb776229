use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use forebay_protocol::{
    AtHand, DataNotice, DataReply, DataRequest, Handed, Held, Hint, ListPage, NodeCall, PeerCall, PeerRequest, decode, encode,
};
use forebay_rights::{Need, Place, needs};
use forebay_transport::{Deed, Peer, Response, Service, Session, is_audited, unix_now};
use forebay_types::{Cell, Error, ForebayPath, MountId, MountName, PageRun, Result};

use crate::gate::Line;
use crate::in_place::SessionPins;
use crate::nodes;
use crate::object::WantedObject;
use crate::read::{Answer, Reader};
use crate::serving::Serving;
use crate::uploads::SessionUploads;

/// Makes a session of each connection.
pub(crate) struct WorkerService(pub(crate) Arc<Serving>);

/// One connection: its pins and uploads end with it.
pub(crate) struct WorkerSession {
    serving: Arc<Serving>,
    peer: Peer,
    attached: AtomicBool,
    pub(crate) pins: SessionPins,
    uploads: SessionUploads,
}

impl Service for WorkerService {
    type Session = WorkerSession;

    fn open(&self, peer: Peer) -> Result<WorkerSession> {
        let (serving, uploads) = (Arc::clone(&self.0), SessionUploads::default());
        let pins = serving.in_place.session();
        Ok(WorkerSession { serving, peer, attached: AtomicBool::new(false), pins, uploads })
    }
}

impl Session for WorkerSession {
    async fn call(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> Response {
        if let Some(call) = NodeCall::decode(&meta) {
            let pins = self.attached.load(Relaxed).then_some(&self.pins);
            let call = call.and_then(|call| self.may(|| needs::node(&call.op), || of_node(&call)).map(|()| call));
            return nodes::answer(&self.serving, pins, call, payload).await;
        }
        if let Some(call) = PeerCall::decode(&meta) {
            let call =
                call.and_then(|call| self.may(|| needs::node_peer(&call.op), || of_peer((&call.op).into())).map(|()| call));
            return nodes::answer_peer(&self.serving, call, payload).await;
        }
        let answer = match PeerRequest::decode(&meta) {
            Some(request) => self.answer_peer(request).await,
            None => self.answer(decode(&meta), payload).await,
        };
        answer.unwrap_or_else(|error| failed(&error))
    }

    fn place(self: &Arc<Self>, meta: &Bytes, payload_bytes: u32) -> Option<Box<dyn forebay_transport::Place>> {
        let call = NodeCall::decode(meta)?.ok()?;
        self.may_quietly(|| needs::node(&call.op)).ok()?;
        let place = nodes::place(&self.serving, &call, payload_bytes)?;
        // With no place the call comes as any other, and is told then.
        self.may(|| needs::node(&call.op), || of_node(&call)).ok()?;
        Some(place)
    }

    fn failed(&self, meta: &Bytes) -> Response {
        match NodeCall::decode(meta) {
            Some(_) => nodes::failed(),
            None => failed(&Error::internal(format!(
                "worker {}: a request failed by a defect: see the worker's log",
                self.serving.id
            ))),
        }
    }

    fn notice(self: &Arc<Self>, meta: Bytes) {
        let notice = decode(&meta).and_then(|notice| self.may_quietly(|| needs::notice(&notice)).map(|()| notice));
        match notice {
            Ok(DataNotice::Unpin { pins, counts }) => {
                self.pins.release(&pins);
                self.serving.count_in_place(&counts);
            }
            Err(error) => tracing::warn!(peer = self.peer.address, %error, "unreadable notice"),
        }
    }

    fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        self.may_quietly(|| Need::read(Place::Mount(wanted.mount))).ok()?;
        self.serving.at_hand(wanted)
    }

    fn closed(&self) -> Option<Box<dyn Send>> {
        self.uploads.close(&self.serving);
        self.pins.close().map(|left| Box::new(left) as Box<dyn Send>)
    }
}

impl WorkerSession {
    /// `Denied` when the one at the other end has not what a request needs.
    fn may(&self, need: impl FnOnce() -> Need, deed: impl FnOnce() -> Deed) -> Result<()> {
        if self.peer.caller.is_unlimited() && !is_audited() {
            return Ok(());
        }
        self.peer.may(&need(), |mount| self.mount_name(mount), deed)
    }

    /// The same without a word to the audit log, for what is asked for again or hands over what was given before.
    fn may_quietly(&self, need: impl FnOnce() -> Need) -> Result<()> {
        if self.peer.caller.is_unlimited() {
            return Ok(());
        }
        self.peer.caller.may(&need(), unix_now(), |mount| self.mount_name(mount))
    }

    /// Rights go by names, and a mount that was just made may have none here yet: with one that is not there at all, the request
    /// says so.
    async fn hear_of_mount(&self, request: &DataRequest) {
        if self.peer.caller.is_unlimited() && !is_audited() {
            return;
        }
        if let Place::Mount(mount) = needs::data(request).place {
            let _ = self.serving.mount(mount).await;
        }
    }

    fn mount_name(&self, mount: MountId) -> Option<MountName> {
        self.serving.mounts.find(mount).map(|door| door.mount.name.clone())
    }

    /// What a request would do, for the audit log.
    fn deed(&self, request: &DataRequest) -> Deed {
        let object = match request {
            DataRequest::Put { mount, key, .. }
            | DataRequest::PutBegin { mount, key, .. }
            | DataRequest::Delete { mount, key }
            | DataRequest::Changed { mount, key, .. }
            | DataRequest::Open { mount, key, .. }
            | DataRequest::Stat { mount, key, .. }
            | DataRequest::ReadLatest { mount, key, .. }
            | DataRequest::ReadObject { mount, key, .. } => Some((*mount, key)),
            DataRequest::Read { version, .. } | DataRequest::ReadCell { version, .. } | DataRequest::Prefetch { version, .. } => {
                Some((version.mount, &version.key))
            }
            _ => None,
        };
        let on = object.map(|(mount, key)| match self.mount_name(mount) {
            Some(name) => ForebayPath::new(name, key.clone()).to_string(),
            None => format!("mount number {}: {key}", mount.0),
        });
        Deed { port: "data", what: request.into(), on: on.unwrap_or_default() }
    }

    async fn answer_peer(&self, request: Result<PeerRequest>) -> Result<Response> {
        let (request, serving) = (request?, &self.serving);
        self.may(|| needs::peer(&request), || of_peer((&request).into()))?;
        Ok(match request {
            PeerRequest::Copy { segment, start, pages } => {
                let (runs, sums, payload) = serving.copy(segment, PageRun::of(start, pages)?).await;
                serving.pace.send(payload.iter().map(|bytes| bytes.len() as u64).sum()).await;
                Response { meta: encode(&DataReply::Copied { runs, sums }), payload, ..Response::default() }
            }
            PeerRequest::Form { form } => reply(DataReply::Form(serving.forms.known.get(form))),
        })
    }

    async fn answer(self: &Arc<Self>, request: Result<DataRequest>, payload: Bytes) -> Result<Response> {
        let (request, serving) = (request?, &self.serving);
        self.hear_of_mount(&request).await;
        self.may(|| needs::data(&request), || self.deed(&request))?;
        Ok(match request {
            DataRequest::Read { operation, version, start, len, in_place } => {
                let queued = Queued::new(serving);
                let read = serving.read(self.reader(operation, in_place), &version, start, len).await?;
                let hint = queued.sent(&read).await;
                with_answer(read, |in_place| DataReply::Read { in_place, hint })
            }
            DataRequest::ReadLatest { operation, mount, key, range, in_place } => {
                let queued = Queued::new(serving);
                let reader = self.reader(operation, in_place);
                let (info, start, len, read) = serving.read_latest(reader, mount, &key, range).await?;
                let hint = queued.sent(&read).await;
                with_answer(read, |in_place| DataReply::ReadLatest { info, start, len, in_place, hint })
            }
            DataRequest::Stat { mount, key, complete } => {
                let (info, attributes) = serving.stat(mount, &key, complete).await?;
                reply(DataReply::Stat(info, attributes))
            }
            DataRequest::ReadObject { operation, mount, key, range, first, complete, in_place } => {
                let queued = Queued::new(serving);
                let reader = self.reader(operation, in_place);
                let wanted = WantedObject { range, first, complete };
                let (info, attributes, start, len, read) = serving.read_object(reader, mount, &key, wanted).await?;
                let (hint, hit) = (queued.sent(&read).await, read.hit);
                with_answer(read, |in_place| DataReply::ReadObject { info, attributes, start, len, in_place, hint, hit })
            }
            DataRequest::Attach => return self.attach(),
            DataRequest::Ring => return self.ring(),
            DataRequest::Open { mount, key } => reply(DataReply::Info(serving.open(mount, &key).await?)),
            DataRequest::List { mount, prefix, folders, after, limit } => {
                let listing = serving.list(mount, &prefix, folders, after.as_ref(), limit).await?;
                let (objects, folders, next) = (listing.objects, listing.folders, listing.next);
                reply(DataReply::Listed(ListPage { objects, folders, next }))
            }
            DataRequest::Prefetch { version, ranges, keep, urgent, .. } => {
                let line = if urgent { Line::Urgent } else { Line::Prefetch };
                reply(DataReply::Fetched { bytes: serving.prefetch(&version, &ranges, line, keep).await? })
            }
            DataRequest::Put { mount, key, condition } => {
                reply(DataReply::Info(serving.put(mount, &key, condition, payload).await?))
            }
            DataRequest::PutBegin { mount, key } => {
                let (upload, part_bytes) = self.uploads.begin(serving, mount, &key).await?;
                reply(DataReply::Upload { upload, part_bytes })
            }
            DataRequest::PutPart { upload, part } => {
                self.uploads.part(serving, upload, part, payload).await?;
                reply(DataReply::Done)
            }
            DataRequest::PutCommit { upload, parts, condition } => {
                reply(DataReply::Info(self.uploads.commit(serving, upload, parts, condition).await?))
            }
            DataRequest::PutAbort { upload } => {
                self.uploads.abort(upload).await?;
                reply(DataReply::Done)
            }
            DataRequest::Delete { mount, key } => {
                serving.delete(mount, &key).await?;
                reply(DataReply::Done)
            }
            DataRequest::Refresh { mount, prefix } => {
                serving.refresh(mount, &prefix);
                reply(DataReply::Done)
            }
            // What the peer says of the version is not believed: words of two writers may overtake each other.
            DataRequest::Changed { mount, key, .. } => {
                serving.note_change(mount, &key);
                // Behind it, and the view last: who is not in there answers from nothing that is older than this.
                let hears = serving.hearing.holds();
                reply(DataReply::Heard { view: if hears { serving.view().version } else { 0 } })
            }
            DataRequest::Free { segments } => {
                let cells = segments.iter().flat_map(|segment| serving.forms.take_cells(*segment));
                let segments: Vec<_> = cells.chain(segments.iter().copied()).collect();
                reply(DataReply::Freed { bytes: segments.iter().map(|segment| serving.store.free(*segment)).sum() })
            }
            DataRequest::Keep { segments, keep } => {
                segments.iter().for_each(|segment| {
                    serving.store.set_keep(*segment, keep);
                });
                reply(DataReply::Done)
            }
            DataRequest::Held { segments } => {
                let held = segments.iter().map(|segment| serving.store.held(*segment));
                let held = held.map(|held| Held {
                    dram_bytes: held.dram_bytes,
                    disk_bytes: held.disk_bytes,
                    bytes: held.bytes,
                    keep: held.keep,
                });
                reply(DataReply::Held(held.collect()))
            }
            DataRequest::Queue => {
                let (queue, routes) = (serving.queue.load(Relaxed), serving.routes.load().version());
                reply(DataReply::Queue(Hint { queue, routes }))
            }
            DataRequest::Present { runs } => {
                let held = runs.iter().map(|(segment, run)| serving.store.state(*segment, *run).missing.is_empty());
                reply(DataReply::Present(held.collect()))
            }
            DataRequest::ReadCell { operation, version, form, row_group, column, in_place } => {
                let queued = Queued::new(serving);
                let cell = Cell { row_group, column };
                match serving.read_cell(self.reader(operation, in_place), version, form, cell).await? {
                    Some(read) => {
                        let hint = queued.sent(&read).await;
                        with_answer(read, |in_place| DataReply::Read { in_place, hint })
                    }
                    None => reply(DataReply::NoCell { hint: queued.sent(&Answer::default()).await }),
                }
            }
            DataRequest::Report => reply(DataReply::Report(Box::new(serving.report()))),
        })
    }

    fn reader(&self, operation: forebay_types::OperationId, in_place: bool) -> Reader<'_> {
        Reader { session: self, operation, in_place: in_place && self.attached.load(Relaxed) }
    }

    /// Memory is shared with processes of the same user on the same host only.
    fn check_beside(&self) -> Result<()> {
        if !(self.peer.unix && self.peer.same_user) {
            return Err(Error::denied(
                "reading in place is for processes of the same user on the same host: read without it here".to_string(),
            ));
        }
        match self.serving.in_place.is_on() {
            true => Ok(()),
            false => Err(Error::denied("this worker runs without reading in place: read without it here".to_string())),
        }
    }

    fn ring(&self) -> Result<Response> {
        self.check_beside()?;
        Ok(Response { meta: encode(&DataReply::Done), opens_ring: true, ..Response::default() })
    }

    fn attach(&self) -> Result<Response> {
        self.check_beside()?;
        let arena = self.serving.store.arena()?;
        self.attached.store(true, Relaxed);
        let meta = encode(&DataReply::Attached { arena_bytes: arena.bytes });
        Ok(Response { meta, descriptor: Some(arena.fd), ..Response::default() })
    }
}

/// A read that is under way, for the queue length that answers carry.
struct Queued<'a>(&'a Serving, Instant);

impl<'a> Queued<'a> {
    fn new(serving: &'a Serving) -> Self {
        serving.queue.fetch_add(1, Relaxed);
        Self(serving, Instant::now())
    }

    /// Waits for the answer's turn to be sent; says how the worker stands then.
    async fn sent(self, answer: &Answer) -> Hint {
        let bytes = answer.payload.iter().map(|bytes| bytes.len() as u64).sum();
        self.0.pace.send(bytes).await;
        if answer.hit && bytes > 0 {
            self.0.busy.answered(self.1, bytes);
        }
        Hint { queue: self.0.queue.load(Relaxed).saturating_sub(1), routes: self.0.routes.load().version() }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queue.fetch_sub(1, Relaxed);
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

fn with_answer(answer: Answer, reply: impl FnOnce(Option<(u64, forebay_protocol::Span)>) -> DataReply) -> Response {
    Response { meta: encode(&reply(answer.in_place)), payload: answer.payload, ..Response::default() }
}
