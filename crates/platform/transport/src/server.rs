//! The answering side: accepts connections, and ends them in order.

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::PROTOCOL_VERSION;
use forebay_types::Result;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::listener::Listener;
use crate::local::{Door, Opened};
use crate::ring::Rings;
use crate::serve::{Memory, Shared, serve};
use crate::tls::{Acceptor, Spoken};
use crate::{Address, Budget, Entrance, Security, Seldom, ServerLimits, Service};

/// How long running calls get at a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when the system has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The answering side: accepts connections and serves them. Dropping it ends all of them at once.
pub struct Server {
    // Above what its end would be told by.
    task: AbortOnDropHandle<()>,
    address: Address,
    stop: watch::Sender<bool>,
    /// Of a Unix socket.
    door: Option<Opened>,
}

impl Server {
    /// Serves what comes in at `listener`.
    ///
    /// `Invalid` when the files for TLS can't be used.
    pub fn start<S: Service>(listener: Listener, security: Security, service: Arc<S>, limits: ServerLimits) -> Result<Self> {
        let acceptor = match &security.tls {
            Some(settings) if listener.is_tcp() => Some(Acceptor::new(settings, Spoken::Ours)?),
            _ => None,
        };
        let address = listener.local_address();
        let stop = watch::Sender::new(false);
        let door = match &address {
            Address::Unix(path) if security.newest == PROTOCOL_VERSION => {
                Some(Opened::new(path.clone(), Door::of(Arc::clone(&service), Arc::clone(&security.admits))))
            }
            _ => None,
        };
        let shared = Arc::new(Shared {
            service,
            security,
            acceptor,
            limits,
            rings: Arc::new(Rings::new()),
            admitted: Arc::new(Semaphore::new(limits.connections)),
            memory: Memory::new(limits.request_bytes.map_or_else(Budget::of_process, Budget::new)),
            silent: Mutex::default(),
        });
        let task = AbortOnDropHandle::new(forebay_runtime::spawn(accept(listener, shared, stop.subscribe())));
        Ok(Self { address, stop, task, door })
    }

    /// Where it listens.
    pub fn local_address(&self) -> Address {
        self.address.clone()
    }

    /// Takes no more connections and requests, lets running calls finish for up to 5 s, and ends.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        let door = self.door.take();
        let finished = async {
            if let Some(door) = door {
                door.finish(SHUTDOWN_TIMEOUT).await;
            }
        };
        // Fails only by a defect, which the runtime reports.
        let (_, ()) = tokio::join!(&mut self.task, finished);
    }
}

async fn accept<S: Service>(listener: Listener, shared: Arc<Shared<S>>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let (entrance, mut failing) = (Entrance::default(), Seldom::default());
    let stopped = stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok(accepted) => {
                let place = tokio::select! {
                    place = entrance.enter(&accepted.peer.address) => place,
                    _ = stop.wait_for(|stop| *stop) => break,
                };
                connections.spawn(serve(shared.clone(), accepted, place, stopped.clone()));
            }
            Err(error) => {
                if let Some(times) = failing.happens(forebay_runtime::now()) {
                    warn!(reason = %error, times, "connections can't be accepted");
                }
                forebay_runtime::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if forebay_runtime::time::timeout(SHUTDOWN_TIMEOUT, finished).await.is_err() {
        warn!(connections = connections.len(), "connections ended at shutdown with calls still running");
    }
}
