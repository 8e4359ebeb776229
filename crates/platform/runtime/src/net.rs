//! Connections to other hosts: TCP, and nothing else in production.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::simulated::{self, Accepts, Wire};

/// A connection.
pub enum Stream {
    /// Of the system.
    Tcp(TcpStream),
    /// Of a simulation.
    Simulated(Wire),
}

/// Connects to `host:port`.
pub async fn connect(to: &str) -> io::Result<Stream> {
    match connect_simulated(to) {
        Some(connecting) => connecting.await.map(Stream::Simulated),
        None => TcpStream::connect(to).await.map(Stream::Tcp),
    }
}

/// The same for who connects by its own means: none unless this thread simulates.
pub fn connect_simulated(to: &str) -> Option<simulated::Connecting> {
    simulated::network().map(|network| network.connect(to))
}

/// Where connections come in.
pub enum Listener {
    /// Of the system.
    Tcp(TcpListener),
    /// Of a simulation.
    Simulated(Box<dyn Accepts>),
}

impl Listener {
    /// Listens at `host:port`; port 0 takes any free one.
    pub async fn bind(at: &str) -> io::Result<Self> {
        match simulated::network() {
            Some(network) => network.bind(at).map(Self::Simulated),
            None => TcpListener::bind(at).await.map(Self::Tcp),
        }
    }

    /// Where it listens, with the port that it got.
    pub fn local_address(&self) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|address| address.to_string()),
            Self::Simulated(listener) => Ok(listener.local_address()),
        }
    }

    /// The next connection, and who it is from.
    pub async fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, from)| (Stream::Tcp(stream), from.to_string())),
            Self::Simulated(listener) => {
                let (wire, from) = poll_fn(|context| listener.poll_accept(context)).await?;
                Ok((Stream::Simulated(wire), from))
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Self::Simulated(wire) => Pin::new(&mut wire.bytes).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Simulated(wire) => Pin::new(&mut wire.bytes).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Simulated(wire) => Pin::new(&mut wire.bytes).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Simulated(wire) => wire.bytes.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Simulated(wire) => Pin::new(&mut wire.bytes).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Simulated(wire) => Pin::new(&mut wire.bytes).poll_shutdown(context),
        }
    }
}
