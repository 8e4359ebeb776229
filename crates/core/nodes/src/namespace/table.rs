//! One container's nodes by name, and who may change them now.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::node::Node;
use crate::terms::{Affinity, DirId, NodeError, NodeErrorKind, NodeResult, NodeType};

/// Who may do what with a container's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableState {
    Open,
    /// Being copied to another worker: read only.
    Frozen,
    /// Between two workers: nobody does anything.
    Sealed,
}

/// The nodes of one container, by name, in byte order.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub kind: NodeType,
    pub affinity: Affinity,
    /// The container that it is in.
    pub parent: DirId,
    pub state: TableState,
    /// What its files and values, and those in containers in it, may have at most, in bytes.
    pub quota: Option<u64>,
    /// Bytes of its own files and values.
    pub used: u64,
    /// Containers that are directly in it.
    pub inside: BTreeSet<DirId>,
    pub nodes: BTreeMap<Box<str>, Node>,
}

impl Table {
    pub(crate) fn new(kind: NodeType, affinity: Affinity, parent: DirId) -> Self {
        Self {
            kind,
            affinity,
            parent,
            state: TableState::Open,
            quota: None,
            used: 0,
            inside: BTreeSet::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// `Moving` while its nodes can't be changed.
    pub(crate) fn check_open(&self) -> NodeResult<()> {
        if self.state == TableState::Open { Ok(()) } else { Err(NodeError::moving()) }
    }

    /// `WrongType` when this container doesn't hold nodes of that type.
    pub(crate) fn check_holds(&self, kind: NodeType) -> NodeResult<()> {
        if self.kind.holds(kind) {
            return Ok(());
        }
        Err(NodeError::new(NodeErrorKind::WrongType, format!("a {} doesn't hold nodes of type {kind}", self.kind)))
    }

    /// Puts a node under a name, or none; gives the one that had it.
    pub(crate) fn set(&mut self, name: &str, node: Option<Node>) -> Option<Node> {
        let (more, comes) = (node.as_ref().map_or(0, Node::len), node.as_ref().and_then(Node::container));
        let before = match (self.nodes.get_mut(name), node) {
            (Some(place), Some(node)) => Some(std::mem::replace(place, node)),
            (Some(_), None) => self.nodes.remove(name),
            (None, Some(node)) => self.nodes.insert(name.into(), node),
            (None, None) => None,
        };
        self.changed(before.as_ref(), more, comes);
        before
    }

    /// Puts a node under a name that is free, which is looked for once; the type of the node that has it, else.
    pub(crate) fn add(&mut self, name: &str, node: Node) -> Option<NodeType> {
        let (more, comes) = (node.len(), node.container());
        match self.nodes.entry(name.into()) {
            Entry::Occupied(place) => return Some(place.get().kind()),
            Entry::Vacant(place) => _ = place.insert(node),
        }
        self.changed(None, more, comes);
        None
    }

    /// A node has taken another one's place, or a free one; or none has.
    fn changed(&mut self, before: Option<&Node>, more: u64, comes: Option<DirId>) {
        self.used = (self.used + more).saturating_sub(before.map_or(0, Node::len));
        if let Some(goes) = before.and_then(Node::container) {
            self.inside.remove(&goes);
        }
        self.inside.extend(comes);
    }

    /// The name of a container leads to another one; gives the one before.
    pub(crate) fn lead(&mut self, name: &str, to: DirId) -> Option<DirId> {
        let node = self.nodes.get_mut(name)?;
        let before = node.container()?;
        node.lead_to(to);
        self.inside.remove(&before);
        self.inside.insert(to);
        Some(before)
    }

    /// What is counted are the bytes of its files and values. O(nodes).
    pub(crate) fn check(&self) {
        assert_eq!(self.used, self.nodes.values().map(Node::len).sum::<u64>(), "a container's bytes are those of its nodes");
        for node in self.nodes.values() {
            if let Node::File(_, file) = node {
                file.check();
            }
        }
    }

    /// The node of a name; not those that are on their way here.
    pub(crate) fn find(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }
}
