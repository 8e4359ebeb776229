//! Packets, and the directions of connections that they go by.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use bytes::Bytes;
use tokio::sync::oneshot;

/// Index of a host.
pub(crate) type HostId = usize;
/// One direction of a connection.
pub(crate) type PipeId = u64;

/// A host in a set of some: there are few.
pub(crate) fn bit(host: HostId) -> u64 {
    1 << host
}

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) from: HostId,
    pub(super) to: HostId,
    /// The other direction.
    pub(super) back: PipeId,
    pub(super) arrived: VecDeque<Bytes>,
    /// Bytes that take room of the window.
    pub(super) bytes: usize,
    pub(super) last_at_us: u64,
    /// The writer says nothing more.
    pub(super) is_finished: bool,
    /// The reader has heard that.
    pub(super) is_ended: bool,
    pub(super) is_reset: bool,
    /// Nobody reads any more.
    pub(super) is_closed: bool,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

pub(super) struct Packet {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) what: What,
}

pub(super) enum What {
    /// Somebody wants a connection: whom, the direction from them, and where they hear of it.
    Open(String, PipeId, oneshot::Sender<io::Result<()>>),
    Opened(oneshot::Sender<io::Result<()>>, io::Result<()>),
    Data(PipeId, Bytes),
    End(PipeId),
    Reset(PipeId),
}

impl Pipe {
    pub(super) fn new(from: HostId, to: HostId, back: PipeId) -> Self {
        Self { from, to, back, ..Self::default() }
    }

    pub(super) fn wake(&mut self) {
        [self.reader.take(), self.writer.take()].into_iter().flatten().for_each(Waker::wake);
    }
}
