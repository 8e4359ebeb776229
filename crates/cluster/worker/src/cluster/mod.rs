//! The cluster as this worker sees it.
//!
//! Owns: the view and the routing table that are in force, lines to the other workers and to the coordinator, the lease under which
//! it hears of what others write, and telling others of its own writes.
//!
//! Never does: decide who is in the cluster, which the coordinator does, or act on a view: `process` hands it to every room.
//!
//! Start with [`Cluster`].

mod coordinator;
mod hearing;
mod lease;
mod peers;
mod told;
mod whereabouts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use forebay_placement::{holder, rank};
use forebay_protocol::{ClusterView, RouteTable, WorkerInfo};
use forebay_transport::{Address, Security};
use forebay_types::{PageRun, RouteKey, SegmentId, WorkerId};
use tokio::sync::{Notify, watch};

pub(crate) use coordinator::ask;
use hearing::Hearing;
use lease::Lease;
use peers::Peers;
pub(crate) use peers::{ClaimName, Shared};
use told::Forgetting;
pub(crate) use told::Fuller;
use whereabouts::Whereabouts;

/// How long a request that names what is not known waits for a newer view before it is refused.
const NEWS_WITHIN: Duration = Duration::from_millis(1500);
/// Workers that clients ask for a key's version, as a rule: its home, and another one where that says nothing for a while.
const HOMES: usize = 2;

/// Who else is there, what reads are routed where, and whether this worker is told of everything.
pub(crate) struct Cluster {
    pub(crate) id: WorkerId,
    pub(crate) hearing: Hearing,
    pub(crate) lease: Lease,
    pub(crate) peers: Peers,
    pub(crate) whereabouts: Whereabouts,
    forgetting: Forgetting,
    view: ArcSwap<ClusterView>,
    routes: ArcSwap<RouteTable>,
    /// The oldest view that a live worker has, as far as is known here.
    settled: AtomicU64,
    /// Grows with each answer of the coordinator.
    news: watch::Sender<u64>,
    /// Asks for a heartbeat before its time.
    wanted: Notify,
    /// The coordinator has taken it in, as far as is known here.
    joined: AtomicBool,
}

impl Cluster {
    pub(crate) fn new(id: WorkerId, coordinator: Address, security: &Security) -> Self {
        Self {
            id,
            hearing: Hearing::default(),
            lease: Lease::default(),
            peers: Peers::new(security.clone()),
            whereabouts: Whereabouts::default(),
            forgetting: Forgetting::new(coordinator, security.clone()),
            view: ArcSwap::default(),
            routes: ArcSwap::default(),
            settled: AtomicU64::new(0),
            news: watch::Sender::new(0),
            wanted: Notify::new(),
            joined: AtomicBool::new(false),
        }
    }

