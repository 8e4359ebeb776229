use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{FrameHeader, FrameKind, META_BYTES_MAX};
use forebay_runtime::time::timeout;
use forebay_types::{Error, ErrorKind, Result};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::batch::OutFrame;
use crate::caught::{caught, caught_future};
use crate::dial::HANDSHAKE_TIMEOUT;
use crate::entrance::Place as Waiting;
use crate::frame_reader::{FrameReader, Incoming};
use crate::in_flight::InFlight;
use crate::link::{Hangup, Link, Sink};
use crate::listener::Accepted;
use crate::outbox::Outbox;
use crate::ring::{Answers, MESSAGE_BYTES_MAX, Request, Rings, Seat, Slots};
use crate::tls::Acceptor;
use crate::{Budget, Peer, Place, Response, Security, ServerLimits, Service, Session, Spent, audit, handshake};

/// How long a peer gets to read what was said to it last.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(500);
/// When answers of all connections together wait for more than half of the server's memory for requests, a connection has so many calls
/// in flight, and so many bytes of answers waiting, before it is read further: who takes its answers has them all the same.
const CALLS_WHEN_FULL: usize = 16;
const ANSWER_BYTES_WHEN_FULL: usize = 1 << 20;
/// A frame that was begun must come within so long: it holds memory that others wait for.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
/// A request waits so long for its memory. What has it may wait for other servers, whose requests wait here: somebody has to end that.
const MEMORY_WITHIN: Duration = Duration::from_secs(60);
/// Answers are sent at the latest when so many bytes wait.
const FLUSH_BYTES: usize = 256 << 10;

/// What all connections of a server share.
pub(crate) struct Shared<S> {
    pub(crate) service: Arc<S>,
    pub(crate) security: Security,
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) limits: ServerLimits,
    pub(crate) rings: Arc<Rings>,
    /// Places for connections that have passed the handshake.
    pub(crate) admitted: Arc<Semaphore>,
    /// What requests take their memory from.
    pub(crate) budget: Budget,
    /// Bytes of answers that wait to be sent, over all connections.
    pub(crate) unsent: Arc<AtomicUsize>,
}

/// Serves one connection until it ends or `stop` is set and its running calls are done.
pub(crate) async fn serve<S: Service>(shared: Arc<Shared<S>>, accepted: Accepted, place: Waiting, stop: watch::Receiver<bool>) {
    let peer = accepted.peer.clone();
    let received = tokio::select! {
        received = timeout(HANDSHAKE_TIMEOUT, receive(&shared, accepted)) => received,
        () = place.gives_way() => {
            return warn!(peer = %peer.address, "connection refused: it says nothing, and others wait for its place");
        }
    };
    drop(place);
    match received {
        Ok(Ok((live, reader, sink))) => live.run(reader, sink, stop).await,
        Ok(Err(error)) => {
            warn!(peer = %peer.address, reason = %error, "connection refused");
            audit::tell_stranger(&peer.address, &error);
        }
        Err(_) => warn!(peer = %peer.address, "connection refused: no handshake in time"),
    }
}

async fn refuse(mut reader: FrameReader, mut sink: Sink, hangup: &Hangup, error: &Error) {
    // The peer may be gone, or no forebay.
    let _ = handshake::refuse(&mut sink, error).await;
    hangup.finish();
    let _ = timeout(FAREWELL_TIMEOUT, reader.skip_all()).await;
}

