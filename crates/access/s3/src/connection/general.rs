//! Requests on the way that all of them may take: hyper reads them, until it waits for another one.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::answer::Turns;
use crate::context::Context;
use crate::handle::handle;

/// Longest head of a request, and how much is read ahead of who takes it.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long the head of a request may take; also how long an idle connection is kept.
pub(super) const HEAD_WITHIN: Duration = Duration::from_secs(120);

/// Serves requests, the first of which `begun` is the beginning of, until there is none under way. Gives the socket back
/// with what came of the next one; none when the connection has ended.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    socket: S,
    from: SocketAddr,
    begun: Bytes,
    context: &Arc<Context>,
    stopped: &mut watch::Receiver<bool>,
) -> Option<(S, Bytes)> {
    let turns = Arc::<Turns>::default();
    let service = service_fn({
        let (context, turns) = (Arc::clone(context), Arc::clone(&turns));
        move |request: http::Request<Incoming>| {
            use hyper::body::Body;
            let turn = turns.begin(!request.body().is_end_stream());
            handle(Arc::clone(&context), from, request, turn)
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .half_close(true)
        .serve_connection(TokioIo::new(Begun { begun, socket, turns: Arc::clone(&turns) }), service);
    let served = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if turns.is_between() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let served = tokio::select! {
        served = served => served,
        _ = stopped.changed() => {
            Pin::new(&mut connection).graceful_shutdown();
            Some((&mut connection).await)
        }
    };
    match served {
        None => {
            let parts = connection.into_parts();
            let Begun { begun, socket, .. } = parts.io.into_inner();
            let rest = match (parts.read_buf.is_empty(), begun.is_empty()) {
                (_, true) => parts.read_buf,
                (true, false) => begun,
                (false, false) => {
                    let mut rest = BytesMut::from(parts.read_buf);
                    rest.extend_from_slice(&begun);
                    rest.freeze()
                }
            };
            Some((socket, rest))
        }
        Some(ended) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended");
            }
            None
        }
    }
}

/// A socket of which some was read already.
struct Begun<S> {
    begun: Bytes,
    socket: S,
    turns: Arc<Turns>,
}

impl<S> Begun<S> {
    fn noted<T>(&self, poll: Poll<T>) -> Poll<T> {
        self.turns.set_blocked(poll.is_pending());
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.begun.is_empty() {
            return Pin::new(&mut self.socket).poll_read(cx, buf);
        }
        let len = self.begun.len().min(buf.remaining());
        buf.put_slice(&self.begun[..len]);
        self.begun.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.noted(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.noted(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.socket).poll_flush(cx);
        self.noted(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
