use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use arc_swap::ArcSwap;
use forebay_block_store::BlockStore;
use forebay_placement::holder;
use forebay_protocol::{ClusterView, RouteTable, WorkerInfo, WorkerReport};
use forebay_transport::Security;
use forebay_types::{Error, MountId, Owner, Result, RouteKey, WorkerId};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::busy::Busy;
use crate::changes::Writes;
use crate::count::Counts;
use crate::discover::Discoveries;
use crate::fill::{Fills, Wanted};
use crate::forms::Forms;
use crate::fresh::Fresh;
use crate::garbage::Garbage;
use crate::gate::Line;
use crate::hearing::Hearing;
use crate::in_place::InPlace;
use crate::listings::Listings;
use crate::metrics::Meters;
use crate::mounts::{MountDoor, Mounts};
use crate::nodes::Nodes;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::pins::Pins;
use crate::replicas::Replicas;
use crate::segment::Segment;
use crate::settings::{Tuning, WorkerSettings};
use crate::told::Forgetting;
use crate::versions::Versions;

/// How long a request for an unknown mount waits for a newer view before it is refused.
const NEWS_WITHIN: Duration = Duration::from_millis(1500);

/// Everything that answers requests; shared by all sessions and tasks of a worker.
pub(crate) struct Serving {
    pub(crate) id: WorkerId,
    pub(crate) store: BlockStore,
    pub(crate) nodes: Nodes,
    pub(crate) dram_bytes: u64,
    pub(crate) mounts: Mounts,
    pub(crate) pins: Pins,
    pub(crate) fills: Arc<Fills>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) listings: Listings,
    pub(crate) counts: Counts,
    pub(crate) meters: Arc<Meters>,
    pub(crate) in_place: InPlace,
    pub(crate) peers: Peers,
    pub(crate) hearing: Hearing,
    pub(crate) forgetting: Forgetting,
    pub(crate) discoveries: Discoveries,
    pub(crate) replicas: Replicas,
    pub(crate) routes: ArcSwap<RouteTable>,
    pub(crate) fresh: Fresh,
    pub(crate) garbage: Garbage,
    /// Share of the storage from which garbage is collected.
    pub(crate) storage_share: f64,
    pub(crate) forms: Forms,
    pub(crate) pace: Pace,
    pub(crate) busy: Busy,
    /// Reads under way.
    pub(crate) queue: AtomicU32,
    pub(crate) next_upload: AtomicU64,
    pub(crate) writes: Writes,
    /// What is tidied up after a session's or a request's end.
    leftovers: Mutex<JoinSet<()>>,
    view: ArcSwap<ClusterView>,
    /// Grows with each answer of the coordinator.
    news: watch::Sender<u64>,
    /// Asks for a heartbeat before its time.
    pub(crate) ask_news: Notify,
}

impl Serving {
    pub(crate) fn new(id: WorkerId, store: BlockStore, settings: &WorkerSettings, tuning: &Tuning) -> Self {
        let (versions, meters) = (Arc::new(Versions::default()), Arc::new(Meters::new()));
        let security: Security = settings.security.clone();
        let tiers = (settings.store.dram_bytes, settings.store.disk_bytes);
        Self {
            id,
            nodes: Nodes::new(id, store.clone(), tiers, settings.temporary_share, tuning.reclaim_after),
            fills: Arc::new(Fills::new(store.clone(), Arc::clone(&versions), Arc::clone(&meters))),
            dram_bytes: settings.store.dram_bytes,
            mounts: Mounts::new(tuning.storage.clone()),
            pins: Pins::default(),
            versions,
            listings: Listings::default(),
            counts: Counts::new(),
            meters,
            in_place: InPlace::new(store.clone(), settings.unix_socket.is_some()),
            store,
            peers: Peers::new(security.clone()),
            hearing: Hearing::default(),
            forgetting: Forgetting::new(settings.coordinator.clone(), security),
            discoveries: Discoveries::default(),
            replicas: Replicas::default(),
            routes: ArcSwap::default(),
            fresh: Fresh::default(),
            garbage: Garbage::default(),
            storage_share: settings.storage_share,
            forms: Forms::default(),
            pace: Pace::new(settings.serve_bytes_per_sec),
            busy: Busy::default(),
            queue: AtomicU32::new(0),
            next_upload: AtomicU64::new(rand::random::<u32>().into()),
            writes: Writes::default(),
            leftovers: Mutex::default(),
            view: ArcSwap::default(),
            news: watch::Sender::new(0),
            ask_news: Notify::new(),
        }
    }

