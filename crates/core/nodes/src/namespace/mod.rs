//! One worker's part of the namespace: its state, and how nodes are found, placed and taken out; on that `operations`, what is asked of
//! a node by its name, and `moves`, what goes from one worker to another. What it is made of, nothing outside sees.

mod check;
mod find;
mod labels;
mod moves;
mod operations;
mod place;
mod quota;
mod step;
mod table;
mod ties;
mod underway;
mod undo;
mod way_up;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::node::Node;
use crate::terms::{BlockRef, ByDir, DirId};
use labels::Labels;
use undo::Undo;

pub use moves::{Carton, Packed};
pub use operations::{At, Condition, CreateOptions, Entry, Removed, Target, Usage};
pub(crate) use table::{Table, TableState};
pub(crate) use underway::{Arriving, Coming};
pub use way_up::WayUp;

/// One worker's part of the temporary namespace: some containers with their nodes. A container is whole in one place; its own
/// name may be with another worker.
///
/// Every operation is atomic. Those that fail change nothing, and those that panic are taken back.
#[derive(Debug)]
pub struct Namespace {
    numbers: Numbers,
    /// The containers whose nodes are here.
    tables: ByDir<Table>,
    /// Nodes that have a lease, and when it is over.
    leases: BTreeMap<(DirId, Box<str>), Duration>,
    /// Nodes that come from other workers, until it is certain that these have given them up.
    arriving: HashMap<(DirId, Box<str>), Arriving>,
    /// Containers that come from other workers, until these have given them up.
    coming: HashMap<DirId, Coming>,
    /// Where containers are that were here.
    moved: HashMap<DirId, DirId>,
    /// The names of containers, wherever their nodes are.
    links: HashMap<DirId, (DirId, Box<str>)>,
    /// Containers here that have a quota.
    bounded: usize,
    /// The locations that nodes ask for.
    labels: Labels,
    counts: Counts,
    /// Blocks that no node has any more.
    freed: Vec<BlockRef>,
    undo: Undo,
}

/// The numbers that a worker gives to containers, files and blocks, each once.
#[derive(Debug)]
struct Numbers {
    worker: u64,
    /// One is given also to who only looks at the names.
    last: AtomicU64,
}

impl Numbers {
    /// They go on behind `last`.
    fn behind(worker: u64, last: u64) -> Self {
        Self { worker, last: AtomicU64::new(last) }
    }

    fn give(&self) -> u64 {
        self.last.fetch_add(1, Relaxed) + 1
    }

    /// The one that was given last.
    fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }
}

/// How much is here.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// Memory of nodes, names and values, about.
    bytes: u64,
    bytes_max: u64,
    nodes: u64,
}

impl Namespace {
    /// An empty part, of a worker that keeps at most so many bytes of names and small values.
    pub fn new(worker: u64, bytes_max: u64) -> Self {
        Self::with_numbers(worker, bytes_max, 1)
    }

    /// The same; numbers are given from `first` on, which must be far from those that an earlier process of this worker gave.
    pub fn with_numbers(worker: u64, bytes_max: u64, first: u64) -> Self {
        Self {
            numbers: Numbers::behind(worker, first.max(1)),
            tables: ByDir::default(),
            leases: BTreeMap::new(),
            arriving: HashMap::new(),
            coming: HashMap::new(),
            moved: HashMap::new(),
            links: HashMap::new(),
            bounded: 0,
            labels: Labels::default(),
            counts: Counts { bytes: 0, bytes_max, nodes: 0 },
            freed: Vec::new(),
            undo: Undo::default(),
        }
    }

    /// Whether a container's nodes are here.
    pub fn has(&self, dir: DirId) -> bool {
        self.tables.contains_key(&dir)
    }

    /// Nodes that are here.
    pub fn nodes(&self) -> u64 {
        self.counts.nodes
    }

    /// Room for more of them, in bytes.
    pub fn room(&self) -> u64 {
        self.counts.bytes_max.saturating_sub(self.counts.bytes)
    }

    /// Memory that nodes, names and small values take, about.
    pub fn bytes(&self) -> u64 {
        self.counts.bytes
    }

    /// A number for a container, file or block, never given before.
    pub fn number(&self) -> u64 {
        self.numbers.give()
    }

    /// An identity for a container that will be here.
    pub fn allocate(&self) -> DirId {
        DirId { worker: self.numbers.worker, number: self.number() }
    }

    /// The blocks that nodes have given up since the last call. Nobody finds them by a name any more.
    pub fn take_freed(&mut self) -> Vec<BlockRef> {
        std::mem::take(&mut self.freed)
    }

    /// The blocks, of workers that meet a condition, that nodes here have. O(nodes).
    pub fn blocks_of(&self, worker: impl Fn(u64) -> bool) -> HashSet<BlockRef> {
        self.every_node().flat_map(Node::blocks).filter(|block| worker(block.worker)).collect()
    }

    /// The nodes here, and those on their way here.
    pub(crate) fn every_node(&self) -> impl Iterator<Item = &Node> {
        self.tables.values().flat_map(|table| table.nodes.values()).chain(self.arriving.values().map(|it| &it.node))
    }
}
