//! Another name for a node, within this part.

use crate::namespace::Namespace;
use crate::node::Node;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, NodeType, check_name};

/// Where a rename puts a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// In this container, under this name.
    Here(DirId, &'a str),
    /// In a container whose nodes are elsewhere, under the source's own name.
    Into(DirId),
}

impl Namespace {
    /// Renames a node within this part: in one step, or not at all. A key-value replaces a key-value; an existing container
    /// takes the node in under its own name; everything else that is there is `Exists`. That a container does not come into
    /// itself is for the caller to see, who knows the paths.
    pub fn rename(&mut self, from: (DirId, &str), to: (DirId, &str)) -> NodeResult<()> {
        self.movable(from.0, from.1)?;
        match self.target(from.1, to.0, to.1)? {
            Target::Into(_) => Err(NodeError::new(NodeErrorKind::Invalid, "the target is with another worker")),
            Target::Here(dir, name) => self.rename_to(from, (dir, name)),
        }
    }

    /// Renames a node to just this place, as [`Self::target`] says it: a container that is there does not take it in. What is there
    /// already stays as it is.
    pub fn rename_to(&mut self, from: (DirId, &str), (dir, name): (DirId, &str)) -> NodeResult<()> {
        let node = self.movable(from.0, from.1)?;
        let (kind, comes) = (node.kind(), (node.len(), node.container()));
        if (dir, name) == from {
            return Ok(());
        }
        self.check_arrival(kind, dir, name)?;
        if self.inside(from, dir) {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("{:?} can't be moved into itself", from.1)));
        }
        if dir != from.0 {
            self.check_comes(dir, name, comes, Some(from.0))?;
        }
        let (lease, container) = (self.lease(from.0, from.1), self.container_of(from.0, from.1));
        debug_assert_eq!(container.is_some(), kind.is_container(), "what is moved is of one kind");
        self.whole(|names| {
            if let Some(id) = container {
                names.set_parent(id, dir)?;
            }
            names.relocate(from, (dir, name));
            if let Some(until) = lease {
                names.step_lease(dir, name, Some(until));
            }
            Ok(())
        })
    }

    /// Where a node of that name comes when it is renamed to `name` in `dir`.
    pub fn target<'a>(&self, source: &'a str, dir: DirId, name: &'a str) -> NodeResult<Target<'a>> {
        match self.table(dir)?.find(name) {
            Some(Node::Container(_, link)) if self.has(link.1) => Ok(Target::Here(link.1, source)),
            Some(Node::Container(_, link)) => Ok(Target::Into(link.1)),
            _ => Ok(Target::Here(dir, name)),
        }
    }

    /// Whether a node of this type may come to this place: `Exists`, `WrongType`, `Retry`.
    pub(crate) fn check_arrival(&self, kind: NodeType, dir: DirId, name: &str) -> NodeResult<()> {
        check_name(name)?;
        let table = self.open_table(dir)?;
        table.check_holds(kind)?;
        self.check_free(dir, name)?;
        match table.find(name) {
            Some(old) if kind == NodeType::KeyValue && old.kind() == NodeType::KeyValue => old.check_still(name),
            Some(old) => Err(NodeError::new(
                NodeErrorKind::Exists,
                format!("{name:?} exists already and is a {}: delete it first", old.kind()),
            )),
            None => Ok(()),
        }
    }

    /// Whether `dir` is the container of that name or in it, as far as this part knows.
    fn inside(&self, outer: (DirId, &str), dir: DirId) -> bool {
        let Some(Node::Container(_, link)) = self.table(outer.0).ok().and_then(|table| table.find(outer.1)) else { return false };
        self.is_below(dir, link.1)
    }
}