async fn receive<S: Service>(shared: &Shared<S>, accepted: Accepted) -> Result<(Live<S::Session>, FrameReader, Sink)> {
    let Accepted { fd, peer } = accepted;
    let link = match &shared.acceptor {
        Some(acceptor) if !peer.unix => {
            let stream = TcpStream::from_std(std::net::TcpStream::from(fd))?;
            Link::tls(acceptor.accept(stream).await?.into())?
        }
        _ => Link::plain(fd, peer.unix)?,
    };
    let Link { source, mut sink, hangup } = link;
    let mut reader = FrameReader::new(source);
    let trusted = peer.unix && peer.same_user;
    let opened = match handshake::receive(&mut reader, &mut sink, &shared.security, trusted).await {
        Ok(caller) => match Arc::clone(&shared.admitted).try_acquire_owned() {
            Ok(admitted) => shared.service.open(Peer { caller, ..peer.clone() }).map(|session| (session, admitted)),
            Err(_) => Err(Error::retry(format!("the server has its limit of {} connections", shared.limits.connections))),
        },
        Err(error) => Err(error),
    };
    match opened {
        Ok((session, admitted)) => {
            // From here on the session's end is told, whatever happens.
            let live = Live(Arc::new(Inner {
                session: Arc::new(session),
                outbox: Arc::new(Outbox::one_of(&sink, shared.unsent.clone())),
                unsent: shared.unsent.clone(),
                in_flight: InFlight::default(),
                hangup: Arc::new(hangup),
                ended: CancellationToken::new(),
                peer,
                limits: shared.limits,
                rings: shared.rings.clone(),
                budget: shared.budget.clone(),
                _admitted: admitted,
                seat: OnceLock::new(),
                closed: AtomicBool::new(false),
            }));
            handshake::welcome(&mut sink).await?;
            Ok((live, reader, sink))
        }
        Err(error) => {
            if error.kind() != ErrorKind::Closed {
                refuse(reader, sink, &hangup, &error).await;
            }
            Err(error)
        }
    }
}

type Call = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A call that was polled once.
enum Begun {
    Answered(Response),
    Pending(Call),
}

/// A connection that has passed the handshake; dropping it ends it.
struct Live<S: Session>(Arc<Inner<S>>);

struct Inner<S> {
    session: Arc<S>,
    outbox: Arc<Outbox>,
    unsent: Arc<AtomicUsize>,
    in_flight: InFlight,
    hangup: Arc<Hangup>,
    /// This side has ended it.
    ended: CancellationToken,
    peer: Peer,
    limits: ServerLimits,
    rings: Arc<Rings>,
    budget: Budget,
    _admitted: OwnedSemaphorePermit,
    /// Its place among the rings, when it has one.
    seat: OnceLock<Arc<Seat>>,
    closed: AtomicBool,
}

impl<S: Session> Live<S> {
    async fn run(self, reader: FrameReader, sink: Sink, stop: watch::Receiver<bool>) {
        let inner = &self.0;
        let stopped = caught_future(inner.serve(reader, sink, stop)).await == Some(true);
        inner.end();
        inner.leave_ring();
        inner.in_flight.cancel_all().await;
        if let Some(kept) = inner.close()
            && !stopped
        {
            // The place of a connection is taken as long.
            kept.while_peer_lives().await;
        }
    }
}

impl<S: Session> Inner<S> {
    /// Serves until the connection ends; whether it ended because the server stops.
    async fn serve(self: &Arc<Self>, mut reader: FrameReader, sink: Sink, mut stop: watch::Receiver<bool>) -> bool {
        let inner = self;
        reader.flush_before_waiting(inner.outbox.clone());
        let _writer = Owned(forebay_runtime::spawn({
            let inner = inner.clone();
            async move {
                if let Err(error) = inner.outbox.write(sink).await {
                    debug!(peer = %inner.peer.address, reason = %error, "connection lost");
                    inner.end();
                }
            }
        }));
        let ended = tokio::select! {
            biased;
            () = inner.ended.cancelled() => Some(Err(Error::closed("ended by this side"))),
            ended = inner.read(&mut reader) => Some(ended),
            // A server that is gone without a word stops too.
            _ = async { stop.wait_for(|stop| *stop).await.is_ok() } => None,
        };
        match ended {
            Some(Ok(())) => debug!(peer = %inner.peer.address, "connection ended by the peer"),
            Some(Err(error)) if error.kind() == ErrorKind::Closed => {
                debug!(peer = %inner.peer.address, reason = %error, "connection lost");
            }
            Some(Err(error)) => {
                warn!(peer = %inner.peer.address, reason = %error, "connection ended: the peer breaks the protocol");
            }
            None => {
                inner.leave_ring();
                inner.in_flight.below(1, usize::MAX).await;
                inner.outbox.flush();
                inner.outbox.drained_to(0).await;
                inner.hangup.finish();
                let _ = timeout(FAREWELL_TIMEOUT, reader.skip_all()).await;
                return true;
            }
        }
        false
    }
}

