//! Finding containers and nodes, to be read or to be changed.

use super::Namespace;
use super::table::{Table, TableState};
use crate::node::{Node, Stat};
use crate::terms::{Affinity, DirId, Location, NodeError, NodeErrorKind, NodeResult, ROOT};

impl Namespace {
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

    /// Why a container is not here.
    fn gone(&self, dir: DirId) -> NodeError {
        if dir == ROOT || self.moved.contains_key(&dir) {
            return NodeError::moving();
        }
        NodeError::new(NodeErrorKind::NotFound, "the container was deleted")
    }

    /// A node that can be changed now, unless it is on its way to another place.
    pub(crate) fn node(&self, dir: DirId, name: &str) -> NodeResult<&Node> {
        self.open_table(dir)?.find(name).ok_or_else(|| NodeError::not_found(name))
    }

    /// A node that may be taken from its place now: `Retry` while it is on its way to another one.
    pub(crate) fn movable(&self, dir: DirId, name: &str) -> NodeResult<&Node> {
        let node = self.node(dir, name)?;
        node.check_still(name)?;
        Ok(node)
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
}
