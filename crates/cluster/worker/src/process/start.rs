//! A worker from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::BlockStore;
use forebay_metrics::table;
use forebay_protocol::{MemberRequest, StorageCounters, WorkerInfo, WorkerReport};
use forebay_transport::{Address, Listener, Security, Server};
use forebay_types::{Error, ForebayPath, MountName, Result, ResultExt, WorkerId};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::identity::{host_id, host_name, worker_id};
use super::membership::{Membership, follow_news};
use super::{kept, scrub};
use crate::background::aside;
use crate::cluster::ask;
use crate::nodes;
use crate::rooms::Rooms;
use crate::session::WorkerService;
use crate::settings::{Tuning, WorkerSettings};
use crate::shards;

/// How long a stopping worker writes to its disk tier.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);
/// How long it gives up what was left unfinished, as uploads.
const TIDY_WITHIN: Duration = Duration::from_secs(5);
/// How long it tries to tell the coordinator.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// A worker that runs. Stops at once when dropped, and in good order by [`Self::shutdown`].
pub struct Worker {
    pub(crate) rooms: Arc<Rooms>,
    address: Address,
    coordinator: Address,
    security: Security,
    running: Mutex<Option<Running>>,
}

struct Running {
    servers: Vec<Server>,
    beats: JoinHandle<()>,
    others: [JoinHandle<()>; 7],
}

impl Running {
    fn abort(&self) {
        self.beats.abort();
        self.others.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.abort();
    }
}

impl Worker {
    /// Opens the tiers, joins the cluster and serves.
    ///
    /// `Invalid` when the settings or the data folder are not usable, `Denied` when the coordinator knows another token,
    /// `Retry` when it can't be reached at all. Once it has joined, the worker goes on without the coordinator.
    pub async fn start(settings: WorkerSettings) -> Result<Self> {
        Self::start_with(settings, Tuning::default()).await
    }

    /// The same with other limits than the usual ones.
    pub async fn start_with(settings: WorkerSettings, tuning: Tuning) -> Result<Self> {
        let store_settings = settings.store.clone();
        // Recovery reads the index of the disk tier: that blocks.
        let store = aside("opening the tiers", move || BlockStore::open(store_settings)).await?;
        let id = worker_id(&settings.store.folder)?;
        let listener = Listener::bind(&settings.listen).await.context(|| format!("worker on {}", settings.listen))?;
        let address = listener.local_address();
        let mut listeners = vec![listener];
        if let Some(path) = &settings.unix_socket {
            let socket = Address::Unix(path.clone());
            listeners.push(Listener::bind(&socket).await.context(|| format!("worker on {socket}"))?);
        }
        let rooms = Arc::new(Rooms::new(id, store, &settings, &tuning)?);
        let info = WorkerInfo {
            id,
            host: host_id()?,
            address: settings.advertise.clone().unwrap_or_else(|| reachable(&address)),
            unix_socket: settings.unix_socket.as_ref().map(|path| path.display().to_string()),
            dram_bytes: settings.store.dram_bytes,
            disk_bytes: rooms.origin.store.disk_bytes(),
            turn: 0,
            location: settings.location.clone().unwrap_or_else(host_name),
            draining: false,
            protocol: settings.security.newest,
        };
        let (coordinator, security) = (settings.coordinator.clone(), settings.security.clone());
        let mut membership = Membership::new(Arc::clone(&rooms), info, coordinator.clone(), security.clone());
        membership.join(tuning.register_within).await?;
        // The first beat brings the shares of the bounds, before anybody is served.
        membership.beat().await;
        membership.settle().await;
        rooms.writes.give_up_left();
        let service = Arc::new(WorkerService::new(Arc::clone(&rooms)));
        let serve = |listener| Server::start(listener, security.clone(), Arc::clone(&service), tuning.limits);
        let servers = listeners.into_iter().map(serve).collect::<Result<_>>()?;
        let beats = forebay_runtime::spawn(membership.keep(tuning.clone()));
        let sweep = forebay_runtime::spawn(nodes::sweep(Arc::clone(&rooms.nodes)));
        let follow = {
            let rooms = Arc::downgrade(&rooms);
            move |view| {
                if let Some(rooms) = rooms.upgrade() {
                    rooms.follow(view);
                }
            }
        };
        let drain = forebay_runtime::spawn(nodes::drain(Arc::clone(&rooms.nodes), coordinator.clone(), security.clone(), follow));
        let news = forebay_runtime::spawn(follow_news(Arc::clone(&rooms.cluster), coordinator.clone(), security.clone()));
        let rate = tuning.scrub_bytes_per_sec;
        let scrubbed = rooms.origin.store.clone();
        let scrub = forebay_runtime::spawn(async move {
            if rate > 0 {
                scrub::scrub(scrubbed, rate).await;
            }
        });
        let navigate = forebay_runtime::spawn(shards::navigate(Arc::clone(&rooms.shards), tuning.navigate_every));
        let claims = forebay_runtime::spawn(shards::look_after(Arc::clone(&rooms.shards)));
        let kept = forebay_runtime::spawn(kept::look_over(Arc::clone(&rooms)));
        rooms.forms.start();
        tracing::info!(worker = %id, %address, "worker serves");
        let running = Mutex::new(Some(Running { servers, beats, others: [sweep, drain, news, scrub, navigate, claims, kept] }));
        Ok(Self { rooms, address, coordinator, security, running })
    }