impl<S: Session> Drop for Live<S> {
    fn drop(&mut self) {
        self.0.end();
        self.0.leave_ring();
        drop(self.0.in_flight.abort_all());
        drop(self.0.close());
    }
}

/// What a session has left for as long as its peer lives.
struct Kept {
    what: Option<Box<dyn Send>>,
    hangup: Arc<Hangup>,
}

impl Kept {
    async fn while_peer_lives(mut self) {
        self.hangup.gone().await;
        self.what = None;
    }
}

impl Drop for Kept {
    /// Where nobody waits any more, as when a server ends in a process that goes on, a task of its own does.
    fn drop(&mut self) {
        if let Some(what) = self.what.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let hangup = Arc::clone(&self.hangup);
            runtime.spawn(async move {
                hangup.gone().await;
                drop(what);
            });
        }
    }
}

impl<S: Session> Inner<S> {
    async fn read(self: &Arc<Self>, reader: &mut FrameReader) -> Result<()> {
        let most = self.limits.payload_bytes;
        loop {
            let (in_flight, payload_bytes) = self.may_have();
            if !self.in_flight.is_below(in_flight, most) {
                self.outbox.flush();
                self.in_flight.below(in_flight, most).await;
            }
            match self.outbox.bytes() {
                waiting if waiting > payload_bytes => {
                    self.outbox.flush();
                    self.outbox.drained_to(payload_bytes).await;
                }
                waiting if waiting > FLUSH_BYTES => self.outbox.flush(),
                _ => {}
            }
            let Some((header, spent)) = self.announced(reader).await? else { return Ok(()) };
            let here = reader.has(u64::from(header.meta_len) + u64::from(header.payload_len));
            let arriving = async {
                let frame = reader.rest(header).await?;
                self.take(frame, spent, reader).await
            };
            match here {
                true => arriving.await?,
                false => match timeout(ARRIVES_WITHIN, arriving).await {
                    Ok(taken) => taken?,
                    Err(_) => return Err(Error::invalid("a frame that was begun does not come")),
                },
            }
        }
    }

    /// Calls in flight, and bytes of answers that wait to be sent, with which the connection is read further.
    fn may_have(&self) -> (usize, usize) {
        let ServerLimits { in_flight, payload_bytes, .. } = self.limits;
        match self.unsent.load(Ordering::Relaxed) as u64 > self.budget.bytes() / 2 {
            true => (in_flight.min(CALLS_WHEN_FULL), payload_bytes.min(ANSWER_BYTES_WHEN_FULL)),
            false => (in_flight, payload_bytes),
        }
    }

    /// The header of the next frame, with the memory for all of it; waits for both. None at the end.
    async fn announced(self: &Arc<Self>, reader: &mut FrameReader) -> Result<Option<(FrameHeader, Spent)>> {
        let Some(header) = reader.header(META_BYTES_MAX).await? else { return Ok(None) };
        let bytes = u64::from(header.meta_len) + u64::from(header.payload_len);
        let spent = match self.budget.try_take(bytes) {
            Some(spent) => spent,
            None => {
                self.outbox.flush();
                let late = |_| Error::retry("requests have had all of the server's memory for them for too long");
                timeout(MEMORY_WITHIN, self.budget.take(bytes)).await.map_err(late)?
            }
        };
        Ok(Some((header, spent)))
    }

