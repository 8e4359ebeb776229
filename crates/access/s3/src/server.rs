//! The server: listens, accepts connections up to a number, and ends in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_metrics::Gauge;
use forebay_runtime::net::{Listener, Stream, socket_address};
use forebay_transport::{Acceptor, Entrance, Introduced, Seldom, Served, Spoken};
use forebay_types::{Result, ResultExt};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::LARGE_PIECES;
use crate::connection::serve;
use crate::context::Context;
use crate::dialect::S3Error;
use crate::settings::GatewaySettings;

/// What is under way may take so long when the gateway stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How long it takes at most to tell somebody that he is not served.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);

/// An S3 server whose buckets are mounts. It stops when dropped.
pub struct Gateway {
    address: SocketAddr,
    https: bool,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    context: Arc<Context>,
}

/// What a gateway holds for its clients: at rest nothing, but for uploads that they neither complete nor give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Uploads in parts that wait here.
    pub uploads: usize,
    /// Their parts.
    pub parts: usize,
    /// Bytes of these.
    pub part_bytes: u64,
    /// Large pieces of answers that are under way.
    pub large_pieces: usize,
}

impl Gateway {
    /// Listens and answers from now on, reading and writing through `client`.
    pub async fn start(client: Client, settings: GatewaySettings) -> Result<Self> {
        let place = || format!("can't listen at {}", settings.listen);
        let tls = settings.tls.as_ref().map(|tls| Acceptor::new(tls, Spoken::Http1)).transpose()?;
        let listener = Listener::bind(&settings.listen).await.context(place)?;
        let address = socket_address(&listener.local_address().context(place)?);
        let (stop, stopped) = watch::channel(false);
        let https = tls.is_some();
        let context = Context::new(client, settings);
        let task = forebay_runtime::spawn(accept(listener, tls, Arc::clone(&context), stopped));
        Ok(Self { address, https, stop, task, context })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it speaks HTTPS.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// What it holds now.
    pub fn holding(&self) -> Holding {
        let (uploads, (parts, part_bytes)) = self.context.drafts.held();
        let large_pieces = LARGE_PIECES - self.context.large_pieces.available_permits();
        Holding { uploads, parts, part_bytes, large_pieces }
    }

    /// Takes no more connections, answers what was asked already for at most 10 s, then ends.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Err(error) = (&mut self.task).await {
            tracing::debug!(%error, "gateway did not end in order");
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

forebay_types::shown!(Gateway: address);

/// Serves connections until told to stop; those that are open then end with this function.
async fn accept(listener: Listener, tls: Option<Acceptor>, context: Arc<Context>, mut stopped: watch::Receiver<bool>) {
    let served = Served::new("s3", context.settings.connections_max);
    let (mut connections, entrance) = (JoinSet::new(), Entrance::of_port(context.settings.connections_max));
    let mut failing = Seldom::default();
    loop {
        let accepted = loop {
            tokio::select! {
                _ = stopped.changed() => break None,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept() => break Some(accepted),
            }
        };
        let (socket, from) = match accepted {
            None => break,
            Some(Ok(accepted)) => accepted,
            Some(Err(error)) => {
                // Out of descriptors, say: those that are open go on.
                if let Some(times) = failing.happens(forebay_runtime::now()) {
                    tracing::warn!(%error, times, "S3 connections can't be accepted");
                }
                forebay_runtime::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if let Stream::Tcp(socket) = &socket {
            let _ = socket.set_nodelay(true);
        }
        let place = tokio::select! {
            _ = stopped.changed() => break,
            place = entrance.enter(&from) => place,
        };
        let from = socket_address(&from);
        let (context, tls, served) = (Arc::clone(&context), tls.clone(), served.clone());
        let (mut stopping, stopped) = (stopped.clone(), stopped.clone());
        connections.spawn(async move {
            // A connection takes one of the places of those that are served when it has said what it wants.
            let introduced = tokio::select! {
                introduced = Introduced::hear(socket, tls.as_ref(), &place) => introduced,
                _ = stopping.wait_for(|stopped| *stopped) => return,
            };
            let socket = match introduced {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::debug!(%from, %error, "connection ended before its first request");
                    return;
                }
            };
            let Some(counted) = served.count(from.ip()) else {
                // In its place until then: of those there is a number.
                let refused = forebay_runtime::time::timeout(REFUSED_WITHIN, refuse(socket, &context)).await;
                tracing::debug!(%from, told = matches!(refused, Ok(Ok(()))), "connection refused: too many are open");
                return;
            };
            drop(place);
            let _counted = (counted, Open::new(&context.meters.connections));
            match socket {
                Introduced::Plain(socket) => serve(socket, from, context, stopped).await,
                Introduced::Tls(socket) => serve(socket, from, context, stopped).await,
            }
        });
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = forebay_runtime::time::timeout(STOP_WITHIN, ended).await;
    connections.shutdown().await;
}

/// Tells who comes when too many connections are served to come later, whatever he wants.
async fn refuse(socket: Introduced<Stream>, context: &Context) -> std::io::Result<()> {
    let why = "Too many connections are open, of all or of your host: close some, or try again later.";
    let body = S3Error::slow_down().saying(why).body("/", &context.request_id());
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/xml\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.end_with(&[head.as_bytes(), &body[..]].concat()).await
}

/// A connection that counts as open.
struct Open(Arc<Gauge>);

impl Open {
    fn new(gauge: &Arc<Gauge>) -> Self {
        gauge.add(1.0);
        Self(Arc::clone(gauge))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}
