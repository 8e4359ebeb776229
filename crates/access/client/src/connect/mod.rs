//! Lines to the coordinator and to the workers, and one question over one of them.
//!
//! Owns: the connections, how each is made, shared and made again, the pins that are kept on those of this host, and what an
//! answer that is not there, late or unfit is called.
//!
//! Never does: choose whom to ask, which `route` does, or ask a second worker.
//!
//! Start with [`Connections::link`] and [`ask`].

mod ask;
mod control;
mod slot;
mod tcp;
mod traced;
mod wait;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::WorkerInfo;
use forebay_runtime::time::timeout;
use forebay_transport::{Address, Connection};
use forebay_types::{Error, HostId, Result, WorkerId};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::in_place::{PinCache, Session, host_id};
use crate::settings::ClientSettings;
use slot::{Alive, Slot};
use tcp::{Call, Tcp};

pub(crate) use ask::{Failure, Given, ask, ask_bytes, ask_for, deadline_for, given, late, misfit};
pub(crate) use control::{Control, unexpected};
pub(crate) use slot::{REFUSED_FOR, to_its_end};
pub(crate) use tcp::Weight;
pub(crate) use traced::{of_node, said};
pub use wait::Wait;

/// The connections to workers: one Unix connection to a worker of this host, a few TCP connections to others, made at
/// first use and again after they closed.
pub(crate) struct Connections {
    settings: ClientSettings,
    /// None when in-place reads are off or the host can't be told.
    host: Option<HostId>,
    /// What is kept for later reads of the connections of this host.
    /// The pins that are kept for later reads.
    pub(crate) pins: Arc<PinCache>,
    workers: Mutex<HashMap<WorkerId, Arc<WorkerLinks>>>,
    _releasing: AbortOnDropHandle<()>,
}

impl Alive for Arc<Session> {
    fn alive(&self) -> bool {
        self.stands()
    }
}

struct WorkerLinks {
    info: Arc<WorkerInfo>,
    local: Slot<Arc<Session>>,
    tcp: Tcp,
}

/// A way to a worker for one call.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) worker: WorkerId,
    pub(crate) connection: Connection,
    session: Option<Arc<Session>>,
    /// The call on a TCP connection, so that the next one knows of it.
    call: Option<Arc<Call>>,
}

impl Link {
    /// The session whose tier is mapped here, if this worker's is.
    pub(crate) fn in_place(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|session| session.mapping.is_some())
    }

    /// So many bytes came with the answer to a call for a value.
    pub(crate) fn came(&self, bytes: usize) {
        if let Some(call) = &self.call {
            call.came(bytes);
        }
    }
}

impl Connections {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        let host =
            if settings.in_place { host_id().inspect_err(|error| debug!(%error, "no reading in place")).ok() } else { None };
        let pins = Arc::new(PinCache::new(settings.pins_max, settings.pin_idle));
        let releasing = AbortOnDropHandle::new(forebay_runtime::spawn(Arc::clone(&pins).run()));
        Self { settings, host, pins, workers: Mutex::default(), _releasing: releasing }
    }

    /// How long a worker may take for what moves few bytes.
    pub(crate) fn read_deadline(&self) -> Duration {
        self.settings.read_deadline
    }

    /// Whether a worker's tier can be read in place from here.
    pub(crate) fn is_beside(&self, info: &WorkerInfo) -> bool {
        self.socket_beside(info).is_some()
    }

    /// A way to this worker; `Retry` when it can't be reached: nothing was asked of it then.
    pub(crate) async fn link(&self, info: &Arc<WorkerInfo>) -> Result<Link> {
        self.link_for(info, Weight::Large).await
    }

    /// The same for a call of which it is known what it moves.
    pub(crate) async fn link_for(&self, info: &Arc<WorkerInfo>, weight: Weight) -> Result<Link> {
        let links = self.links(info);
        if let Some(socket) = self.socket_beside(info) {
            match links.local.get(|| self.attach(info, socket)).await {
                Ok(session) => {
                    let connection = session.connection.clone();
                    return Ok(Link { worker: info.id, connection, session: Some(session), call: None });
                }
                Err(error) => debug!(worker = %info.id, %error, "unix socket does not answer, trying tcp"),
            }
        }
        let (slot, call) = links.tcp.take(weight);
        let connection = slot.get(|| connect(self.settings.clone(), Arc::clone(info))).await?;
        Ok(Link { worker: info.id, connection, session: None, call: Some(Arc::new(call)) })
    }

    /// The session with a worker of this host, where there is one.
    pub(crate) fn session(&self, info: &Arc<WorkerInfo>) -> Option<Arc<Session>> {
        self.socket_beside(info)?;
        self.links(info).local.current()
    }

    /// Lets the connections go of workers that have left.
    pub(crate) fn retain(&self, stays: impl Fn(WorkerId) -> bool) {
        let gone: Vec<_> = self.workers.lock().extract_if(|worker, _| !stays(*worker)).collect();
        drop(gone);
    }

    fn links(&self, info: &Arc<WorkerInfo>) -> Arc<WorkerLinks> {
        let mut workers = self.workers.lock();
        match workers.get(&info.id) {
            Some(links) if links.info.address == info.address && links.info.unix_socket == info.unix_socket => Arc::clone(links),
            // New, or back at another address.
            _ => {
                let links = Arc::new(WorkerLinks { info: Arc::clone(info), local: Slot::new(), tcp: Tcp::new() });
                workers.insert(info.id, Arc::clone(&links));
                links
            }
        }
    }

    fn socket_beside<'a>(&self, info: &'a WorkerInfo) -> Option<&'a str> {
        info.unix_socket.as_deref().filter(|_| self.host.as_ref() == Some(&info.host))
    }

    fn attach(&self, info: &Arc<WorkerInfo>, socket: &str) -> impl Future<Output = Result<Arc<Session>>> + Send + use<> {
        let (settings, info) = (self.settings.clone(), Arc::clone(info));
        let (socket, pins) = (PathBuf::from(socket), Arc::downgrade(&self.pins));
        async move {
            let let_go = move || {
                if let Some(pins) = pins.upgrade() {
                    pins.drop_closed();
                }
            };
            let session = Session::connect(&info, &socket, &settings.security, settings.connect_timeout, let_go).await?;
            if settings.ring && session.mapping.is_some() {
                session.open_ring(settings.connect_timeout).await;
            }
            Ok(session)
        }
    }
}

async fn connect(settings: ClientSettings, info: Arc<WorkerInfo>) -> Result<Connection> {
    let address = Address::Tcp(info.address.clone());
    match timeout(settings.connect_timeout, Connection::connect(&address, &settings.security)).await {
        Ok(result) => result.map_err(|error| error.context(format!("worker {} at {}", info.id, info.address))),
        Err(_) => Err(Error::retry(format!("worker {} at {} does not answer", info.id, info.address))),
    }
}
