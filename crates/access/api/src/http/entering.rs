//! Connections that come in at the HTTP port, until they have said what they want.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use forebay_transport::{Acceptor, Counted, Entrance, Introduced, Seldom, Served, Spare, Spoken, TlsSettings, through};
use forebay_types::{Result, ResultExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::last_word::{NO_DESCRIPTORS, TOO_MANY, last_word};
use super::quiet::Quiet;
use crate::visitor::Visitor;

/// Connections that have said what they want and wait to be served.
const READY_MAX: usize = 16;
/// Pause after an accept that failed, as it does without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// So long has who is not served to ask and to be answered: who comes without free descriptors has one that is kept.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// A port of HTTP or HTTPS. Who connects and says nothing keeps nobody out.
pub(crate) struct Entering {
    ready: mpsc::Receiver<(Introduced, Counted, Visitor)>,
    address: SocketAddr,
    _accepting: AbortOnDropHandle<()>,
}

impl Entering {
    /// Listens from now on, with TLS where there are settings, and serves so many connections at a time; `place` says where, for errors.
    pub(crate) async fn bind(
        address: &str,
        tls: Option<&TlsSettings>,
        connections_max: usize,
        place: impl Fn() -> String,
    ) -> Result<(Self, SocketAddr)> {
        let acceptor = tls.map(|tls| Acceptor::new(tls, Spoken::Http1Probed)).transpose()?;
        let listener = TcpListener::bind(address).await.context(&place)?;
        let address = listener.local_addr().context(place)?;
        let (sender, ready) = mpsc::channel(READY_MAX);
        let served = Served::new("http", connections_max);
        let accepting = AbortOnDropHandle::new(forebay_runtime::spawn(accept(listener, acceptor, served, sender)));
        Ok((Self { ready, address, _accepting: accepting }, address))
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<Acceptor>,
    served: Served,
    ready: mpsc::Sender<(Introduced, Counted, Visitor)>,
) {
    let (acceptor, entrance, mut failing) = (Arc::new(acceptor), Entrance::default(), Seldom::default());
    let spare = Spare::default();
    // What is not introduced yet ends with the port.
    let mut coming = tokio::task::JoinSet::new();
    loop {
        spare.keep();
        let (stream, address, is_last) = match accepted(&listener, &spare).await {
            Ok(Some(accepted)) => accepted,
            Ok(None) => continue,
            Err(error) => {
                if let Some(times) = failing.happens(forebay_runtime::now()) {
                    tracing::warn!(%error, times, "HTTP connections can't be accepted");
                }
                forebay_runtime::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if is_last && let Some(times) = failing.happens(forebay_runtime::now()) {
            tracing::warn!(times, "HTTP connections can't be accepted: no descriptors are left but to answer /healthz");
        }
        let _ = stream.set_nodelay(true);
        let place = entrance.enter(&address.to_string()).await;
        let (acceptor, ready, served, spare) = (Arc::clone(&acceptor), ready.clone(), served.clone(), spare.clone());
        coming.spawn(async move {
            let hearing = Introduced::hear(stream, (*acceptor).as_ref(), &place);
            if is_last {
                turn_away(hearing, NO_DESCRIPTORS, address).await;
                // It is closed now.
                spare.keep();
                return;
            }
            let heard = hearing.await;
            match heard {
                Ok(socket) => match served.count(address.ip()) {
                    Some(counted) => {
                        drop(place);
                        let visitor = Visitor { address, has_shown_certificate: socket.has_shown_certificate() };
                        // Nobody serves any more when this fails.
                        let _ = ready.send((socket, counted, visitor)).await;
                    }
                    // It has its place here until then: of those there is a number.
                    None => turn_away(std::future::ready(Ok(socket)), TOO_MANY, address).await,
                },
                Err(error) => tracing::debug!(%address, %error, "http connection ended before its first request"),
            }
        });
        while coming.try_join_next().is_some() {}
    }
}

/// Answers the request of who can't be served, and ends the connection.
async fn turn_away(hearing: impl Future<Output = io::Result<Introduced>>, why: &str, address: SocketAddr) {
    let answered = async { last_word(hearing.await?, why).await };
    if !matches!(forebay_runtime::time::timeout(ANSWERED_WITHIN, answered).await, Ok(Ok(()))) {
        tracing::debug!(%address, why, "http connection that is not served ended before it was answered");
    }
}

/// The next connection, and whether it came when there were no descriptors but those that are kept. None where such a one was looked for and
/// nobody has come.
async fn accepted(listener: &TcpListener, spare: &Spare) -> io::Result<Option<(TcpStream, SocketAddr, bool)>> {
    match listener.accept().await {
        Ok((stream, address)) => Ok(Some((stream, address, false))),
        Err(error) => Ok(spare.accept(listener, error)?.map(|(stream, address)| (stream, address, true))),
    }
}

impl Listener for Entering {
    type Io = Serving;
    type Addr = Visitor;

    async fn accept(&mut self) -> (Serving, Visitor) {
        match self.ready.recv().await {
            Some((socket, counted, visitor)) => (Serving { socket: Quiet::new(socket), _counted: counted }, visitor),
            // Only where accepting has failed by a defect, which the runtime reports.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Visitor> {
        Ok(Visitor { address: self.address, has_shown_certificate: false })
    }
}

/// A connection that is served.
pub(crate) struct Serving {
    socket: Quiet<Introduced>,
    _counted: Counted,
}

through!(read socket: Serving);
through!(write socket: Serving);

impl Connected<IncomingStream<'_, Entering>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Entering>) -> Self {
        *stream.remote_addr()
    }
}
