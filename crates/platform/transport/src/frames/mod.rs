//! Frames on their way: batches and pools of buffers, one connection's two ends, what waits to go out, and the reader of what comes in.
//!
//! The two directions of a connection, with or without TLS, and the means to end it.
//!
//! A socket without TLS is sent to and received from by system calls of its own ([`Socket`]). Everything else is a stream.

pub(crate) mod batch;
pub(crate) mod buffers;
pub(crate) mod frame_reader;
pub(crate) mod outbox;
pub(crate) mod turns;

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::BufMut;
use forebay_runtime::net::Stream;
use forebay_runtime::simulated::Duplex;
use rustix::net::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::frames::batch::Batch;
use crate::sockets::leaving::unacknowledged;
use crate::sockets::{Room, Socket};

/// Bytes received at once into a payload.
const RECEIVE_BYTES: usize = 256 << 10;
/// Bytes that are dropped at once.
const DROPPED_BYTES: usize = 4 << 10;

/// A connection before it is put to use: its two directions, and the means to end it.
pub(crate) struct Link {
    pub(crate) source: Source,
    pub(crate) sink: Sink,
    pub(crate) hangup: Hangup,
}

pub(crate) enum Source {
    Socket(Arc<Socket>),
    Stream(ReadHalf<Box<dyn Duplex>>),
}

pub(crate) enum Sink {
    Socket { socket: Arc<Socket>, room: Option<Room> },
    Stream(WriteHalf<Box<dyn Duplex>>),
}

/// Ends a connection, from any task.
pub(crate) enum Hangup {
    Socket(Arc<Socket>),
    /// The socket below a stream.
    Below(OwnedFd),
    Simulated(Arc<dyn Fn(std::net::Shutdown) + Send + Sync>),
}

impl Link {
    /// Over a connected socket as it is.
    pub(crate) fn plain(fd: OwnedFd, unix: bool) -> io::Result<Self> {
        let socket = Arc::new(Socket::new(fd, unix)?);
        Ok(Self {
            source: Source::Socket(socket.clone()),
            sink: Sink::Socket { socket: socket.clone(), room: None },
            hangup: Hangup::Socket(socket),
        })
    }

    /// Over a connection to another host, as it is.
    pub(crate) fn remote(stream: Stream) -> io::Result<Self> {
        match stream {
            Stream::Tcp(stream) => Self::plain(stream.into_std()?.into(), false),
            Stream::Simulated(wire) => Ok(Self::stream(wire.bytes, Hangup::Simulated(wire.hangup))),
        }
    }

    /// Over what a connection was made into, as TLS; `hangup` ends what is below.
    pub(crate) fn stream(stream: Box<dyn Duplex>, hangup: Hangup) -> Self {
        let (source, sink) = tokio::io::split(stream);
        Self { source: Source::Stream(source), sink: Sink::Stream(sink), hangup }
    }
}

impl Source {
    /// Receives some bytes, and descriptors that come along; 0 at the end. `idle` is called before waiting.
    pub(crate) async fn receive(
        &mut self,
        into: &mut [u8],
        descriptors: &mut VecDeque<OwnedFd>,
        idle: impl Fn(),
    ) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.receive(into, descriptors, idle).await,
            Self::Stream(stream) => {
                idle();
                stream.read(into).await
            }
        }
    }

    /// Receives some bytes of a payload, no descriptors; 0 at the end.
    pub(crate) async fn receive_into(&mut self, into: &mut [u8], idle: impl Fn()) -> io::Result<usize> {
        let wanted = into.len().min(RECEIVE_BYTES);
        match self {
            Self::Socket(socket) => socket.receive_payload(&mut into[..wanted], idle).await,
            Self::Stream(stream) => {
                idle();
                stream.read(&mut into[..wanted]).await
            }
        }
    }

    /// Receives some bytes to the end of `into`, which then holds `len` bytes at most; 0 at the end.
    pub(crate) async fn receive_to(&mut self, into: &mut Vec<u8>, len: usize, idle: impl Fn()) -> io::Result<usize> {
        let wanted = (len - into.len()).min(RECEIVE_BYTES);
        match self {
            Self::Socket(socket) => {
                let spare: &mut [MaybeUninit<u8>] = &mut into.spare_capacity_mut()[..wanted];
                let received = socket.receive_uninit(spare, idle).await?;
                filled(into, received);
                Ok(received)
            }
            Self::Stream(stream) => {
                idle();
                stream.read_buf(&mut into.limit(wanted)).await
            }
        }
    }
}

