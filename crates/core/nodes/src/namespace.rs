use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::labels::Labels;
use crate::node::Node;
use crate::rename::Arriving;
use crate::table::{Table, TableState};
use crate::takeover::Coming;
use crate::{Affinity, BlockRef, DirId, Location, NodeError, NodeErrorKind, NodeResult, NodeType, ROOT, Removed, Stat};

/// Memory of a node beside its name and value: its slots in the tree (half of which may be empty) and what the allocator rounds up.
const NODE_BYTES: u64 = 96;

/// One worker's part of the temporary namespace: some containers with their nodes. A container is whole in one place; its own
/// name may be with another worker.
///
/// Every operation is atomic. Those that fail change nothing.
#[derive(Debug)]
pub struct Namespace {
    worker: u64,
    pub(crate) tables: HashMap<DirId, Table>,
    pub(crate) leases: BTreeMap<(DirId, Box<str>), Duration>,
    /// Nodes that come from other workers, until it is certain that these have given them up.
    pub(crate) arriving: HashMap<(DirId, Box<str>), Arriving>,
    /// Containers that come from other workers, until these have given them up.
    pub(crate) coming: HashMap<DirId, Coming>,
    /// Where containers are that were here.
    pub(crate) moved: HashMap<DirId, DirId>,
    /// The names of containers, wherever their nodes are.
    pub(crate) links: HashMap<DirId, (DirId, Box<str>)>,
    /// The locations that nodes ask for.
    pub(crate) labels: Labels,
    /// The next number of a container, file or block.
    next: u64,
    /// Memory of nodes, names and values, about.
    bytes: u64,
    bytes_max: u64,
    nodes: u64,
    /// Blocks that no node has any more.
    freed: Vec<BlockRef>,
}

impl Namespace {
    /// An empty part, of a worker that keeps at most so many bytes of names and small values.
    pub fn new(worker: u64, bytes_max: u64) -> Self {
        Self::with_numbers(worker, bytes_max, 1)
    }

    /// The same; numbers are given from `first` on, which must be far from those that an earlier process of this worker gave.
    pub fn with_numbers(worker: u64, bytes_max: u64, first: u64) -> Self {
        Self {
            worker,
            tables: HashMap::new(),
            leases: BTreeMap::new(),
            arriving: HashMap::new(),
            coming: HashMap::new(),
            moved: HashMap::new(),
            links: HashMap::new(),
            labels: Labels::default(),
            next: first.max(1),
            bytes: 0,
            bytes_max,
            nodes: 0,
            freed: Vec::new(),
        }
    }

    /// This worker has the root from now on; nothing happens when it has it already. One that has come from another worker as
    /// a whole is taken over.
    pub fn make_root(&mut self) {
        match self.coming.get(&ROOT).map(|coming| coming.is_whole) {
            Some(true) => {
                self.coming.remove(&ROOT);
                self.set_state(ROOT, TableState::Open);
            }
            Some(false) => self.drop_takeover(ROOT),
            None => {}
        }
        self.tables.entry(ROOT).or_insert_with(|| Table::new(NodeType::Directory, Affinity::default(), ROOT));
    }

    pub(crate) fn worker(&self) -> u64 {
        self.worker
    }

    /// Whether a container's nodes are here.
    pub fn has(&self, dir: DirId) -> bool {
        self.tables.contains_key(&dir)
    }