    /// The view that is in force.
    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.view.load_full()
    }

    /// Takes over a view.
    pub(crate) fn set_view(self: &Arc<Self>, view: ClusterView) {
        for gone in self.mounts.set(&view) {
            tracing::info!(mount = gone.0, "mount removed");
            self.versions.forget_mount(gone);
            self.listings.forget_mount(gone);
        }
        self.pins.set(view.pins.clone());
        self.peers.retain(&view.workers);
        self.forgetting.retain(&view.workers);
        self.nodes.follow(&view, self.hearing.holds());
        self.view.store(Arc::new(view));
        self.discoveries.follow(self);
    }

    /// The coordinator has answered: whoever waits for a newer view looks again.
    pub(crate) fn tell_news(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// All workers of the view but this one.
    pub(crate) fn others(&self) -> Vec<WorkerInfo> {
        self.view.load().workers.iter().filter(|worker| worker.id != self.id).cloned().collect()
    }

    /// The mount's door. One that is not known may be newer than the view: the coordinator is asked before it is
    /// `NotFound`.
    pub(crate) async fn mount(&self, id: MountId) -> Result<Arc<MountDoor>> {
        if let Some(door) = self.mounts.find(id) {
            return Ok(door);
        }
        let mut news = self.news.subscribe();
        self.ask_news.notify_one();
        let deadline = tokio::time::Instant::now() + NEWS_WITHIN;
        // A heartbeat that was under way may carry the view of before; the second answer was asked for after this call.
        for _ in 0..2 {
            if !matches!(tokio::time::timeout_at(deadline, news.changed()).await, Ok(Ok(()))) {
                break;
            }
            if let Some(door) = self.mounts.find(id) {
                return Ok(door);
            }
            self.ask_news.notify_one();
        }
        Err(Error::not_found(format!("mount {} is not mounted any more: see `forebay mount ls`", id.0)))
    }

    /// What a fetch of `segment` has to know.
    pub(crate) fn wanted(&self, door: &Arc<MountDoor>, segment: Segment, line: Line, keep: bool) -> Wanted {
        let keep = keep || self.pins.keep(segment.version.mount, &segment.version.key);
        Wanted { door: Arc::clone(door), segment: Arc::new(segment), line, keep, cache: true }
    }

    /// Tells whether reads of a route come here, by the view and the routing table of now.
    pub(crate) fn routed_here(&self) -> impl Fn(RouteKey) -> bool + use<> {
        let (id, routes) = (self.id, self.routes.load_full());
        let workers: Vec<_> = self.view.load().placeable().map(|worker| worker.id).collect();
        move |route| match routes.holders(route) {
            Some(holders) => holders.iter().any(|(worker, _)| *worker == id),
            None => holder(route, &workers).is_none_or(|holder| holder == id),
        }
    }

    /// The worker's own numbers.
    pub(crate) fn report(&self) -> WorkerReport {
        let usage = self.store.usage();
        let (dram, disk) = (&usage.dram, &usage.disk);
        let (reads, bytes_served, bytes_hit) = self.meters.totals();
        WorkerReport {
            dram: (dram.capacity_bytes, dram.used_bytes, (dram.pinned_bytes + dram.kept_bytes).min(dram.used_bytes)),
            disk: (disk.capacity_bytes, disk.used_bytes, disk.kept_bytes),
            form_bytes: dram.by_owner.iter().find(|(owner, _)| *owner == Owner::Form).map_or(0, |(_, bytes)| *bytes),
            segments: usage.segments,
            reads,
            bytes_served,
            bytes_hit,
            storage: self.mounts.counters(),
            warnings: usage.warnings,
            drain: self.nodes.drain_report(),
        }
    }

    /// Does something after the request or session that it belongs to has ended.
    pub(crate) fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut leftovers = self.leftovers.lock();
        while leftovers.try_join_next().is_some() {}
        leftovers.spawn(work);
    }

    /// Ends all work that goes on without a request.
    pub(crate) fn stop(&self) {
        self.discoveries.stop();
        self.replicas.stop();
        self.forms.stop();
        self.fills.stop();
        self.leftovers.lock().abort_all();
    }

    /// The same, and waits until it has ended; what is being tidied up gets `patience`.
    pub(crate) async fn stopped(&self, patience: Duration) {
        self.discoveries.stop();
        self.replicas.stop();
        self.forms.stop();
        let mut leftovers = std::mem::take(&mut *self.leftovers.lock());
        let tidy = async { while leftovers.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, tidy).await.is_err() {
            leftovers.shutdown().await;
        }
        self.fills.stopped().await;
    }
}
