//! Placing nodes and taking them out, with the room that they take, their leases and the names of containers.

use super::Namespace;
use crate::node::Node;
use crate::terms::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult};

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