    /// Where the data plane listens.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// The worker's id, kept over restarts.
    pub fn id(&self) -> WorkerId {
        self.rooms.cluster.id
    }

    /// Has it send so many bytes a second at most from now on, as [`WorkerSettings::serve_bytes_per_sec`].
    pub fn set_serve_bytes_per_sec(&self, most: Option<u64>) {
        self.rooms.signals.set_pace(most);
    }

    /// What the worker knows of itself.
    pub fn report(&self) -> WorkerReport {
        self.rooms.report()
    }

    /// What was asked of the shared storage behind each mount that is there: for metrics that end with their mounts.
    pub fn storage(&self) -> Vec<(MountName, StorageCounters)> {
        let name_of = |mount| self.rooms.origin.mounts.find(mount).map(|door| door.mount.name.clone());
        let storage = self.rooms.report().storage.into_iter();
        storage.filter_map(|(mount, counters)| Some((name_of(mount)?, counters))).collect()
    }

    /// The datasets of shards that this worker, of all, is to refresh from the objects that they follow, and how often.
    pub fn followed(&self) -> Vec<(ForebayPath, Duration)> {
        let followed = self.rooms.shards.followed().into_iter();
        let path = |(mount, folder, every)| {
            let door = self.rooms.origin.mounts.find(mount)?;
            Some((ForebayPath::new(door.mount.name.clone(), folder), every))
        };
        followed.filter_map(path).collect()
    }

    /// Forgets a dataset that is gone: it is none of these any more, until somebody asks for it anew.
    pub fn forget_dataset(&self, path: &ForebayPath) {
        let doors = self.rooms.origin.mounts.all();
        if let Some(door) = doors.iter().find(|door| door.mount.name == *path.mount()) {
            self.rooms.shards.forget_folder(door.mount.id, path.key());
        }
    }

    /// Counts a refresh of one of these, with how many objects it took over and how much it could not.
    pub fn count_refresh(objects: u64, errors: u64) {
        table::WORKER_SHARD_REFRESHES.only().add(1);
        table::WORKER_SHARD_REFRESHED.only().add(objects);
        table::WORKER_SHARD_REFRESH_ERRORS.only().add(errors);
    }

    /// Whether it serves: `Closed` once it stops, `Retry` while the coordinator knows it no more. A coordinator that is away changes
    /// nothing, as the worker goes on without. Waits for nothing.
    pub fn check_ready(&self) -> Result<()> {
        if self.running.lock().is_none() {
            return Err(Error::closed("it is stopping"));
        }
        if self.rooms.cluster.has_joined() { Ok(()) } else { Err(Error::retry("the coordinator has not taken it in yet")) }
    }

    /// Stops accepting, finishes the calls that run, writes what is in DRAM only to disk (10 s at most), and tells the
    /// coordinator. Nothing happens the second time.
    pub async fn shutdown(&self) {
        let Some(mut running) = self.running.lock().take() else { return };
        running.abort();
        // Ended by the line above, which is no error.
        let _ = (&mut running.beats).await;
        let servers = std::mem::take(&mut running.servers);
        futures::future::join_all(servers.into_iter().map(Server::shutdown)).await;
        self.rooms.stopped(TIDY_WITHIN).await;
        let leave = async {
            let mut line = None;
            let leave = ask(&self.coordinator, &self.security, &mut line, MemberRequest::Leave(self.rooms.cluster.id));
            match forebay_runtime::time::timeout(LEAVE_WITHIN, leave).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "coordinator did not hear that the worker leaves"),
                Err(_) => tracing::debug!("coordinator did not hear that the worker leaves"),
            }
        };
        let flush = async {
            let flush = async {
                self.rooms.origin.store.flush().await;
                self.rooms.origin.store.close().await;
            };
            if forebay_runtime::time::timeout(FLUSH_WITHIN, flush).await.is_err() {
                tracing::warn!("the disk tier was too slow to take everything: what it has not got is fetched again");
            }
        };
        futures::join!(leave, flush);
        tracing::info!(worker = %self.rooms.cluster.id, "worker stopped");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.rooms.stop();
    }
}

/// An address that others can use: one that means "all interfaces" is replaced by the host's name.
fn reachable(address: &Address) -> String {
    let text = match address {
        Address::Tcp(text) => text.clone(),
        Address::Unix(_) => return address.to_string(),
    };
    if let Some(("0.0.0.0" | "[::]", port)) = text.rsplit_once(':') { format!("{}:{port}", host_name()) } else { text }
}
