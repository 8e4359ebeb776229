//! Accepts connections, with TLS where there is some, and bounds how many are served and how many still shake hands.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_transport::{Acceptor, Entrance, Introduced, Seldom, Spoken, TlsSettings, through};
use forebay_types::Result;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::server::Connected;

use crate::callers::Connection;

/// Connections at once.
const CONNECTIONS_MAX: usize = 1_024;
/// Handshakes that are done and wait to be served.
const WAITING_MAX: usize = 16;
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
            let (mut handshakes, entrance) = (JoinSet::new(), Entrance::with_places(CONNECTIONS_MAX));
            let mut failing = Seldom::default();
            loop {
                let (stream, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        if let Some(times) = failing.happens(forebay_runtime::now()) {
                            tracing::warn!(%error, times, "Flight connections can't be accepted");
                        }
                        forebay_runtime::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                };
                let _ = stream.set_nodelay(true);
                let (acceptor, sender, room) = (acceptor.clone(), sender.clone(), Arc::clone(&room));
                let place = entrance.enter(&peer.to_string()).await;
                handshakes.spawn(async move {
                    // A connection takes one of the places of those that are served when it has begun to speak.
                    let introduced = async {
                        let bytes = Introduced::hear(stream, acceptor.as_ref(), &place).await?;
                        let room = tokio::select! {
                            room = room.acquire_owned() => room.map_err(io::Error::other)?,
                            () = place.gives_way() => return Err(io::Error::other("others wait for its place")),
                        };
                        io::Result::Ok(Socket { bytes, connection: Connection::default(), _room: room })
                    };
                    let introduced = introduced.await;
                    drop(place);
                    match introduced {
                        // Nobody serves any more when this fails.
                        Ok(socket) => drop(sender.send(socket).await),
                        Err(error) => tracing::debug!(%peer, %error, "flight connection ended before its first request"),
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

/// One connection, with what is set by it.
pub(crate) struct Socket {
    bytes: Introduced,
    connection: Connection,
    _room: OwnedSemaphorePermit,
}

impl Connected for Socket {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.connection.clone()
    }
}

through!(read bytes: Socket);
through!(write bytes: Socket);
