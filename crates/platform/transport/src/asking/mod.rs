//! The asking side: dialling, calls that wait for their replies, and the connection that callers have.

pub(crate) mod calls;
pub(crate) mod dial;
pub(crate) mod framed;
pub(crate) mod speed;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{AtHand, Handed, PROTOCOL_VERSION};
use forebay_types::Result;

use crate::asking::framed::Framed;
use crate::local::{Door, Local};
use crate::{Address, Answer, Security};

/// The asking side of a connection. Many calls may be in flight; replies come in any order.
///
/// Clones share the connection. It ends with the last of them, when the peer ends it, or by [`Self::close`]; it is
/// never made anew. However it ended, what the server has shared in place stays as it is while a clone lives: the server keeps it
/// until the socket is closed, which is when the last of them is dropped.
#[derive(Clone)]
pub struct Connection(Way);

#[derive(Clone)]
enum Way {
    Framed(Arc<Framed>),
    Local(Arc<Local>),
}

impl Connection {
    /// Connects and passes the handshake, within 3 s and 5 s.
    ///
    /// `Retry` when there is no one or no answer, `Denied` when the tokens differ, `Invalid` when the address, the TLS
    /// files or the versions are wrong.
    pub async fn connect(address: &Address, security: &Security) -> Result<Self> {
        Ok(Self(Way::Framed(Arc::new(Framed::connect(address, security).await?))))
    }

    /// The same, but without a socket where this process itself listens at the address of a Unix socket: an answer that is
    /// at hand is taken in the task of who calls, and what takes longer runs in a task of the server.
    pub async fn nearest(address: &Address, security: &Security) -> Result<Self> {
        match Door::at(address).filter(|_| security.newest == PROTOCOL_VERSION) {
            Some(door) => Ok(Self(Way::Local(Local::open(door, address.clone(), security.shows.as_ref())?))),
            None => Self::connect(address, security).await,
        }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request at the server, which is told how long it is
    /// waited for ([`forebay_runtime::deadline`]) and gives it up by itself then.
    ///
    /// `Closed` when the connection ends before the answer, `Invalid` when the request is too long for a frame. Has no
    /// timeout of its own.
    pub async fn call(&self, meta: Bytes, payload: Vec<Bytes>) -> Result<Answer> {
        match &self.0 {
            Way::Framed(framed) => framed.call(meta, payload, false).await,
            Way::Local(local) => local.call(meta, payload).await,
        }
    }

    /// The same for a call that is small and that the server answers at once, as a rule: by the ring where there is one
    /// ([`Self::use_ring`]), which keeps the calling thread spinning for 20 us at most, or, where calls of the thread are in flight together,
    /// has the task polled again and again for 100 us at most. Everything else goes by the socket.
    pub async fn call_near(&self, meta: Bytes, payload: Vec<Bytes>) -> Result<Answer> {
        match &self.0 {
            Way::Framed(framed) => framed.call(meta, payload, true).await,
            Way::Local(local) => local.call(meta, payload).await,
        }
    }

    /// Takes over the ring that came with an answer, for [`Self::call_near`]. `Invalid` when the descriptor is none of a ring of
    /// this version.
    pub fn use_ring(&self, descriptor: OwnedFd) -> Result<()> {
        match &self.0 {
            Way::Framed(framed) => framed.use_ring(descriptor),
            // A server in this process is nearer than any ring.
            Way::Local(_) => Ok(()),
        }
    }

    /// Calls that a ring has carried there and back.
    pub fn calls_by_ring(&self) -> u64 {
        match &self.0 {
            Way::Framed(framed) => framed.calls_by_ring(),
            Way::Local(_) => 0,
        }
    }

    /// Sends a message that has no answer. `Retry` when too many wait to be sent, `Closed` when the connection has ended.
    pub fn notify(&self, meta: Bytes) -> Result<()> {
        match &self.0 {
            Way::Framed(framed) => framed.notify(meta),
            Way::Local(local) => local.notify(meta),
        }
    }

    /// What a server of this process answers at once, without a message and without a copy; none for what has to be asked.
    pub fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        match &self.0 {
            Way::Framed(_) => None,
            Way::Local(local) => local.at_hand(wanted),
        }
    }

    /// Whom it is to.
    pub fn address(&self) -> &Address {
        match &self.0 {
            Way::Framed(framed) => framed.address(),
            Way::Local(local) => &local.address,
        }
    }

    /// The version of the protocol that both sides speak: requests are to be of it, as `forebay_protocol::encode_for` writes them, and
    /// so are answers.
    pub fn version(&self) -> u16 {
        match &self.0 {
            Way::Framed(framed) => framed.version(),
            Way::Local(_) => PROTOCOL_VERSION,
        }
    }

    /// Bytes a second that answers come with over a network, by those with large payloads; none where both ends are on one host by a Unix
    /// socket or in one process, and before there were a few.
    pub fn bytes_per_sec(&self) -> Option<u64> {
        match &self.0 {
            Way::Framed(framed) => framed.bytes_per_sec(),
            Way::Local(_) => None,
        }
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        match &self.0 {
            Way::Framed(framed) => framed.ended().is_cancelled(),
            Way::Local(local) => local.ended.is_cancelled(),
        }
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        match &self.0 {
            Way::Framed(framed) => framed.ended().cancelled().await,
            Way::Local(local) => local.ended.cancelled().await,
        }
    }

    /// Ends the connection; calls in flight fail with `Closed`. On a Unix socket the server keeps what it has shared in place until
    /// the last clone is dropped.
    pub fn close(&self) {
        match &self.0 {
            Way::Framed(framed) => framed.close(),
            Way::Local(local) => local.ended.cancel(),
        }
    }
}
