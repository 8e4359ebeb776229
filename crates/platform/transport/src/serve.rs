use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{FrameKind, META_BYTES_MAX};
use forebay_types::{Error, ErrorKind, Result};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, error, warn};

use crate::batch::OutFrame;
use crate::dial::HANDSHAKE_TIMEOUT;
use crate::frame_reader::{FrameReader, Incoming};
use crate::in_flight::InFlight;
use crate::link::{Hangup, Link, Sink};
use crate::listener::Accepted;
use crate::outbox::Outbox;
use crate::ring::{Answers, MESSAGE_BYTES_MAX, Request, Rings, Seat, Slots};
use crate::{Peer, Response, Security, ServerLimits, Service, Session, handshake};

/// How long a peer gets to read what was said to it last.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(500);
/// Answers are sent at the latest when so many bytes wait.
const FLUSH_BYTES: usize = 256 << 10;

/// What all connections of a server share.
pub(crate) struct Shared<S> {
    pub(crate) service: Arc<S>,
    pub(crate) security: Security,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) limits: ServerLimits,
    pub(crate) rings: Arc<Rings>,
}

/// Serves one connection until it ends or `stop` is set and its running calls are done.
pub(crate) async fn serve<S: Service>(shared: Arc<Shared<S>>, accepted: Accepted, stop: watch::Receiver<bool>) {
    let peer = accepted.peer.clone();
    match timeout(HANDSHAKE_TIMEOUT, receive(&shared, accepted)).await {
        Ok(Ok((live, reader, sink))) => live.run(reader, sink, stop).await,
        Ok(Err(error)) => warn!(peer = %peer.address, reason = %error, "connection refused"),
        Err(_) => warn!(peer = %peer.address, "connection refused: no handshake in time"),
    }
}

