//! A connection from its handshake to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_runtime::time::timeout;
use forebay_types::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::kept::Kept;
use super::shared::{Memory, Shared};
use crate::caught::{caught, caught_future};
use crate::frames::frame_reader::FrameReader;
use crate::frames::outbox::Outbox;
use crate::frames::{Hangup, Sink};
use crate::in_flight::InFlight;
use crate::ring::{Rings, Seat};
use crate::sockets::leaving::Line;
use crate::{Peer, ServerLimits, Service, Session};

/// How long a peer gets to read what was said to it last.
pub(super) const FAREWELL_TIMEOUT: Duration = Duration::from_millis(500);

/// A connection that has passed the handshake; dropping it ends it.
pub(super) struct Live<S: Session>(Arc<Inner<S>>);

/// What its tasks share.
pub(super) struct Inner<S> {
    pub(super) session: Arc<S>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) in_flight: InFlight,
    hangup: Arc<Hangup>,
    /// This side has ended it.
    ended: CancellationToken,
    pub(super) peer: Peer,
    pub(super) limits: ServerLimits,
    pub(super) rings: Arc<Rings>,
    pub(super) memory: Memory,
    _places: Places,
    /// Its place among the rings, when it has one.
    pub(super) seat: OnceLock<Arc<Seat>>,
    pub(super) closed: AtomicBool,
}

/// What it holds as long as it is there.
struct Places {
    /// Its place among the connections that have passed the handshake.
    _admitted: OwnedSemaphorePermit,
    /// Its place among those whose answers leave, where somebody asks for it.
    _line: Option<Line>,
}

impl<S: Session> Live<S> {
    /// A connection whose session has begun: from here on the session's end is told, whatever happens.
    pub(super) fn new<T: Service<Session = S>>(
        shared: &Shared<T>,
        session: S,
        peer: Peer,
        sink: &Sink,
        hangup: Hangup,
        admitted: OwnedSemaphorePermit,
    ) -> Self {
        let (outbox, hangup) = (Arc::new(Outbox::one_of(sink, shared.memory.unsent.clone())), Arc::new(hangup));
        let line = shared.service.leaving().map(|leaving| {
            let (outbox, hangup) = (outbox.clone(), hangup.clone());
            // What is out last is of an answer that nobody has been told of.
            leaving.begin(move || hangup.unacknowledged().saturating_sub(outbox.begun() as u64))
        });
        Self(Arc::new(Inner {
            session: Arc::new(session),
            outbox,
            in_flight: InFlight::default(),
            hangup,
            ended: CancellationToken::new(),
            peer,
            limits: shared.limits,
            rings: shared.rings.clone(),
            memory: shared.memory.clone(),
            _places: Places { _admitted: admitted, _line: line },
            seat: OnceLock::new(),
            closed: AtomicBool::new(false),
        }))
    }

    /// Serves it until it ends, or until told to stop and its running calls are done.
    pub(super) async fn run(self, reader: FrameReader, sink: Sink, stop: watch::Receiver<bool>) {
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
        let _writer = AbortOnDropHandle::new(forebay_runtime::spawn({
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

    /// Ends the connection from this side.
    pub(super) fn end(&self) {
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
        Some(Kept::new(what, Arc::clone(&self.hangup)))
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