    /// The view that is in force.
    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.view.load_full()
    }

    /// Takes over a view.
    pub(crate) fn set_view(&self, view: ClusterView) {
        self.peers.retain(&view.workers);
        self.view.store(Arc::new(view));
    }

    /// The routing table that is in force.
    pub(crate) fn routes(&self) -> Arc<RouteTable> {
        self.routes.load_full()
    }

    /// Takes over a routing table.
    pub(crate) fn set_routes(&self, routes: RouteTable) {
        self.routes.store(Arc::new(routes));
    }

    /// Whether all live workers have this view, or a later one.
    pub(crate) fn is_known_to_all(&self, view: u64) -> bool {
        self.settled.load(Relaxed) >= view
    }

    /// All live workers have this view.
    pub(crate) fn set_settled(&self, view: u64) {
        self.settled.fetch_max(view, Relaxed);
    }

    /// Which view all live workers have is not known any more: numbers of views begin anew.
    pub(crate) fn forget_settled(&self) {
        self.settled.store(0, Relaxed);
    }

    /// All workers of the view but this one.
    pub(crate) fn others(&self) -> Vec<WorkerInfo> {
        self.view.load().workers.iter().filter(|worker| worker.id != self.id).cloned().collect()
    }

    /// A worker of the view.
    pub(crate) fn worker(&self, id: WorkerId) -> Option<WorkerInfo> {
        self.view.load().workers.iter().find(|worker| worker.id == id).cloned()
    }

    /// Tells whether reads of a route come here, by the view and the routing table of now.
    pub(crate) fn routed_here(&self) -> impl Fn(RouteKey) -> bool + use<> {
        let (id, routes) = (self.id, self.routes());
        let workers: Vec<_> = self.view.load().placeable().map(|worker| worker.id).collect();
        move |route| match routes.holders(route) {
            Some(holders) => holders.iter().any(|(worker, _)| *worker == id),
            None => holder(route, &workers).is_none_or(|holder| holder == id),
        }
    }

    /// The other worker that a key's home is. Where it is this one, which `is_new`: the one that it was before.
    pub(crate) fn other_home(&self, route: RouteKey, is_new: bool) -> Option<WorkerId> {
        let view = self.view.load();
        let workers: Vec<_> = view.placeable().map(|worker| worker.id).collect();
        match holder(route, &workers)? {
            home if home != self.id => Some(home),
            _ if is_new => {
                let turn = view.workers.iter().find(|worker| worker.id == self.id)?.turn;
                let before: Vec<_> = view.placeable().filter(|worker| worker.turn < turn).map(|worker| worker.id).collect();
                holder(route, &before)
            }
            _ => None,
        }
    }

    /// The other workers that are asked for the version of a key.
    pub(crate) fn other_homes(&self, route: RouteKey) -> Vec<WorkerInfo> {
        let view = self.view.load();
        let workers: Vec<_> = view.placeable().map(|worker| worker.id).collect();
        let asked: Vec<_> = rank(route, &workers).into_iter().take(HOMES).filter(|worker| *worker != self.id).collect();
        view.workers.iter().filter(|worker| asked.contains(&worker.id)).cloned().collect()
    }

    /// Another worker misses pages of a segment and will have them: who has missed some about there before, the last one first, and where there
    /// is none the last one that has missed any.
    pub(crate) fn missed_by(&self, asker: WorkerId, segment: SegmentId, pages: PageRun) -> Vec<WorkerId> {
        let others = |mut workers: Vec<WorkerId>| {
            workers.retain(|worker| *worker != asker);
            workers
        };
        let mut before = others(self.whereabouts.near(segment, pages));
        if before.is_empty() {
            before = others(self.whereabouts.of(segment));
            before.truncate(1);
        }
        if asker != self.id && self.worker(asker).is_some() {
            self.whereabouts.note(segment, pages, asker);
        }
        before
    }

    /// The coordinator has taken this worker in, or knows it no more.
    pub(crate) fn set_joined(&self, joined: bool) {
        self.joined.store(joined, Relaxed);
    }

    /// Whether the coordinator's last word was that this worker is one of the cluster's.
    pub(crate) fn has_joined(&self) -> bool {
        self.joined.load(Relaxed)
    }

    /// Wants a heartbeat now: there is something to tell, or to hear.
    pub(crate) fn want_news(&self) {
        self.wanted.notify_one();
    }

    /// Waits until a heartbeat is wanted.
    pub(crate) async fn news_wanted(&self) {
        self.wanted.notified().await;
    }

    /// The coordinator has answered: whoever waits for a newer view looks again.
    pub(crate) fn tell_news(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Looks for something that may be newer than the view: the coordinator is asked before it is not there.
    pub(crate) async fn newest<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        if let Some(there) = look() {
            return Some(there);
        }
        let mut news = self.news.subscribe();
        self.want_news();
        let deadline = forebay_runtime::time::instant() + NEWS_WITHIN;
        // A heartbeat that was under way may carry the view of before; the second answer was asked for after this call.
        for _ in 0..2 {
            if !matches!(forebay_runtime::time::timeout_at(deadline, news.changed()).await, Ok(Ok(()))) {
                break;
            }
            if let Some(there) = look() {
                return Some(there);
            }
            self.want_news();
        }
        None
    }
}