/// Tells a peer why it can't be served, as far as it waits for that.
pub(crate) async fn turn_away(accepted: Accepted, error: Error) {
    if let Ok(link) = Link::plain(accepted.fd, accepted.peer.unix) {
        let _ = timeout(FAREWELL_TIMEOUT, refuse(FrameReader::new(link.source), link.sink, &link.hangup, &error)).await;
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
        Ok(caller) => shared.service.open(Peer { caller, ..peer.clone() }),
        Err(error) => Err(error),
    };
    match opened {
        Ok(session) => {
            // From here on the session's end is told, whatever happens.
            let live = Live(Arc::new(Inner {
                session: Arc::new(session),
                outbox: Arc::new(Outbox::new(&sink)),
                in_flight: InFlight::default(),
                hangup,
                peer,
                limits: shared.limits,
                rings: shared.rings.clone(),
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

/// A connection that has passed the handshake; dropping it ends it.
struct Live<S: Session>(Arc<Inner<S>>);

struct Inner<S> {
    session: Arc<S>,
    outbox: Arc<Outbox>,
    in_flight: InFlight,
    hangup: Hangup,
    peer: Peer,
    limits: ServerLimits,
    rings: Arc<Rings>,
    /// Its place among the rings, when it has one.
    seat: OnceLock<Arc<Seat>>,
    closed: AtomicBool,
}

impl<S: Session> Live<S> {
    async fn run(self, mut reader: FrameReader, sink: Sink, mut stop: watch::Receiver<bool>) {
        let inner = &self.0;
        reader.flush_before_waiting(inner.outbox.clone());
        let _writer = Owned(tokio::spawn({
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
            }
        }
        inner.end();
        inner.leave_ring();
        inner.in_flight.cancel_all().await;
    }
}

impl<S: Session> Drop for Live<S> {
    fn drop(&mut self) {
        self.0.end();
        self.0.leave_ring();
        drop(self.0.in_flight.abort_all());
        if !self.0.closed.swap(true, Ordering::AcqRel) {
            self.0.session.closed();
        }
    }
}

impl<S: Session> Inner<S> {
    async fn read(self: &Arc<Self>, reader: &mut FrameReader) -> Result<()> {
        let ServerLimits { in_flight, payload_bytes, .. } = self.limits;
        loop {
            if !self.in_flight.is_below(in_flight, payload_bytes) {
                self.outbox.flush();
                self.in_flight.below(in_flight, payload_bytes).await;
            }
            match self.outbox.bytes() {
                waiting if waiting > payload_bytes => {
                    self.outbox.flush();
                    self.outbox.drained_to(payload_bytes).await;
                }
                waiting if waiting > FLUSH_BYTES => self.outbox.flush(),
                _ => {}
            }
            let Some(frame) = reader.next(META_BYTES_MAX).await? else { return Ok(()) };
            self.take(frame, reader).await?;
        }
    }

    async fn take(self: &Arc<Self>, frame: Incoming, reader: &mut FrameReader) -> Result<()> {
        let (header, meta) = (frame.header, frame.meta);
        if header.descriptors > 0 || (header.payload_len > 0 && header.kind != FrameKind::Request) {
            return Err(Error::invalid("a frame has a descriptor or a payload that its kind has not"));
        }
        match header.kind {
            FrameKind::Request if self.in_flight.contains(header.tag) => {
                Err(Error::invalid(format!("request {} is in flight already", header.tag)))
            }
            FrameKind::Request => {
                let placed = if header.payload_len > 0 { self.session.place(&meta, header.payload_len) } else { None };
                if let Some(mut place) = placed {
                    let memory = place.memory();
                    assert_eq!(memory.len(), header.payload_len as usize, "a place is as large as its payload");
                    reader.payload_into(memory).await?;
                    if let Some(frame) = self.reply(header.tag, place.filled()) {
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
                self.call(header.tag, meta, payload);
                Ok(())
            }
            FrameKind::Cancel => {
                self.in_flight.cancel(header.tag);
                Ok(())
            }
            FrameKind::Notice => {
                self.session.notice(meta);
                Ok(())
            }
            FrameKind::Reply | FrameKind::Hello => Err(Error::invalid("a client sends no replies")),
        }
    }

    /// Runs a call: here when its answer is at hand, else in a task.
    fn call(self: &Arc<Self>, tag: u64, meta: Bytes, payload: Bytes) {
        let bytes = payload.len();
        let session = self.session.clone();
        let mut call: Call = Box::pin(async move { session.call(meta, payload).await });
        // A future is to wake whoever polled it last, which will be the task.
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => {
                if let Some(frame) = self.reply(tag, response) {
                    self.outbox.push(frame);
                }
            }
            Poll::Pending => self.go_on(tag, bytes, call),
        }
    }

    /// Runs the rest of a call in a task.
    fn go_on(self: &Arc<Self>, tag: u64, bytes: usize, call: Call) {
        let guard = EndOnPanic(self.clone());
        self.in_flight.spawn(tag, bytes, async move {
            let response = call.await;
            let inner = &guard.0;
            if inner.in_flight.finish(tag)
                && let Some(frame) = inner.reply(tag, response)
            {
                inner.outbox.send(frame);
            }
        });
    }

    fn reply(self: &Arc<Self>, tag: u64, mut response: Response) -> Option<OutFrame> {
        if response.opens_ring {
            response.descriptor = self.open_ring();
        }
        if !self.peer.unix && response.descriptor.take().is_some() {
            error!(peer = %self.peer.address, "a descriptor can't be sent over TCP and was left out");
        }
        match OutFrame::new(FrameKind::Reply, tag, response.meta, response.payload, response.descriptor) {
            Ok(frame) => Some(frame),
            Err(error) => {
                // The caller must not wait for ever for an answer that can't be sent.
                error!(peer = %self.peer.address, reason = %error, "connection ended: an answer can't be sent");
                self.end();
                None
            }
        }
    }

    fn end(&self) {
        self.outbox.close();
        self.hangup.hang_up();
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
        tokio::spawn(async move {
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
        let (session, bytes) = (self.session.clone(), payload.len());
        let mut call: Call = Box::pin(async move { session.call(meta, payload).await });
        let poll = AssertUnwindSafe(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        match catch_unwind(poll) {
            Ok(Poll::Ready(response)) => {
                // Each slot is given back once: from then on it may be another call's.
                if response.descriptor.is_some() || response.opens_ring {
                    slots.later(number);
                } else if slots.answer(number, &response.meta, &response.payload) {
                    return;
                }
                if let Some(frame) = self.reply(tag, response) {
                    self.outbox.send(frame);
                }
            }
            Ok(Poll::Pending) => {
                self.go_on(tag, bytes, call);
                slots.later(number);
            }
            // A defect, which has been reported. Its caller would wait for ever.
            Err(_) => self.end(),
        }
    }

    fn broken(&self, error: Error) {
        warn!(peer = %self.peer.address, reason = %error, "connection ended: the peer breaks the protocol");
        self.end();
    }
}

/// Ends the connection when a call fails by a defect: its caller would wait for ever.
struct EndOnPanic<S: Session>(Arc<Inner<S>>);

impl<S: Session> Drop for EndOnPanic<S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

/// A task that ends with its owner.
struct Owned(JoinHandle<()>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
