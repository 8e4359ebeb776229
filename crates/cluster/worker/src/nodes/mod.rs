//! The worker's part of the temporary namespace: names in memory, blocks in the tiers, and what workers say to each other
//! about both.
//!
//! Owns: the names and nodes of the containers that are here, what is known of blocks beside their bytes, what is with two workers while it
//! is renamed or handed over, and how far a drain is.
//!
//! Never does: keep bytes of blocks outside of the tiers, or touch what is below a mount.
//!
//! Start with `answer` (what clients ask; `peer` for workers). The way of a call from there: `values`, `files` or `tree` (names, and blocks
//! where they are needed) -> `blocks` (the tiers), `claims` (whose blocks may be a node's). `sweep` does what nobody asks for: leases that
//! are over, blocks and renames left behind. Who only looks at the names does so beside others ([`Nodes::reached`]); who changes them has
//! them alone ([`Nodes::changing`]).

mod answer;
mod ask;
mod blocks;
mod claims;
mod fence;
mod files;
mod handover;
mod many;
mod named;
mod offer;
mod peer;
mod place;
mod rename;
#[cfg(test)]
mod steps;
mod sweep;
mod tree;
mod values;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::BlockStore;
use forebay_metrics::{Histogram, Kinds, table};
use forebay_nodes::{BlockRef, DirId, Full, Namespace, NodeError, NodeErrorKind, NodeResult, Once};
use forebay_protocol::{ClusterView, DrainReport, NodeOp};
use forebay_types::WorkerId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::background::Background;
use crate::cluster::Cluster;

use claims::Claims;
use fence::{Answer, Heeded};
use named::Named;
use rename::Renames;

pub(crate) use answer::{failed, given_up};
pub(crate) use handover::drain;
pub(crate) use sweep::sweep;

/// How long a writer that says nothing keeps a file to itself.
const WRITER_LEASE: Duration = Duration::from_secs(10);

/// Everything of a worker that has to do with temporary nodes.
pub(crate) struct Nodes {
    worker: u64,
    /// Looked at by any number of calls at a time, changed by one alone.
    names: RwLock<Namespace>,
    store: BlockStore,
    blocks: Blocks,
    drain: Drain,
    started: Instant,
    /// Renames of containers and losses of workers that this worker has heard of, from a random number on: a client that knew an earlier
    /// process of this worker must not take its number for this one's.
    moves: AtomicU64,
    fence: Fence,
    apart: Apart,
    cluster: Arc<Cluster>,
    background: Arc<Background>,
    /// How long operations took.
    seconds: Kinds<Histogram>,
}

/// What is known of workers that were lost, and of calls that may be done.
#[derive(Default)]
struct Fence {
    /// Losses of workers; changed while nobody else has `names`.
    losses: AtomicU64,
    /// Grows when this worker was lost itself.
    lives: AtomicU64,
    heeded: Mutex<Heeded>,
    /// Which numbered calls were done. Locked after `names`; only to forget what is old without them.
    once: Mutex<Once<Answer>>,
}

/// Containers whose names and nodes are with two workers.
struct Apart {
    /// Renames from here to other workers.
    renames: Mutex<Renames>,
    /// Those that came from a worker that is gone and whose names have not been found yet: what they were, since when.
    unlinked: Mutex<HashMap<DirId, (DirId, Instant)>>,
    /// Which of those whose names are with other workers have one.
    named: Mutex<Named>,
}

/// What is known of blocks beside their bytes, which are in the tiers.
struct Blocks {
    bytes: AtomicU64,
    bytes_max: u64,
    /// Workers that had no room a moment ago.
    full: Mutex<Full>,
    /// Blocks that are kept for nodes of other workers, and since when.
    kept: Mutex<HashMap<u64, Kept>>,
    /// Blocks of other workers that nodes here are to have.
    claims: Claims,
    /// Blocks that have copies elsewhere, and since when; readers that are under way still find them.
    retired: Mutex<VecDeque<(Instant, BlockRef)>>,
    reclaim_after: Duration,
}

/// How far this worker is with giving up what it has.
#[derive(Default)]
struct Drain {
    /// Nothing new comes here: others are there for it.
    refuses_new: AtomicBool,
    /// It is to give up what is here.
    gives_up: AtomicBool,
    /// Told when it is.
    begins: Notify,
    /// How far it was at the last look.
    report: Mutex<Option<DrainReport>>,
    /// Epoch and version of the view by which the root was passed on; older ones say that it is here.
    passed: Mutex<Option<(u64, u64)>>,
}

