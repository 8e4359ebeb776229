//! The worker's part of the temporary namespace: names in memory, blocks in the tiers, and what workers say to each other
//! about both.
//!
//! The way of a call: `answer` (what clients ask; `peer` for workers) -> `values`, `files` or `tree` (names, and blocks where they are needed) ->
//! `blocks` (the tiers). `sweep` does what nobody asks for: leases that are over, blocks and renames left behind.

mod answer;
mod ask;
mod blocks;
mod drain;
#[cfg(test)]
mod drain_steps;
mod evacuate;
mod files;
mod handover;
mod many;
mod named;
mod offer;
mod peer;
mod place;
mod rename;
#[cfg(test)]
mod rename_steps;
mod sweep;
mod takeover;
mod tree;
mod values;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::BlockStore;
use forebay_nodes::{BlockRef, DirId, Full, Namespace, NodeError, NodeErrorKind, NodeResult};
use forebay_protocol::{ClusterView, DrainReport};
use forebay_types::WorkerId;
use parking_lot::Mutex;

use named::Named;
use rename::Renames;

pub(crate) use answer::{answer, failed};
pub(crate) use drain::drain;
pub(crate) use peer::answer_peer;
pub(crate) use place::{Placed, place};
pub(crate) use sweep::sweep;

/// How long a writer that says nothing keeps a file to itself.
const WRITER_LEASE: Duration = Duration::from_secs(10);

/// Everything of a worker that has to do with temporary nodes.
pub(crate) struct Nodes {
    worker: u64,
    names: Mutex<Namespace>,
    store: BlockStore,
    started: Instant,
    /// Bytes of blocks, and how many there may be.
    block_bytes: AtomicU64,
    block_bytes_max: u64,
    /// Workers that had no room a moment ago.
    full: Mutex<Full>,
    /// Renames of containers that this worker has heard of.
    moves: AtomicU64,
    /// Blocks that are kept for nodes of other workers, and since when.
    kept: Mutex<HashMap<u64, Kept>>,
    /// Renames from here to other workers.
    renames: Mutex<Renames>,
    /// Nothing new comes here: others are there for it.
    draining: AtomicBool,
    /// It is to give up what is here; and how far it was at the last look.
    drains: AtomicBool,
    drain: Mutex<Option<DrainReport>>,
    /// Epoch and version of the view by which the root was passed on; older ones say that it is here.
    passed: Mutex<Option<(u64, u64)>>,
    /// Blocks that have copies elsewhere, and since when; readers that are under way still find them.
    retired: Mutex<VecDeque<(Instant, BlockRef)>>,
    reclaim_after: Duration,
    /// Containers that came from a worker that is gone and whose names have not been found yet: what they were, since when.
    unlinked: Mutex<HashMap<DirId, (DirId, Instant)>>,
    /// Which containers whose names are with other workers have one.
    named: Mutex<Named>,
}

struct Kept {
    len: u32,
    /// When it came, or was last looked for.
    since: Instant,
    /// No node had it then.
    is_missed: bool,
}

impl Kept {
    fn new(len: u32) -> Self {
        Self { len, since: Instant::now(), is_missed: false }
    }
}

impl Nodes {
    /// Takes up to `share` of the tiers' bytes, names and small values counted in.
    pub(crate) fn new(
        worker: WorkerId,
        store: BlockStore,
        (dram_bytes, disk_bytes): (u64, u64),
        share: f64,
        reclaim_after: Duration,
    ) -> Self {
        let part = |bytes: u64| (bytes as f64 * share) as u64;
        // Numbers go on from a random one, so that none is given by two processes of one worker.
        let first = rand::random::<u64>() >> 2;
        Self {
            worker: worker.0,
            names: Mutex::new(Namespace::with_numbers(worker.0, part(dram_bytes), first)),
            store,
            started: Instant::now(),
            block_bytes: AtomicU64::new(0),
            block_bytes_max: part(dram_bytes + disk_bytes),
            full: Mutex::default(),
            moves: AtomicU64::new(0),
            kept: Mutex::default(),
            renames: Mutex::new(Renames::new(rand::random())),
            draining: AtomicBool::new(false),
            drains: AtomicBool::new(false),
            drain: Mutex::default(),
            passed: Mutex::default(),
            retired: Mutex::default(),
            reclaim_after,
            unlinked: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Takes over a view: the first of the live workers has the root. While this worker does not hear of everything, one that was
    /// live under the coordinator before may come back with it.
    pub(crate) fn follow(&self, view: &ClusterView, hears: bool) {
        let me = WorkerId(self.worker);
        let is_placeable = view.placeable().any(|worker| worker.id == me);
        let drains = view.workers.iter().any(|worker| worker.id == me && worker.draining);
        // As the only one it goes on with everything, and only says that it can't give anything up.
        self.draining.store(drains && !is_placeable, Relaxed);
        self.drains.store(drains, Relaxed);
        let is_old = self.passed.lock().is_some_and(|(epoch, version)| view.epoch == epoch && view.version < version);
        if hears && view.root().is_some_and(|root| root.id == me) && !is_old {
            self.names.lock().make_root();
        }
    }

    /// `Moving` while other workers are to be given what is new.
    fn check_takes_new(&self) -> NodeResult<()> {
        match self.draining.load(Relaxed) {
            false => Ok(()),
            true => Err(NodeError::new(NodeErrorKind::Moving, "the worker is being drained: another one takes it")),
        }
    }

    /// Nodes that are here, and bytes of names, values and blocks.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let names = self.names.lock();
        (names.nodes(), names.bytes() + self.block_bytes.load(Relaxed))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
