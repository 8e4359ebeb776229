//! The worker's part of the temporary namespace: names in memory, blocks in the tiers, and what workers say to each other
//! about both.
//!
//! The way of a call: `answer` (what is asked) -> `values`, `files` or `tree` (names, and blocks where they are needed) ->
//! `blocks` (the tiers). `sweep` does what nobody asks for: leases that are over, blocks and renames left behind.

mod answer;
mod ask;
mod blocks;
mod files;
mod rename;
mod sweep;
mod tree;
mod values;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::BlockStore;
use forebay_nodes::Namespace;
use forebay_protocol::ClusterView;
use forebay_types::WorkerId;
use parking_lot::Mutex;

pub(crate) use answer::answer;
pub(crate) use sweep::sweep;

/// How long a writer that says nothing keeps a file to itself.
const WRITER_LEASE: Duration = Duration::from_secs(10);
/// Renames whose end is remembered for targets that did not hear of it.
const COMMITTED_MAX: usize = 10_000;

/// Everything of a worker that has to do with temporary nodes.
pub(crate) struct Nodes {
    worker: u64,
    names: Mutex<Namespace>,
    store: BlockStore,
    started: Instant,
    /// Bytes of blocks, and how many there may be.
    block_bytes: AtomicU64,
    block_bytes_max: u64,
    /// Renames of containers that this worker has heard of.
    moves: AtomicU64,
    /// Blocks that are kept for nodes of other workers, and since when.
    kept: Mutex<HashMap<u64, Kept>>,
    committed: Mutex<(HashSet<u128>, VecDeque<u128>)>,
}

struct Kept {
    len: u32,
    since: Instant,
}

impl Nodes {
    /// Takes up to `share` of the tiers' bytes, names and small values counted in.
    pub(crate) fn new(worker: WorkerId, store: BlockStore, (dram_bytes, disk_bytes): (u64, u64), share: f64) -> Self {
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
            moves: AtomicU64::new(0),
            kept: Mutex::default(),
            committed: Mutex::default(),
        }
    }

    /// Takes over a view: the first of the live workers has the root.
    pub(crate) fn follow(&self, view: &ClusterView) {
        if root_of(view) == Some(WorkerId(self.worker)) {
            self.names.lock().make_root();
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

/// The worker that has the root.
fn root_of(view: &ClusterView) -> Option<WorkerId> {
    view.workers.iter().min_by_key(|worker| (worker.turn, worker.id)).map(|worker| worker.id)
}
