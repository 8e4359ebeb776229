//! Placing nodes and taking them out, with the room that they take, their leases and the names of containers.

use super::Namespace;
use crate::node::Node;
use crate::terms::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, NodeType};

/// Memory of a node beside its name and value: its slots in the tree (half of which may be empty) and what the allocator rounds up.
const NODE_BYTES: u64 = 96;

impl Namespace {
    /// `Retry` while a node is on its way to this place.
    pub(crate) fn check_free(&self, dir: DirId, name: &str) -> NodeResult<()> {
        if !self.arriving.is_empty() && self.arriving.contains_key(&(dir, name.into())) {
            return Err(NodeError::new(NodeErrorKind::Retry, format!("{name:?} is being renamed to: try again")));
        }
        Ok(())
    }

    /// `NoSpace` when so many more bytes are too many.
    pub(crate) fn check_room(&self, more: u64) -> NodeResult<()> {
        if self.counts.bytes + more <= self.counts.bytes_max {
            return Ok(());
        }
        Err(NodeError::new(
            NodeErrorKind::NoSpace,
            format!(
                "names and small values take {} bytes of at most {}: delete some, or give the worker more memory",
                self.counts.bytes, self.counts.bytes_max
            ),
        ))
    }

    /// What a node takes of the room.
    pub(crate) fn size(name: &str, node: &Node) -> u64 {
        NODE_BYTES + name.len() as u64 + node.heap_bytes()
    }

    /// Puts a node in its place, where that can be changed now; frees what was there.
    pub(crate) fn insert(&mut self, dir: DirId, name: &str, node: Node) -> NodeResult<()> {
        self.open_table(dir)?;
        self.place(dir, name, node);
        Ok(())
    }

    /// The same, whatever state the container is in, as long as it is there.
    pub(crate) fn place(&mut self, dir: DirId, name: &str, node: Node) {
        if !self.has(dir) {
            return;
        }
        let (size, link) = (Self::size(name, &node), node.container());
        let freed = self.vacate(dir, name);
        self.step_node(dir, name, Some(node));
        self.settled(dir, name, (size, link), freed);
    }

    /// Puts a node in a free place of a container that is here: what [`Self::place`] does, with one look for it.
    pub(crate) fn place_new(&mut self, dir: DirId, name: &str, node: Node) {
        let has = self.place_if_free(dir, name, node);
        assert!(has.is_none(), "{name:?} was free: its node would be lost");
    }

    /// The same where it is not known that the place is free; else the type of the node that has it.
    pub(crate) fn place_if_free(&mut self, dir: DirId, name: &str, node: Node) -> Option<NodeType> {
        debug_assert!(self.has(dir), "the container of {name:?} is here");
        let (size, link) = (Self::size(name, &node), node.container());
        let has = self.step_new(dir, name, node);
        if has.is_none() {
            self.settled(dir, name, (size, link), Vec::new());
        }
        has
    }

    /// Puts a node in the place of one of its type, whose lease it has; both sizes are beside slot and name.
    pub(crate) fn put_over(&mut self, dir: DirId, name: &str, node: Node, (before, after): (u64, u64)) {
        let freed = self.step_over(dir, name, node);
        self.resized(before, after);
        self.step_freed(freed);
    }

    /// Takes a node to another place of this part, which is open; frees what was there. It has no lease there.
    pub(crate) fn relocate(&mut self, from: (DirId, &str), to: (DirId, &str)) {
        assert!(from != to, "a node goes to another place");
        let Some(node) = self.tables.get(&from.0).and_then(|table| table.find(from.1)).filter(|_| self.has(to.0)) else { return };
        let (size, link) = (Self::size(to.1, node), node.container());
        self.vacate(from.0, from.1);
        let freed = self.vacate(to.0, to.1);
        self.step_move(from, to);
        self.settled(to.0, to.1, (size, link), freed);
        debug_assert_eq!(self.container_of(to.0, to.1), link, "the node is where it went");
    }

    /// A node that was on its way is in its place, whose container is here; frees what was there.
    pub(crate) fn let_in(&mut self, place: &(DirId, Box<str>)) {
        let Some(arriving) = self.arriving.get(place).filter(|_| self.has(place.0)) else { return };
        let (size, link) = (Self::size(&place.1, &arriving.node), arriving.node.container());
        let freed = self.vacate(place.0, &place.1);
        self.step_arrived(place);
        self.settled(place.0, &place.1, (size, link), freed);
    }

    /// Takes a node out. Gives its blocks, which are the caller's.
    pub(crate) fn take(&mut self, dir: DirId, name: &str) -> NodeResult<Vec<BlockRef>> {
        self.node(dir, name)?;
        let blocks = self.vacate(dir, name);
        self.step_node(dir, name, None);
        Ok(blocks)
    }

    /// Takes a container away with all nodes in it, whose blocks are the caller's.
    pub(crate) fn drop_table(&mut self, dir: DirId) {
        let Some(table) = self.tables.get(&dir) else { return };
        let (mut bytes, mut leased, mut linked) = (0, Vec::new(), Vec::new());
        for (name, node) in &table.nodes {
            bytes += Self::size(name, node);
            leased.extend(node.flags().is_leased().then(|| name.clone()));
            linked.extend(self.linked(dir, name, node));
        }
        let nodes = table.nodes.len() as u64;
        leased.iter().for_each(|name| self.step_lease(dir, name, None));
        linked.into_iter().for_each(|id| self.step_link(id, None));
        self.step_counts((bytes, nodes), (0, 0));
        self.step_table(dir, None);
    }

    /// A node's size has changed in its place.
    pub(crate) fn resized(&mut self, before: u64, after: u64) {
        self.step_counts((before, 0), (after, 0));
    }

    /// What goes with the node of a place that is about to be another one's: gives its blocks.
    fn vacate(&mut self, dir: DirId, name: &str) -> Vec<BlockRef> {
        let Some(node) = self.tables.get(&dir).and_then(|table| table.find(name)) else { return Vec::new() };
        let (size, is_leased, linked) = (Self::size(name, node), node.flags().is_leased(), self.linked(dir, name, node));
        let blocks = node.blocks();
        self.step_counts((size, 1), (0, 0));
        if is_leased {
            self.step_lease(dir, name, None);
        }
        if let Some(id) = linked {
            self.step_link(id, None);
        }
        blocks
    }

    /// What comes with a node that is in its place now.
    fn settled(&mut self, dir: DirId, name: &str, (size, link): (u64, Option<DirId>), freed: Vec<BlockRef>) {
        self.step_counts((0, 0), (size, 1));
        if let Some(id) = link {
            self.step_link(id, Some((dir, name.into())));
        }
        self.step_freed(freed);
    }

    /// The container that a node is the name of, where it is known to be the one.
    fn linked(&self, dir: DirId, name: &str, node: &Node) -> Option<DirId> {
        let id = node.container()?;
        self.links.get(&id).is_some_and(|(of, at)| *of == dir && **at == *name).then_some(id)
    }
}