    async fn take(self: &Arc<Self>, frame: Incoming, spent: Spent, reader: &mut FrameReader) -> Result<()> {
        let (header, meta) = (frame.header, frame.meta);
        if header.descriptors > 0 || (header.payload_len > 0 && header.kind != FrameKind::Request) {
            return Err(Error::invalid("a frame has a descriptor or a payload that its kind has not"));
        }
        match header.kind {
            FrameKind::Request if self.in_flight.contains(header.tag) => {
                Err(Error::invalid(format!("request {} is in flight already", header.tag)))
            }
            FrameKind::Request => {
                if let Some(mut place) = self.place(&meta, header.payload_len) {
                    reader.payload_into(place.memory()).await?;
                    let response = caught(|| place.filled()).unwrap_or_else(|| self.failed(&meta));
                    if let Some(frame) = self.reply(header.tag, response) {
                        self.outbox.push(frame);
                    }
                    return Ok(());
                }
                let payload = reader.payload(header.payload_len).await?;
                if let Some(seat) = self.seat.get()
                    && meta.len() + payload.len() <= MESSAGE_BYTES_MAX
                {
                    seat.came_by_socket();
                }
                self.call(header.tag, meta, payload, spent);
                Ok(())
            }
            FrameKind::Cancel => {
                self.in_flight.cancel(header.tag);
                Ok(())
            }
            FrameKind::Notice => {
                if caught(|| self.session.notice(meta)).is_none() {
                    error!(peer = %self.peer.address, "a notice was lost by a defect");
                }
                Ok(())
            }
            FrameKind::Reply | FrameKind::Hello => Err(Error::invalid("a client sends no replies")),
        }
    }

    /// The service's own place for the payload of a request, if it has one of just its size.
    fn place(&self, meta: &Bytes, payload_len: u32) -> Option<Box<dyn Place>> {
        if payload_len == 0 {
            return None;
        }
        caught(|| {
            let mut place = self.session.place(meta, payload_len)?;
            (place.memory().len() == payload_len as usize).then_some(place)
        })?
    }

    /// Runs a call: here when its answer is at hand, else in a task.
    fn call(self: &Arc<Self>, tag: u64, meta: Bytes, payload: Bytes, spent: Spent) {
        let (bytes, asked) = (payload.len(), meta.clone());
        match self.begin(meta, payload) {
            Begun::Answered(response) => {
                if let Some(frame) = self.reply(tag, response) {
                    self.outbox.push(frame);
                }
            }
            Begun::Pending(call) => self.go_on(tag, bytes, asked, call, Some(spent)),
        }
    }

    /// Begins a call and takes its answer when that is at hand. One that panics is answered so, and nothing else of the connection
    /// knows of it.
    fn begin(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> Begun {
        let (session, asked) = (self.session.clone(), meta.clone());
        let mut call: Call = Box::pin(async move { session.call(meta, payload).await });
        // A future is to wake whoever polled it last, which will be the task.
        match caught(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop()))) {
            Some(Poll::Ready(response)) => Begun::Answered(response),
            Some(Poll::Pending) => Begun::Pending(call),
            None => Begun::Answered(self.failed(&asked)),
        }
    }

    /// Runs the rest of a call in a task.
    fn go_on(self: &Arc<Self>, tag: u64, bytes: usize, asked: Bytes, call: Call, spent: Option<Spent>) {
        let inner = self.clone();
        self.in_flight.spawn(tag, bytes, async move {
            let response = caught_future(call).await.unwrap_or_else(|| inner.failed(&asked));
            drop(spent);
            if inner.in_flight.finish(tag)
                && let Some(frame) = inner.reply(tag, response)
            {
                inner.outbox.send(frame);
            }
        });
    }

    /// What a call is answered that failed by a defect.
    fn failed(&self, meta: &Bytes) -> Response {
        error!(peer = %self.peer.address, "a call failed by a defect, which was reported where it happened");
        self.session.failed(meta)
    }

    fn reply(self: &Arc<Self>, tag: u64, mut response: Response) -> Option<OutFrame> {
        if response.opens_ring {
            response.descriptor = self.open_ring();
        }
        if !self.peer.unix && response.descriptor.take().is_some() {
            error!(peer = %self.peer.address, "a descriptor can't be sent over TCP and was left out");
        }
        match OutFrame::new(FrameKind::Reply, tag, response.meta, response.payload, response.descriptor) {
            Ok(frame) => Some(frame.telling(response.sent)),
            Err(error) => {
                // The caller must not wait for ever for an answer that can't be sent.
                error!(peer = %self.peer.address, reason = %error, "connection ended: an answer can't be sent");
                self.end();
                None
            }
        }
    }

    /// Ends the connection from this side.
    fn end(&self) {
        self.outbox.close();
        self.hangup.stop_talking();
        self.ended.cancel();
    }

    /// Tells the session the end, once.
    fn close(&self) -> Option<Kept> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        let what = caught(|| self.session.closed())??;
        Some(Kept { what: Some(what), hangup: Arc::clone(&self.hangup) })
    }
}