struct Kept {
    len: u32,
    /// When it came, or was last looked for.
    since: Instant,
    /// No node had it then.
    is_missed: bool,
    /// The claim of the worker whose node is to have it, or has it; none as long as nobody has claimed it.
    claim: Option<u128>,
}

/// Who has brought a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brought {
    /// A client, which will name it for a node.
    ByClient,
    /// A worker, for a node of its own.
    ByWorker,
}

impl Kept {
    fn new(len: u32, who: Brought) -> Self {
        // A number that nobody is told can't be claimed by.
        let claim = (who == Brought::ByWorker).then(forebay_runtime::random);
        Self { len, since: forebay_runtime::now(), is_missed: false, claim }
    }
}

/// Panics that tests had happen.
#[cfg(test)]
pub(crate) static PLANTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// A call for the node of this name panics while it has the names.
#[cfg(test)]
fn planted(name: &str) {
    if name == "planted" {
        PLANTED.fetch_add(1, Relaxed);
        panic!("planted");
    }
}

impl Nodes {
    /// Takes up to `share` of the tiers' bytes, names and small values counted in.
    pub(crate) fn new(
        store: BlockStore,
        (dram_bytes, disk_bytes): (u64, u64),
        share: f64,
        reclaim_after: Duration,
        cluster: Arc<Cluster>,
        background: Arc<Background>,
    ) -> Self {
        let (part, worker) = (|bytes: u64| (bytes as f64 * share) as u64, cluster.id.0);
        // Numbers go on from a random one, so that none is given by two processes of one worker.
        let first = forebay_runtime::random::<u64>() >> 2;
        let blocks = Blocks {
            bytes: AtomicU64::new(0),
            bytes_max: part(dram_bytes + disk_bytes),
            full: Mutex::default(),
            kept: Mutex::default(),
            claims: Claims::default(),
            retired: Mutex::default(),
            reclaim_after,
        };
        Self {
            worker,
            names: RwLock::new(Namespace::with_numbers(worker, part(dram_bytes), first)),
            store,
            blocks,
            drain: Drain::default(),
            started: forebay_runtime::now(),
            moves: AtomicU64::new(forebay_runtime::random::<u32>().into()),
            fence: Fence::default(),
            apart: Apart {
                renames: Mutex::new(Renames::new(forebay_runtime::random())),
                unlinked: Mutex::default(),
                named: Mutex::default(),
            },
            cluster,
            background,
            seconds: Kinds::new(&table::WORKER_NODE_SECONDS, NodeOp::names()),
        }
    }

    /// Takes over a view: the first of the live workers has the root, once all know that the one before is lost. While this worker does
    /// not hear of everything, one that was live under the coordinator before may come back with it.
    pub(crate) fn follow(&self, view: &ClusterView) {
        self.heed(view);
        let me = WorkerId(self.worker);
        let is_placeable = view.placeable().any(|worker| worker.id == me);
        let drains = view.workers.iter().any(|worker| worker.id == me && worker.draining);
        // As the only one it goes on with everything, and only says that it can't give anything up.
        self.drain.refuses_new.store(drains && !is_placeable, Relaxed);
        self.drain.gives_up.store(drains, Relaxed);
        if drains {
            self.drain.begins.notify_one();
        }
        let is_old = self.drain.passed.lock().is_some_and(|(epoch, version)| view.epoch == epoch && view.version < version);
        let is_here = view.root().is_some_and(|root| root.id == me) && !is_old;
        // Views come all the time, and calls go on while there is nothing to make.
        if self.may_replace_lost() && is_here && !self.names.read().has_root() {
            self.names.write().make_root();
        }
    }

    /// `Moving` while other workers are to be given what is new.
    fn check_takes_new(&self) -> NodeResult<()> {
        match self.drain.refuses_new.load(Relaxed) {
            false => Ok(()),
            true => Err(NodeError::new(NodeErrorKind::Moving, "the worker is being drained: another one takes it")),
        }
    }

    /// Nodes that are here, and bytes of names, values and blocks.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let names = self.names.read();
        (names.nodes(), names.bytes() + self.blocks.bytes.load(Relaxed))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