    /// Nodes that are here.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Room for more of them, in bytes.
    pub fn room(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes)
    }

    /// Memory that nodes, names and small values take, about.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A number for a container, file or block, never given before.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// An identity for a container that will be here.
    pub fn allocate(&mut self) -> DirId {
        DirId { worker: self.worker, number: self.number() }
    }

    /// What a node is; none when there is none.
    pub fn stat(&self, dir: DirId, name: &str) -> NodeResult<Option<Stat>> {
        Ok(self.table(dir)?.find(name).map(|node| node.stat(self.location(node))))
    }

    pub(crate) fn location(&self, node: &Node) -> Location {
        self.labels.location(node.flags().label())
    }

    /// Where a node's blocks are to lie.
    pub(crate) fn affinity(&self, node: &Node) -> Affinity {
        Affinity { class: node.flags().class(), location: self.location(node) }
    }

    /// The blocks that nodes have given up since the last call. Nobody finds them by a name any more.
    pub fn take_freed(&mut self) -> Vec<BlockRef> {
        std::mem::take(&mut self.freed)
    }

    /// The blocks, of workers that meet a condition, that nodes here have. O(nodes).
    pub fn blocks_of(&self, worker: impl Fn(u64) -> bool) -> HashSet<BlockRef> {
        let nodes = self.tables.values().flat_map(|table| table.nodes.values()).chain(self.arriving.values().map(|it| &it.node));
        nodes.flat_map(Node::blocks).filter(|block| worker(block.worker)).collect()
    }

    /// The containers here that no name here leads to: another worker's does, or none any more. O(containers).
    pub fn strangers(&self) -> Vec<DirId> {
        let strangers = self.tables.keys().filter(|id| **id != ROOT && !self.links.contains_key(*id));
        strangers.filter(|id| !self.coming.contains_key(*id)).copied().collect()
    }

    /// The containers that containers here are in.
    pub fn parents(&self, containers: &[DirId]) -> Vec<(DirId, DirId)> {
        containers.iter().filter_map(|id| Some((*id, self.tables.get(id)?.parent))).collect()
    }

    /// Of some containers those that no name here leads to, not one on its way here either.
    pub fn nameless(&self, mut containers: Vec<DirId>) -> Vec<DirId> {
        let arriving: HashSet<DirId> = self.arriving.values().filter_map(|arriving| arriving.node.container()).collect();
        containers.retain(|id| !self.links.contains_key(id) && !arriving.contains(id));
        containers
    }

    /// Of some containers those that are not here, and were not given to another worker.
    pub fn missing(&self, mut containers: Vec<DirId>) -> Vec<DirId> {
        containers.retain(|id| !self.has(*id) && !self.moved.contains_key(id));
        containers
    }

    /// The container that a name leads to when its nodes are with another worker.
    pub fn container_elsewhere(&self, dir: DirId, name: &str) -> Option<DirId> {
        self.tables.get(&dir)?.find(name)?.container().filter(|id| !self.has(*id))
    }

    /// Another worker has the root: what is left of it here means nothing any more. Not while it is handed over.
    pub fn drop_root(&mut self) -> Removed {
        let is_open = self.tables.get(&ROOT).is_some_and(|table| table.state == TableState::Open);
        if !is_open || self.coming.contains_key(&ROOT) {
            return Removed::default();
        }
        self.remove_tables(vec![ROOT])
    }

    /// A container, to be read.
    pub(crate) fn table(&self, dir: DirId) -> NodeResult<&Table> {
        let table = self.tables.get(&dir).ok_or_else(|| self.gone(dir))?;
        if table.state == TableState::Sealed { Err(NodeError::moving()) } else { Ok(table) }
    }

    /// A container whose nodes can be changed now, to be looked at.
    pub(crate) fn open_table(&self, dir: DirId) -> NodeResult<&Table> {
        let table = self.tables.get(&dir).ok_or_else(|| self.gone(dir))?;
        table.check_open()?;
        Ok(table)
    }

    /// A container, to be changed.
    pub(crate) fn table_mut(&mut self, dir: DirId) -> NodeResult<&mut Table> {
        self.open_table(dir)?;
        Ok(self.tables.get_mut(&dir).expect("it is there"))
    }

    /// Why a container is not here.
    fn gone(&self, dir: DirId) -> NodeError {
        if dir == ROOT || self.moved.contains_key(&dir) {
            return NodeError::moving();
        }
        NodeError::new(NodeErrorKind::NotFound, "the container was deleted")
    }

    pub(crate) fn set_state(&mut self, dir: DirId, state: TableState) {
        if let Some(table) = self.tables.get_mut(&dir) {
            table.state = state;
        }
    }

    pub(crate) fn node_mut(&mut self, dir: DirId, name: &str) -> NodeResult<&mut Node> {
        self.table_mut(dir)?.nodes.get_mut(name).ok_or_else(|| NodeError::not_found(name))
    }

    /// `NoSpace` when so many more bytes are too many.
    pub(crate) fn check_room(&self, more: u64) -> NodeResult<()> {
        if self.bytes + more <= self.bytes_max {
            return Ok(());
        }
        Err(NodeError::new(
            NodeErrorKind::NoSpace,
            format!(
                "names and small values take {} bytes of at most {}: delete some, or give the worker more memory",
                self.bytes, self.bytes_max
            ),
        ))
    }

    /// What a node takes of the room.
    pub(crate) fn size(name: &str, node: &Node) -> u64 {
        NODE_BYTES + name.len() as u64 + node.heap_bytes()
    }

    /// Puts a node in its place; frees what was there.
    pub(crate) fn insert(&mut self, dir: DirId, name: &str, node: Node) -> NodeResult<()> {
        self.table_mut(dir)?;
        self.place(dir, name, node);
        Ok(())
    }

    /// The same, whatever state the container is in, as long as it is there.
    pub(crate) fn place(&mut self, dir: DirId, name: &str, node: Node) {
        let size = Self::size(name, &node);
        let Some(table) = self.tables.get_mut(&dir) else { return };
        let link = if let Node::Container(_, link) = &node { Some(link.1) } else { None };
        let old = match table.nodes.get_mut(name) {
            Some(place) => Some(std::mem::replace(place, node)),
            None => {
                table.nodes.insert(name.into(), node);
                None
            }
        };
        self.bytes += size;
        self.nodes += 1;
        if let Some(old) = old {
            self.forget(dir, name, &old);
            self.freed.extend(old.into_blocks());
        }
        if let Some(id) = link {
            self.links.insert(id, (dir, name.into()));
        }
    }

    /// Takes a node out; its blocks stay its own.
    pub(crate) fn take(&mut self, dir: DirId, name: &str) -> NodeResult<Node> {
        let node = self.table_mut(dir)?.nodes.remove(name).ok_or_else(|| NodeError::not_found(name))?;
        self.forget(dir, name, &node);
        Ok(node)
    }

    pub(crate) fn free(&mut self, blocks: impl IntoIterator<Item = BlockRef>) {
        self.freed.extend(blocks);
    }

    /// A node's size has changed in its place.
    pub(crate) fn resized(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes + after - before;
    }

    pub(crate) fn forget(&mut self, dir: DirId, name: &str, node: &Node) {
        self.bytes -= Self::size(name, node);
        self.nodes -= 1;
        if node.flags().is_leased() {
            self.leases.remove(&(dir, name.into()));
        }
        if let Node::Container(_, link) = node
            && self.links.get(&link.1).is_some_and(|(of, at)| *of == dir && **at == *name)
        {
            self.links.remove(&link.1);
        }
    }
}
