//! The way from a container up to the root, by the names that are here.

use super::Namespace;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

/// Where a way up has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayUp {
    /// The root, or a container whose name is with another worker.
    At(DirId),
    /// No name of the container is here, only its nodes, which know it in this one.
    Perhaps(DirId),
}

impl Namespace {
    /// Goes up from a container by the names that are here, all of which stay where they are. `Invalid` when the way goes through
    /// `outer`, `Retry` while a container on it is being moved.
    pub fn way_up(&self, from: DirId, outer: DirId) -> NodeResult<WayUp> {
        let mut at = from;
        // Each name of this part at most once.
        for _ in 0..=self.links.len() {
            if at == outer {
                return Err(NodeError::new(NodeErrorKind::Invalid, "a container can't be moved into itself"));
            }
            let Some((dir, name)) = self.links.get(&at).filter(|_| at != ROOT) else { break };
            if let Some(node) = self.table(*dir)?.find(name) {
                node.check_still(name)?;
            }
            at = *dir;
        }
        if at != from || at == ROOT {
            return Ok(WayUp::At(at));
        }
        if self.arriving.values().any(|arriving| arriving.node.container() == Some(at)) {
            return Err(NodeError::new(NodeErrorKind::Retry, "a container on the way is being renamed: try again"));
        }
        self.tables.get(&at).map(|table| WayUp::Perhaps(table.parent)).ok_or_else(|| match self.moved.contains_key(&at) {
            true => NodeError::moving(),
            false => NodeError::new(NodeErrorKind::Retry, "a container on the way is not where it was: try again"),
        })
    }

    /// Until when a node is leased.
    pub fn lease(&self, dir: DirId, name: &str) -> Option<std::time::Duration> {
        self.leases.get(&(dir, name.into())).copied()
    }

    /// Where the name of a container is, if it is here.
    pub fn place_of(&self, id: DirId) -> Option<(DirId, &str)> {
        self.links.get(&id).map(|(dir, name)| (*dir, &**name))
    }
}
