//! A program's way into a cluster.
//!
//! Owns: the rooms, made once, and the names under which programs find what they do.
//!
//! Never does: anything itself that a room could do.
//!
//! Start with [`Client::connect`].

mod cluster;
mod doors;
mod objects;
mod tiers;
mod written;

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{ClusterView, ControlCall, ControlReply};
use forebay_types::{Mount, MountName, OperationId, Result};

use crate::connect::Control;
use crate::counters::{ClientCounters, Counters};
use crate::nodes::Nodes;
use crate::prefetch::Prefetches;
use crate::read::Reads;
use crate::route::Routes;
use crate::settings::ClientSettings;
use crate::shards::ShardCalls;
use crate::write::Writes;

/// A program's way into a cluster. Cheap to clone; clones share connections, pins and the view. When the last one is
/// dropped its tasks end; bytes that were read stay readable.
///
/// ```
/// use forebay_client::{Client, ClientSettings, PutCondition};
/// use forebay_types::ForebayPath;
///
/// # #[tokio::main]
/// # async fn main() -> forebay_types::Result<()> {
/// # let cluster = forebay_testbed::TestCluster::start(1).await;
/// # let coordinator = cluster.node.coordinator_at().clone();
/// let client = Client::connect(ClientSettings::new(coordinator)).await?;
/// let path: ForebayPath = "/lake/notes/today.txt".parse()?;
/// client.put(&path, "a penstock".into(), PutCondition::Any).await?;
/// let object = client.open(&path).await?;
/// let bytes = client.read(client.operation(), &object.version, 2..10).await?;
/// assert_eq!(bytes, "penstock");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    rooms: Arc<Rooms>,
}

/// What all clones of a client share.
struct Rooms {
    control: Arc<Control>,
    control_deadline: Duration,
    routes: Arc<Routes>,
    reads: Arc<Reads>,
    writes: Arc<Writes>,
    prefetches: Prefetches,
    nodes: Nodes,
    shards: ShardCalls,
    counters: Arc<Counters>,
}

impl Rooms {
    async fn connect(settings: ClientSettings) -> Result<Self> {
        let (control, counters) = (Arc::new(Control::new(&settings)), Arc::new(Counters::default()));
        let routes = Arc::new(Routes::connect(&settings, Arc::clone(&control)).await?);
        let storage = settings.storage.clone();
        let reads = Arc::new(Reads::new(Arc::clone(&routes), Arc::clone(&control), storage, Arc::clone(&counters)));
        Ok(Self {
            writes: Arc::new(Writes::new(Arc::clone(&routes), Arc::clone(&control), &settings)),
            prefetches: Prefetches::new(Arc::clone(&routes), Arc::clone(&reads.courses), settings.prefetch_bytes),
            nodes: Nodes::new(Arc::clone(&routes), Arc::clone(&counters)),
            shards: ShardCalls::new(Arc::clone(&routes)),
            control_deadline: settings.control_deadline,
            control,
            routes,
            reads,
            counters,
        })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the coordinator. Workers are connected to at first use. `Retry` when the coordinator does not
    /// answer, `Denied` when it does not accept the token.
    pub async fn connect(settings: ClientSettings) -> Result<Self> {
        Ok(Self { rooms: Arc::new(Rooms::connect(settings).await?) })
    }

    /// The cluster as this client knows it, at most the poll's period old while the coordinator answers.
    pub fn view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.rooms.routes.view.known().view)
    }

    /// Asks the coordinator for its view now.
    pub async fn refresh_view(&self) -> Result<Arc<ClusterView>> {
        self.rooms.routes.view.poll().await?;
        Ok(self.view())
    }

    /// The mount of a name. `NotFound` only after asking the coordinator.
    pub async fn mount(&self, name: &MountName) -> Result<Arc<Mount>> {
        self.rooms.routes.view.mount(name).await
    }

    /// The mount of that name in the view as it is.
    pub fn known_mount(&self, name: &str) -> Option<Arc<Mount>> {
        self.rooms.routes.view.known().mount_named(name).cloned()
    }

    /// Asks the coordinator. A reply of [`ControlReply::Failed`] comes back as the error. What changes mounts or pins
    /// is in this client's view when this returns.
    pub async fn control(&self, request: impl Into<ControlCall>) -> Result<ControlReply> {
        let request = request.into();
        let reply = self.rooms.control.ask(&request, self.rooms.control_deadline).await?;
        if matches!(request, ControlCall::Administer(_)) {
            // It is done; a view that comes later is no failure of it.
            if let Err(error) = self.rooms.routes.view.poll().await {
                tracing::debug!(%error, "view not refreshed");
            }
        }
        Ok(reply)
    }

    /// A new operation, for one job, query or call: reads carry it, and popularity counts a segment once in it.
    pub fn operation(&self) -> OperationId {
        let operation = OperationId(forebay_runtime::random());
        forebay_trace::bind(operation);
        operation
    }

    /// What this client has read, by the way it came.
    pub fn counters(&self) -> ClientCounters {
        self.rooms.counters.snapshot()
    }
}
