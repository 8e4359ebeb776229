//! Connections of HTTP until they have said what they want.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use forebay_runtime::time::timeout;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::Place;
use crate::Acceptor;

/// How long TLS may take to begin, and then the head of the first request.
const TLS_WITHIN: Duration = Duration::from_secs(10);
const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// A head that is longer, or begins with what is no method, is for whoever reads it.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A connection of which the head of the first request has come: that is read from it again.
#[derive(Debug)]
pub enum Introduced<S = TcpStream> {
    /// As it came.
    Plain(Heard<S>),
    /// Behind TLS.
    Tls(Box<Heard<TlsStream<S>>>),
}

/// Bytes of which some were read already.
#[derive(Debug)]
pub struct Heard<S> {
    heard: Bytes,
    socket: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Introduced<S> {
    /// Begins TLS where that is on, and waits for the head of the first request. An error when that does not come, or when others need
    /// the place meanwhile, which stays the caller's until there is a better one.
    pub async fn hear(stream: S, tls: Option<&Acceptor>, place: &Place) -> io::Result<Self> {
        let introduced = async {
            match tls {
                None => Ok(Self::Plain(Heard::of(stream).await?)),
                Some(tls) => {
                    let begun = timeout(TLS_WITHIN, tls.accept(stream)).await;
                    let begun = begun.map_err(|_| late("TLS does not begin"))??;
                    Ok(Self::Tls(Box::new(Heard::of(begun).await?)))
                }
            }
        };
        tokio::select! {
            introduced = introduced => introduced,
            () = place.gives_way() => Err(late("it says nothing, and others wait for its place")),
        }
    }

    /// Whether the other end has shown a certificate of the authority that clients' are to be of.
    pub fn has_shown_certificate(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(heard) => heard.socket.get_ref().1.peer_certificates().is_some_and(|shown| !shown.is_empty()),
        }
    }

    /// Sends these bytes as the last ones. What still comes is taken, until the other end has ended too, as an end that leaves some of it takes
    /// the answer along. How long that may take the caller says.
    pub async fn end_with(mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes).await?;
        self.shutdown().await?;
        tokio::io::copy(&mut self, &mut tokio::io::sink()).await.map(drop)
    }
}

impl<S: AsyncRead + Unpin> Heard<S> {
    async fn of(mut socket: S) -> io::Result<Self> {
        let head = async {
            let mut heard = BytesMut::with_capacity(4 << 10);
            loop {
                let looked = heard.len().saturating_sub(3);
                if socket.read_buf(&mut heard).await? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                if has_end(&heard[looked..]) || heard.len() >= HEAD_BYTES_MAX || !heard[0].is_ascii_uppercase() {
                    return Ok(heard.freeze());
                }
            }
        };
        let heard = timeout(HEAD_WITHIN, head).await.map_err(|_| late("no request comes"))??;
        Ok(Self { heard, socket })
    }
}

/// Whether a line without anything is there, which ends a head.
fn has_end(bytes: &[u8]) -> bool {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| &bytes[at + 1..]).any(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}

fn late(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.heard.is_empty() {
            return Pin::new(&mut self.socket).poll_read(context, into);
        }
        let len = self.heard.len().min(into.remaining());
        into.put_slice(&self.heard[..len]);
        self.heard.advance(len);
        Poll::Ready(Ok(()))
    }
}

crate::through!(write socket: Heard<S>, S);

/// Does the same with either.
macro_rules! either {
    ($self:expr, $io:ident => $what:expr) => {
        match $self.get_mut() {
            Self::Plain(io) => {
                let $io = Pin::new(io);
                $what
            }
            Self::Tls(io) => {
                let $io = Pin::new(&mut **io);
                $what
            }
        }
    };
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Introduced<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_read(context, into))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Introduced<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write(context, bytes))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_with_a_line_without_anything() {
        for head in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\n\nbody", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "x\n\r\n"]
        {
            assert!(has_end(head.as_bytes()), "{head:?}");
        }
        for begun in ["", "\n", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\n\r", "a\rb\nc\r\r\n"] {
            assert!(!has_end(begun.as_bytes()), "{begun:?}");
        }
    }

    #[tokio::test]
    async fn what_was_heard_is_read_again_in_whatever_pieces_it_came() {
        let (mut client, server) = tokio::io::duplex(7);
        let said = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody".repeat(50);
        let sent = said.clone();
        let sending = tokio::spawn(async move {
            client.write_all(&sent).await.unwrap();
        });
        let mut heard = Heard::of(server).await.unwrap();
        let mut read = Vec::new();
        heard.read_to_end(&mut read).await.unwrap();
        sending.await.unwrap();
        assert_eq!(read, said);
        let (client, server) = tokio::io::duplex(7);
        drop(client);
        assert_eq!(Heard::of(server).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
