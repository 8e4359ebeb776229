//! Accepts connections, with TLS where there is some, and bounds how many are served and how many still shake hands.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_transport::{Acceptor, Counted, Entrance, Introduced, Seldom, Served, Spoken, TlsSettings, connections_max, through};
use forebay_types::Result;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::server::Connected;

use crate::callers::Connection;

/// Connections at once, where there are descriptors for as many.
const CONNECTIONS_MAX: usize = 1_024;
/// Handshakes that are done and wait to be served.
const WAITING_MAX: usize = 16;
/// Pause after an accept that failed, as it does without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long it takes at most to tell somebody that he is not served.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);
/// Why he is not.
const TOO_MANY: &[u8] = b"too many connections are open, of all or of this host: close some, or try again later";

/// The connections of a port, behind TLS where the cluster has it.
pub(crate) struct Incoming {
    ready: mpsc::Receiver<Socket>,
    _accepting: AbortOnDropHandle<()>,
}

impl Incoming {
    pub(crate) fn new(listener: TcpListener, tls: Option<&TlsSettings>) -> Result<Self> {
        Self::serving(CONNECTIONS_MAX.min(connections_max()), listener, tls)
    }

    /// So many at most.
    fn serving(most: usize, listener: TcpListener, tls: Option<&TlsSettings>) -> Result<Self> {
        let acceptor = tls.map(|tls| Acceptor::new(tls, Spoken::Http2)).transpose()?;
        let (sender, ready) = mpsc::channel(WAITING_MAX);
        let served = Served::new("flight-sql", most);
        let accept = async move {
            // Handshakes end with the port.
            let (mut handshakes, entrance) = (JoinSet::new(), Entrance::of_port(most));
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
                let (acceptor, sender, served) = (acceptor.clone(), sender.clone(), served.clone());
                let place = entrance.enter(&peer.to_string()).await;
                handshakes.spawn(async move {
                    // A connection takes one of the places of those that are served when it has begun to speak.
                    let bytes = match Introduced::hear(stream, acceptor.as_ref(), &place).await {
                        Ok(bytes) => bytes,
                        Err(error) => {
                            tracing::debug!(%peer, %error, "flight connection ended before its first request");
                            return;
                        }
                    };
                    let Some(counted) = served.count(peer.ip()) else {
                        // In its place until then: of those there is a number.
                        let _ = forebay_runtime::time::timeout(REFUSED_WITHIN, bytes.end_with(&goodbye())).await;
                        return;
                    };
                    drop(place);
                    let socket = Socket { bytes, connection: Connection::default(), _counted: counted };
                    // Nobody serves any more when this fails.
                    drop(sender.send(socket).await);
                });
                while handshakes.try_join_next().is_some() {}
            }
        };
        Ok(Self { ready, _accepting: AbortOnDropHandle::new(forebay_runtime::spawn(accept)) })
    }
}

/// Tells who comes when too many connections are served to come later: settings, which come first in HTTP/2, and that no request was taken
/// (`GOAWAY`) for there are too many (`ENHANCE_YOUR_CALM`).
fn goodbye() -> Vec<u8> {
    let length = TOO_MANY.len() + 8;
    assert!(length < 256, "{length} bytes are told by one");
    let settings: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let go_away = [0, 0, length as u8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
    [&settings[..], &go_away[..], TOO_MANY].concat()
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
    _counted: Counted,
}

impl Connected for Socket {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.connection.clone()
    }
}

through!(read bytes: Socket);
through!(write bytes: Socket);

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn silent_connections_keep_nobody_out_and_who_comes_when_too_many_are_served_is_told_to_come_later() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut incoming = Incoming::serving(2, listener, None).unwrap();
        let comes = async || {
            let mut client = TcpStream::connect(at).await.unwrap();
            client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
            client
        };
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        let _first = comes().await;
        // Who says nothing has none of the places, and one host half of them.
        let served = incoming.next().await.unwrap().unwrap();
        let (mut second, mut told) = (comes().await, Vec::new());
        second.read_to_end(&mut told).await.unwrap();
        assert!(told == goodbye() && told.ends_with(TOO_MANY), "{told:?}");
        drop(served);
        let _third = comes().await;
        assert!(incoming.next().await.is_some_and(|socket| socket.is_ok()), "its place is free again");
    }
}