#[allow(unsafe_code, reason = "received bytes become part of the buffer without being written twice")]
fn filled(into: &mut Vec<u8>, received: usize) {
    // SAFETY: `receive_uninit` was given the spare capacity and has initialised its first `received` bytes.
    unsafe { into.advance_mut(received) };
}

impl Sink {
    /// Sends until something is through or the connection fails; the bytes of the frames that are through.
    pub(crate) async fn send(&mut self, batch: &mut Batch) -> io::Result<usize> {
        match self {
            Self::Socket { socket, room } => {
                match batch.send_with(|slices, descriptor| socket.send(slices, descriptor)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return result,
                }
                let room = if let Some(room) = room { room } else { room.insert(Room::of(socket)?) };
                room.send(|| batch.send_with(|slices, descriptor| socket.send(slices, descriptor))).await
            }
            Self::Stream(stream) => {
                std::future::poll_fn(|cx| {
                    let sent = batch.send_with(|slices, _| match Pin::new(&mut *stream).poll_write_vectored(cx, slices) {
                        Poll::Ready(result) => result,
                        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                    });
                    match sent {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                        result => Poll::Ready(result),
                    }
                })
                .await
            }
        }
    }

    /// Everything is out: gives back what sending needed.
    pub(crate) async fn rest(&mut self) -> io::Result<()> {
        match self {
            Self::Socket { socket, room } => {
                if socket.unix {
                    *room = None;
                }
                Ok(())
            }
            Self::Stream(stream) => stream.flush().await,
        }
    }
}

impl Hangup {
    /// Of a connection that TLS begins on.
    pub(crate) fn below(stream: &Stream) -> io::Result<Self> {
        match stream {
            Stream::Tcp(stream) => Ok(Self::Below(stream.as_fd().try_clone_to_owned()?)),
            Stream::Simulated(wire) => Ok(Self::Simulated(Arc::clone(&wire.hangup))),
        }
    }

    /// Ends the connection in both directions.
    pub(crate) fn hang_up(&self) {
        self.shutdown(Shutdown::Both);
    }

    /// Takes nothing any more. The peer of a Unix socket hears of it when it sends, and of the end when the socket is closed; any
    /// other peer hears of the end now.
    pub(crate) fn stop_hearing(&self) {
        match self {
            Self::Socket(socket) if socket.unix => self.shutdown(Shutdown::Read),
            Self::Socket(_) | Self::Below(_) | Self::Simulated(_) => self.hang_up(),
        }
    }

    /// Says nothing any more. What still comes from the peer of a Unix socket says that it is there ([`Self::gone`]).
    pub(crate) fn stop_talking(&self) {
        match self {
            Self::Socket(socket) if socket.unix => self.finish(),
            Self::Socket(_) | Self::Below(_) | Self::Simulated(_) => self.hang_up(),
        }
    }

    /// Waits until the peer of a Unix socket has closed its end; of others nothing is kept for so long. What it still sends is dropped.
    pub(crate) async fn gone(&self) {
        let Self::Socket(socket) = self else { return };
        let mut dropped = vec![0; DROPPED_BYTES];
        // An error is an end too.
        while socket.unix && matches!(socket.receive_payload(&mut dropped, || {}).await, Ok(1..)) {
            tokio::task::yield_now().await;
        }
    }

    /// Bytes that were sent, and that the peer's host has not said it has. Of what is no TCP none are known.
    pub(crate) fn unacknowledged(&self) -> u64 {
        match self {
            Self::Socket(socket) if !socket.unix => unacknowledged(socket),
            Self::Below(fd) => unacknowledged(fd),
            Self::Socket(_) | Self::Simulated(_) => 0,
        }
    }

    /// Tells the peer that nothing more will be sent.
    pub(crate) fn finish(&self) {
        self.shutdown(Shutdown::Write);
    }

    fn shutdown(&self, how: Shutdown) {
        // Fails only when the connection has ended already.
        let _ = match self {
            Self::Socket(socket) => rustix::net::shutdown(socket, how),
            Self::Below(fd) => rustix::net::shutdown(fd, how),
            Self::Simulated(end) => {
                end(match how {
                    Shutdown::Read => std::net::Shutdown::Read,
                    Shutdown::Write => std::net::Shutdown::Write,
                    Shutdown::Both => std::net::Shutdown::Both,
                });
                Ok(())
            }
        };
    }
}
