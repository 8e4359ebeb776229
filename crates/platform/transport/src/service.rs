//! What a server offers, as those write it who offer it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{AtHand, Handed};
use forebay_types::Result;

use crate::{Leaving, Peer};

/// What a server offers: makes a [`Session`] for each connection.
pub trait Service: Send + Sync + 'static {
    /// What lives as long as a connection.
    type Session: Session;

    /// Called when a peer has passed the handshake. An error refuses it, and is told to it.
    fn open(&self, peer: Peer) -> Result<Self::Session>;

    /// Where its connections are counted by what the system still has of their answers; none where nobody asks.
    fn leaving(&self) -> Option<Leaving> {
        None
    }
}

/// The server's side of one connection.
pub trait Session: Send + Sync + 'static {
    /// Answers a request. Calls of a connection run at the same time. The future is polled once on the task that
    /// reads the connection, so that an answer which is at hand costs no task; it goes on in a task of its own. It
    /// is dropped when the caller cancels, when nobody waits for the answer any more, or when the connection ends. How long somebody
    /// waits is known within ([`forebay_runtime::deadline`]).
    fn call(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> impl Future<Output = Response> + Send;

    /// A place of the service's own for the payload of a request, of so many bytes, so that it is received where it is to lie.
    /// Must not block. With none the payload comes into a buffer, and the request to [`Self::call`].
    fn place(self: &Arc<Self>, meta: &Bytes, payload_bytes: u32) -> Option<Box<dyn Place>> {
        let _ = (meta, payload_bytes);
        None
    }

    /// The answer to a request that failed by a defect, a panic that has been reported: of kind `Internal`, in the form that whoever
    /// sent it reads. Everything else of the connection goes on.
    fn failed(&self, meta: &Bytes) -> Response;

    /// The answer to a request that nobody waits for any more, by what was said when it was asked: [`Self::call`] is dropped.
    fn given_up(&self, meta: &Bytes) -> Response {
        self.failed(meta)
    }

    /// Takes a message that has no answer; must not block.
    fn notice(self: &Arc<Self>, meta: Bytes);

    /// Answers a caller of this process what needs no waiting, without a message; none for what does.
    fn at_hand(&self, _wanted: &AtHand) -> Option<Handed> {
        None
    }

    /// The connection has ended, and all of its calls have; called exactly once for every session. What this gives back is kept until
    /// the peer has closed its end too, for it is what the peer may be looking at until then.
    fn closed(&self) -> Option<Box<dyn Send>> {
        None
    }
}

/// Where the payload of one request is received. Dropped before all of it has come when the connection ends.
pub trait Place: Send {
    /// Bytes of the payload that it is for.
    fn bytes(&self) -> usize;

    /// Memory for exactly the payload, to be received into; none where it is rather handed over in pieces.
    fn memory(&mut self) -> Option<&mut [u8]>;

    /// The next piece of the payload, where there is no memory to receive into.
    fn put(&mut self, piece: &[u8]);

    /// The payload is there: the answer, which must be at hand.
    fn filled(self: Box<Self>) -> Response;
}

/// What a [`Session`] answers.
#[derive(Debug, Default)]
pub struct Response {
    /// The message.
    pub meta: Bytes,
    /// Raw bytes after it, sent from where they lie. At most 64 MiB in all.
    pub payload: Vec<Bytes>,
    /// Handed over with the frame on Unix sockets, and dropped on others.
    pub descriptor: Option<OwnedFd>,
    /// The client may call by a ring from now on: the transport makes one, whose descriptor goes with this answer. Only on a
    /// Unix socket, to a peer of the same user, and when there is room for one; else the answer comes without a descriptor.
    pub opens_ring: bool,
    /// Told when the answer is on its way, dropped where it never is.
    pub sent: Option<Box<dyn Sent>>,
}

/// Hears that an answer is sent.
pub trait Sent: std::fmt::Debug + Send {
    /// Its last byte was taken by the system, or given to the caller within this process. Called once, where others wait: must be quick.
    fn sent(self: Box<Self>);
}

impl Response {
    /// A message without payload.
    pub fn new(meta: Bytes) -> Self {
        Self { meta, ..Self::default() }
    }

    /// It has reached who asked.
    pub(crate) fn reached(self) {
        if let Some(sent) = self.sent {
            sent.sent();
        }
    }
}

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at a time that have passed the handshake; more are refused with `Retry`.
    pub connections: usize,
    /// Requests in flight a connection; the server reads no further until one is done.
    pub in_flight: usize,
    /// Payload bytes of requests in flight a connection, and of answers waiting to be sent; as above.
    pub payload_bytes: usize,
    /// Bytes of requests in flight over all connections: what comes beyond waits where it is sent. None shares
    /// [`crate::Budget::of_process`] with everything else of the process.
    pub request_bytes: Option<u64>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { connections: 1024, in_flight: 1024, payload_bytes: 256 << 20, request_bytes: None }
    }
}
