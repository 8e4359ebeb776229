//! The server: listens, accepts connections up to a number, and ends in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_metrics::Gauge;
use forebay_transport::{Acceptor, Entrance, Introduced, Seldom, Spoken};
use forebay_types::{Result, ResultExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::connection::serve;
use crate::context::Context;
use crate::settings::GatewaySettings;

/// What is under way may take so long when the gateway stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// An S3 server whose buckets are mounts. It stops when dropped.
pub struct Gateway {
    address: SocketAddr,
    https: bool,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Gateway {
    /// Listens and answers from now on, reading and writing through `client`.
    pub async fn start(client: Client, settings: GatewaySettings) -> Result<Self> {
        let place = || format!("can't listen at {}", settings.listen);
        let tls = settings.tls.as_ref().map(|tls| Acceptor::new(tls, Spoken::Http1)).transpose()?;
        let listener = TcpListener::bind(&settings.listen).await.context(place)?;
        let address = listener.local_addr().context(place)?;
        let (stop, stopped) = watch::channel(false);
        let https = tls.is_some();
        let task = forebay_runtime::spawn(accept(listener, tls, Context::new(client, settings), stopped));
        Ok(Self { address, https, stop, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it speaks HTTPS.
    pub fn is_https(&self) -> bool {
        self.https
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
async fn accept(listener: TcpListener, tls: Option<Acceptor>, context: Arc<Context>, mut stopped: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(context.settings.connections_max));
    let (mut connections, entrance) = (JoinSet::new(), Entrance::with_places(context.settings.connections_max));
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
        let _ = socket.set_nodelay(true);
        let address = from.to_string();
        let place = tokio::select! {
            _ = stopped.changed() => break,
            place = entrance.enter(&address) => place,
        };
        let (context, tls, room) = (Arc::clone(&context), tls.clone(), Arc::clone(&room));
        let (mut stopping, stopped) = (stopped.clone(), stopped.clone());
        connections.spawn(async move {
            // A connection takes one of the places of those that are served when it has said what it wants.
            let introduced = async {
                let socket = Introduced::hear(socket, tls.as_ref(), &place).await?;
                let permit = tokio::select! {
                    permit = room.acquire_owned() => permit.map_err(std::io::Error::other)?,
                    () = place.gives_way() => return Err(std::io::Error::other("others wait for its place")),
                };
                std::io::Result::Ok((socket, permit))
            };
            let introduced = tokio::select! {
                introduced = introduced => introduced,
                _ = stopping.wait_for(|stopped| *stopped) => return,
            };
            drop(place);
            match introduced {
                Ok((socket, permit)) => {
                    let _counted = (permit, Open::new(&context.meters.connections));
                    match socket {
                        Introduced::Plain(socket) => serve(socket, from, context, stopped).await,
                        Introduced::Tls(socket) => serve(socket, from, context, stopped).await,
                    }
                }
                Err(error) => tracing::debug!(%from, %error, "connection ended before its first request"),
            }
        });
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = forebay_runtime::time::timeout(STOP_WITHIN, ended).await;
    connections.shutdown().await;
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
