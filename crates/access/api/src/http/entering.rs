//! Connections that come in at the HTTP port, until they have said what they want.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use forebay_transport::{Acceptor, Entrance, Introduced, Seldom, Spoken, TlsSettings};
use forebay_types::{Result, ResultExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::quiet::Quiet;
use crate::visitor::Visitor;

/// Connections that have said what they want and wait to be served.
const READY_MAX: usize = 16;
/// Pause after an accept that failed, as it does without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port of HTTP or HTTPS. Who connects and says nothing keeps nobody out.
pub(crate) struct Entering {
    ready: mpsc::Receiver<(Introduced, Visitor)>,
    address: SocketAddr,
    _accepting: AbortOnDropHandle<()>,
}

impl Entering {
    /// Listens from now on, with TLS where there are settings; `place` says where, for errors.
    pub(crate) async fn bind(address: &str, tls: Option<&TlsSettings>, place: impl Fn() -> String) -> Result<(Self, SocketAddr)> {
        let acceptor = tls.map(|tls| Acceptor::new(tls, Spoken::Http1Probed)).transpose()?;
        let listener = TcpListener::bind(address).await.context(&place)?;
        let address = listener.local_addr().context(place)?;
        let (sender, ready) = mpsc::channel(READY_MAX);
        let accepting = AbortOnDropHandle::new(forebay_runtime::spawn(accept(listener, acceptor, sender)));
        Ok((Self { ready, address, _accepting: accepting }, address))
    }
}

async fn accept(listener: TcpListener, acceptor: Option<Acceptor>, ready: mpsc::Sender<(Introduced, Visitor)>) {
    let (acceptor, entrance, mut failing) = (Arc::new(acceptor), Entrance::default(), Seldom::default());
    // What is not introduced yet ends with the port.
    let mut coming = tokio::task::JoinSet::new();
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(times) = failing.happens(forebay_runtime::now()) {
                    tracing::warn!(%error, times, "HTTP connections can't be accepted");
                }
                forebay_runtime::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let place = entrance.enter(&address.to_string()).await;
        let (acceptor, ready) = (Arc::clone(&acceptor), ready.clone());
        coming.spawn(async move {
            let introduced = Introduced::hear(stream, (*acceptor).as_ref(), &place).await;
            drop(place);
            match introduced {
                Ok(socket) => {
                    let visitor = Visitor { address, has_shown_certificate: socket.has_shown_certificate() };
                    // Nobody serves any more when this fails.
                    let _ = ready.send((socket, visitor)).await;
                }
                Err(error) => tracing::debug!(%address, %error, "http connection ended before its first request"),
            }
        });
        while coming.try_join_next().is_some() {}
    }
}

impl Listener for Entering {
    type Io = Quiet<Introduced>;
    type Addr = Visitor;

    async fn accept(&mut self) -> (Quiet<Introduced>, Visitor) {
        match self.ready.recv().await {
            Some((socket, visitor)) => (Quiet::new(socket), visitor),
            // Only where accepting has failed by a defect, which the runtime reports.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Visitor> {
        Ok(Visitor { address: self.address, has_shown_certificate: false })
    }
}

impl Connected<IncomingStream<'_, Entering>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Entering>) -> Self {
        *stream.remote_addr()
    }
}
