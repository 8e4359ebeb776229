//! What is in a container, in order.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::namespace::Namespace;
use crate::node::Node;
use crate::terms::{DirId, NodeResult, NodeType};

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: NodeType,
    /// Bytes of a file or value.
    pub bytes: u64,
    /// The identity of a container.
    pub dir: Option<DirId>,
}

impl Namespace {
    /// Hands the enumerable nodes of a container after a name to `each`, in byte order of their names, until it says that it
    /// has enough. True when there are no more.
    pub fn enumerate<'a>(
        &'a self,
        dir: DirId,
        after: Option<&str>,
        mut each: impl FnMut(&'a str, NodeType, u64) -> bool,
    ) -> NodeResult<bool> {
        let table = self.table(dir)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (name, node) in table.nodes.range::<str, _>((from, Bound::Unbounded)) {
            if node.flags().is_enumerable() && !each(name, node.kind(), node.len()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Up to `limit` enumerable nodes of a container after a name, in byte order of their names; and whether there are no more.
    pub fn list(&self, dir: DirId, after: Option<&str>, limit: usize) -> NodeResult<(Vec<Entry>, bool)> {
        let table = self.table(dir)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut entries = Vec::new();
        for (name, node) in table.nodes.range::<str, _>((from, Bound::Unbounded)) {
            if !node.flags().is_enumerable() {
                continue;
            }
            if entries.len() == limit {
                return Ok((entries, false));
            }
            let dir = if let Node::Container(_, link) = node { Some(link.1) } else { None };
            entries.push(Entry { name: name.to_string(), kind: node.kind(), bytes: node.len(), dir });
        }
        Ok((entries, true))
    }

    /// The type of a container that is here.
    pub fn kind(&self, dir: DirId) -> NodeResult<NodeType> {
        Ok(self.table(dir)?.kind)
    }
}
