use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_runtime::time::timeout;
use forebay_transport::{Acceptor, Spoken, TlsSettings};
use forebay_types::Result;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::server::Connected;

/// Connections at once.
const CONNECTIONS_MAX: usize = 1_024;
/// Handshakes that are done and wait to be served.
const WAITING_MAX: usize = 16;
/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Pause after an accept that failed, as it does without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The connections of a port, behind TLS where the cluster has it.
pub(crate) struct Incoming {
    ready: mpsc::Receiver<Socket>,
    _accepting: AbortOnDropHandle<()>,
}

impl Incoming {
    pub(crate) fn new(listener: TcpListener, tls: Option<&TlsSettings>) -> Result<Self> {
        let acceptor = tls.map(|tls| Acceptor::new(tls, Spoken::Http2)).transpose()?;
        let (sender, ready) = mpsc::channel(WAITING_MAX);
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let accept = async move {
            // Handshakes end with the port.
            let mut handshakes = JoinSet::new();
            loop {
                // A closed semaphore is the only failure, and nobody closes this one.
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                let (stream, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!(%error, "flight connection not accepted");
                        forebay_runtime::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                };
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                handshakes.spawn(async move {
                    match timeout(HANDSHAKE, Socket::of(stream, acceptor, permit)).await {
                        // Nobody serves any more when this fails.
                        Ok(Ok(socket)) => drop(sender.send(socket).await),
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "flight handshake failed"),
                        Err(_) => tracing::debug!(%peer, "flight handshake takes too long"),
                    }
                });
                while handshakes.try_join_next().is_some() {}
            }
        };
        Ok(Self { ready, _accepting: AbortOnDropHandle::new(forebay_runtime::spawn(accept)) })
    }
}

impl futures::Stream for Incoming {
    type Item = io::Result<Socket>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready.poll_recv(context).map(|socket| socket.map(Ok))
    }
}

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// One connection.
pub(crate) struct Socket {
    bytes: Box<dyn Bytes>,
    peer: Option<SocketAddr>,
    _room: OwnedSemaphorePermit,
}

impl Socket {
    async fn of(stream: TcpStream, acceptor: Option<Acceptor>, room: OwnedSemaphorePermit) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr().ok();
        let bytes: Box<dyn Bytes> = match acceptor {
            Some(acceptor) => Box::new(acceptor.accept(stream).await?),
            None => Box::new(stream),
        };
        Ok(Self { bytes, peer, _room: room })
    }
}

impl Connected for Socket {
    type ConnectInfo = Option<SocketAddr>;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.peer
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_read(context, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.bytes.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}
