//! Connections to other hosts: TCP, and nothing else in production.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
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

/// Where a `host:port` of a connection or a listener is. A host of a simulation has a name alone: its address is made of that, the same each time.
pub fn socket_address(shown: &str) -> SocketAddr {
    shown.parse().unwrap_or_else(|_| {
        let (host, port) = shown.rsplit_once(':').unwrap_or((shown, ""));
        let number = host.bytes().fold(0, |number: u32, byte| number.wrapping_mul(31).wrapping_add(byte.into()));
        SocketAddr::from((Ipv4Addr::from(number), port.parse().unwrap_or(0)))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_itself_and_hosts_with_names_have_one_each() {
        for shown in ["10.1.2.3:7490", "[::1]:80", "[fe80::1%3]:9"] {
            assert_eq!(socket_address(shown).to_string(), shown);
        }
        let (one, same, other) = (socket_address("client0:1"), socket_address("client0:99999999"), socket_address("client1:1"));
        assert_eq!((one.port(), same.port()), (1, 0));
        assert_eq!(one.ip(), same.ip());
        assert_ne!(one.ip(), other.ip());
    }
}
