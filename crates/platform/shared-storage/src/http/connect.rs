//! Connections that count what they read, wait for their share of the bound, and refuse addresses where no storage can be.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_runtime::net::{Stream, connect_simulated};
use forebay_types::is_link_local;
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tower_service::Service;

use crate::bandwidth::{Limiter, Turn};
use crate::counters::{Tally, count_by};
use crate::request::Class;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What can be seen of a connection from outside, to tell one that is slow or held back from one that is dead.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    moved_bytes: AtomicU64,
    held_back: AtomicBool,
}

impl ConnectionState {
    /// Bytes read and written so far.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Relaxed)
    }

    /// Whether it waits for its share of the bound.
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back.load(Relaxed)
    }
}

/// Makes TCP connections of one class, below TLS.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpConnector,
    limiter: Arc<Limiter>,
    tally: Arc<Tally>,
    class: Class,
    link_local: LinkLocal,
}

/// Whether connections may go to link-local addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLocal {
    /// What hands out the credentials of some clouds is there, and is asked over the same client.
    Allowed,
    /// Nothing but storage is asked, and that is never there, whatever a name resolves to.
    Refused,
}

impl Connector {
    pub(super) fn new(limiter: Arc<Limiter>, tally: Arc<Tally>, class: Class, link_local: LinkLocal) -> Self {
        let mut inner = HttpConnector::new();
        inner.enforce_http(false);
        inner.set_nodelay(true);
        inner.set_connect_timeout(Some(CONNECT_TIMEOUT));
        inner.set_keepalive(Some(Duration::from_secs(60)));
        Self { inner, limiter, tally, class, link_local }
    }

    fn connect(&mut self, uri: Uri) -> Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>> {
        let to = uri.authority().map_or_else(String::new, ToString::to_string);
        if let Some(connecting) = connect_simulated(&to) {
            return Box::pin(async move { Ok(Stream::Simulated(connecting.await?)) });
        }
        let connecting = self.inner.call(uri);
        Box::pin(async move {
            let tcp = connecting.await?.into_inner();
            // A body that breaks off, as of a client that goes away or of this process when it dies, ends in a reset: some servers take
            // an orderly end for that of the object, and keep a part of it in its place.
            tcp.set_zero_linger()?;
            Ok(Stream::Tcp(tcp))
        })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<BoundedStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.connect(uri);
        let (turn, tally) = (self.limiter.turn(self.class), Arc::clone(&self.tally));
        let link_local = self.link_local;
        Box::pin(async move {
            let stream = connecting.await?;
            if let Stream::Tcp(tcp) = &stream
                && let peer = tcp.peer_addr()?
                && link_local == LinkLocal::Refused
                && is_link_local(peer.ip())
            {
                // Before a byte was sent.
                return Err(
                    format!("{peer} is a link-local address, where no storage is: give the mount another endpoint").into()
                );
            }
            let state = Arc::new(ConnectionState::default());
            Ok(TokioIo::new(BoundedStream { inner: stream.take(0), turn, tally, state, hung_up: HungUp::No }))
        })
    }
}

/// A TCP connection that reads no more than its share of the bound and counts what it reads. What a server said before it hung up
/// is read, also by who was still sending.
pub(super) struct BoundedStream {
    inner: Take<Stream>,
    turn: Turn,
    tally: Arc<Tally>,
    state: Arc<ConnectionState>,
    hung_up: HungUp,
}

/// Whether a write has found that the other side takes no more. A server that refuses a request by its head closes while the body
/// is still sent, and its answer lies there: an error of the write would have it thrown away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HungUp {
    No,
    /// Nothing more is written; what there is is read.
    Unread,
    /// All of it was read.
    Read,
}

impl BoundedStream {
    /// What a write came to, as who writes is told.
    fn written(&mut self, cx: &Context<'_>, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        match written {
            Ok(bytes) => {
                count_by(&self.state.moved_bytes, bytes as u64);
                Poll::Ready(Ok(bytes))
            }
            Err(error) if self.hung_up == HungUp::No && self.may_have_said_more(&error) => {
                self.hung_up = HungUp::Unread;
                // The writer reads as well, and goes on by what it reads.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn may_have_said_more(&self, error: &io::Error) -> bool {
        matches!(self.inner.get_ref(), Stream::Tcp(_))
            && matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let want = buffer.remaining() as u64;
        if want == 0 {
            return Poll::Ready(Ok(()));
        }
        let granted = this.turn.poll_take(want, cx);
        this.state.held_back.store(this.turn.is_waiting(), Relaxed);
        let granted = ready!(granted);
        this.inner.set_limit(granted);
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, buffer);
        let read = (buffer.filled().len() - before) as u64;
        this.turn.give_back(granted - read);
        if read > 0 {
            this.turn.read(read);
            count_by(&this.tally.socket_bytes_in, read);
            count_by(&this.state.moved_bytes, read);
        } else if this.hung_up == HungUp::Unread && polled.is_ready() {
            this.hung_up = HungUp::Read;
        }
        polled
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.hung_up == HungUp::Unread {
            return Poll::Pending;
        }
        let written = ready!(Pin::new(self.inner.get_mut()).poll_write(cx, data));
        self.written(cx, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.hung_up == HungUp::Unread {
            return Poll::Pending;
        }
        let written = ready!(Pin::new(self.inner.get_mut()).poll_write_vectored(cx, data));
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner.get_mut()).poll_shutdown(cx)
    }
}

impl Connection for BoundedStream {
    fn connected(&self) -> Connected {
        Connected::new().extra(Arc::clone(&self.state))
    }
}