impl<S: Session> Inner<S> {
    /// Makes the connection's ring; the descriptor for the client.
    fn open_ring(self: &Arc<Self>) -> Option<OwnedFd> {
        if !(self.peer.unix && self.peer.same_user) || self.seat.get().is_some() {
            return None;
        }
        let (slots, descriptor) = Slots::create()
            .inspect_err(|error| warn!(peer = %self.peer.address, %error, "no ring for a client of this host"))
            .ok()?;
        let this: Weak<Self> = Arc::downgrade(self);
        let seat = self.rings.seat(slots, this)?;
        let seated = self.seat.set(seat.clone()).is_ok();
        if !seated || self.closed.load(Ordering::Acquire) {
            seat.leave();
        }
        seated.then_some(descriptor)
    }

    fn leave_ring(&self) {
        if let Some(seat) = self.seat.get() {
            seat.leave();
        }
    }
}

impl<S: Session> Answers for Inner<S> {
    fn takes(self: Arc<Self>, seat: &Arc<Seat>) -> bool {
        let ServerLimits { in_flight, payload_bytes, .. } = self.limits;
        if self.in_flight.is_below(in_flight, payload_bytes) && self.outbox.bytes() <= payload_bytes {
            return true;
        }
        let seat = Arc::downgrade(seat);
        // Ends with the connection: its end is that nothing is in flight and nothing waits to be sent.
        forebay_runtime::spawn(async move {
            self.in_flight.below(in_flight, payload_bytes).await;
            self.outbox.drained_to(payload_bytes).await;
            if let Some(seat) = seat.upgrade() {
                seat.go_on();
            }
        });
        false
    }

    fn answer(self: Arc<Self>, slots: &Slots, number: u64, request: Request) {
        let Request { tag, meta, payload } = request;
        if self.in_flight.contains(tag) {
            return self.broken(Error::invalid(format!("request {tag} is in flight already")));
        }
        let (bytes, asked) = (payload.len(), meta.clone());
        match self.begin(meta, payload) {
            Begun::Answered(response) => {
                // Each slot is given back once: from then on it may be another call's.
                if response.descriptor.is_some() || response.opens_ring {
                    slots.later(number);
                } else if slots.answer(number, &response.meta, &response.payload) {
                    return response.reached();
                }
                if let Some(frame) = self.reply(tag, response) {
                    self.outbox.send(frame);
                }
            }
            Begun::Pending(call) => {
                // What comes by a ring is small, and rings are few.
                self.go_on(tag, bytes, asked, call, None);
                slots.later(number);
            }
        }
    }

    fn broken(&self, error: Error) {
        warn!(peer = %self.peer.address, reason = %error, "connection ended: the peer breaks the protocol");
        self.end();
    }
}

/// A task that ends with its owner.
struct Owned(JoinHandle<()>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
