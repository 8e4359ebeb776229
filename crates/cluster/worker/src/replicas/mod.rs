//! What the coordinator orders this worker to hold.
//!
//! Owns: the replicas that are held by order, bringing them here (from a worker that has them, else from shared storage), copies
//! for other workers, and dropping what reads are not routed to any more.
//!
//! Never does: decide what is popular or who holds it, which the coordinator does by `core/placement`.
//!
//! Start with [`Replicas::obey`].

mod copy;
mod garbage;
mod orders;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_protocol::OrderEnd;
use forebay_types::SegmentId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::forms::Forms;
use crate::origin::Origin;
use crate::segment::SegmentName;
use crate::signals::Signals;

/// Segments that are brought here at a time.
const AT_ONCE: usize = 4;
/// How long a replica may be held before clients are sent to it.
const SETTLING: Duration = Duration::from_secs(300);

/// What the coordinator has ordered: the replicas to hold, and how orders ended.
pub(crate) struct Replicas {
    state: Mutex<State>,
    room: Semaphore,
    tasks: Mutex<JoinSet<()>>,
    /// Share of the storage from which garbage is collected.
    storage_share: f64,
    /// When garbage was looked for in vain.
    searched: Mutex<Option<Instant>>,
    origin: Arc<Origin>,
    cluster: Arc<Cluster>,
    forms: Arc<Forms>,
    signals: Arc<Signals>,
}

#[derive(Default)]
struct State {
    assigned: HashMap<SegmentId, Assigned>,
    running: HashSet<SegmentId>,
    /// Since the last heartbeat that was answered.
    ended: Vec<OrderEnd>,
}

struct Assigned {
    name: SegmentName,
    since: Instant,
}

impl Replicas {
    /// Garbage is collected from `storage_share` of the storage on.
    pub(crate) fn new(
        storage_share: f64,
        origin: Arc<Origin>,
        cluster: Arc<Cluster>,
        forms: Arc<Forms>,
        signals: Arc<Signals>,
    ) -> Self {
        let (state, tasks, searched) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { state, room: Semaphore::new(AT_ONCE), tasks, storage_share, searched, origin, cluster, forms, signals }
    }

    /// The replicas that this worker is to hold. Those that nobody is sent to any more are forgotten: they are as all else
    /// that is cached.
    pub(crate) fn assigned(&self) -> Vec<(SegmentId, SegmentName)> {
        let is_routed_here = self.cluster.routed_here();
        let mut state = self.state.lock();
        state.assigned.retain(|_, it| it.since.elapsed() < SETTLING || is_routed_here(it.name.route()));
        state.assigned.iter().map(|(segment, it)| (*segment, it.name.clone())).collect()
    }

    /// Whether a segment was ordered so lately that clients may not know of it.
    fn is_settling(&self, segment: SegmentId) -> bool {
        self.state.lock().assigned.get(&segment).is_some_and(|it| it.since.elapsed() < SETTLING)
    }

    /// How orders ended that the coordinator has not heard of.
    pub(crate) fn ended(&self) -> Vec<OrderEnd> {
        self.state.lock().ended.clone()
    }

    /// The coordinator has heard of the first `count` of these.
    pub(crate) fn heard(&self, count: usize) {
        let mut state = self.state.lock();
        assert!(count <= state.ended.len(), "only what was told is heard of");
        state.ended.drain(..count);
    }

    /// Gives up what is being brought here.
    pub(crate) fn stop(&self) {
        self.tasks.lock().abort_all();
    }

    fn begin(&self, segment: SegmentId) -> bool {
        let mut state = self.state.lock();
        // One that has ended is answered with the next heartbeat.
        state.ended.iter().all(|end| end.segment != segment) && state.running.insert(segment)
    }
}
