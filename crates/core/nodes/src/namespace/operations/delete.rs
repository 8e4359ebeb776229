//! Deleting a node, and a container with all that is in it.

use crate::namespace::Namespace;
use crate::node::Node;
use crate::terms::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

/// What went with a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Blocks that no node has any more.
    pub blocks: Vec<BlockRef>,
    /// Containers in it whose nodes are with other workers, to be removed there.
    pub elsewhere: Vec<DirId>,
}

impl Namespace {
    /// The container of a name that is to be deleted, if it is one and its nodes are elsewhere: they have to go first
    /// ([`Self::remove_nodes`] there), then the name. Fails as [`Self::delete`] would of a name that can't be deleted now.
    pub fn elsewhere(&self, dir: DirId, name: &str) -> NodeResult<Option<DirId>> {
        Ok(self.movable(dir, name)?.container().filter(|id| !self.has(*id)))
    }

    /// Deletes a node. A container with nodes only when `recursive`, else `NotEmpty`. Of containers in it whose nodes are
    /// elsewhere the identities are returned.
    pub fn delete(&mut self, dir: DirId, name: &str, recursive: bool) -> NodeResult<Removed> {
        let container = self.movable(dir, name)?.container();
        self.whole(|names| {
            let mut removed = Removed::default();
            match container {
                Some(id) if names.has(id) => {
                    removed = names.remove_nodes(id, recursive).map_err(|error| error.context(format!("{name:?}")))?;
                }
                elsewhere => removed.elsewhere.extend(elsewhere),
            }
            removed.blocks.extend(names.take(dir, name)?);
            Ok(removed)
        })
    }

    /// Deletes a container's nodes, and the container; its name is another one's business. `NotEmpty` unless `recursive`
    /// when there are any, `Retry` while one of them is being renamed.
    pub fn remove_nodes(&mut self, id: DirId, recursive: bool) -> NodeResult<Removed> {
        if id == ROOT {
            return Err(NodeError::new(NodeErrorKind::Invalid, "/tmp can't be deleted"));
        }
        // Looked at before anything is changed.
        let mut inside = vec![id];
        let mut next = 0;
        while let Some(&dir) = inside.get(next) {
            let table = self.open_table(dir)?;
            if !recursive && (!table.nodes.is_empty() || self.arriving.keys().any(|(place, _)| *place == dir)) {
                return Err(NodeError::new(
                    NodeErrorKind::NotEmpty,
                    format!("it holds {} nodes: delete it recursively, or them first", table.nodes.len()),
                ));
            }
            for (name, node) in &table.nodes {
                node.check_still(name)?;
                if let Node::Container(_, link) = node
                    && self.has(link.1)
                {
                    inside.push(link.1);
                }
            }
            next += 1;
        }
        Ok(self.whole(|names| names.remove_tables(inside)))
    }

    /// Takes containers away with all that is in them.
    pub(crate) fn remove_tables(&mut self, containers: Vec<DirId>) -> Removed {
        let mut removed = Removed::default();
        for dir in containers {
            let Some(table) = self.tables.get(&dir) else { continue };
            for node in table.nodes.values() {
                match node {
                    Node::Container(_, link) if link.1.worker != self.numbers.worker => removed.elsewhere.push(link.1),
                    other => removed.blocks.extend(other.blocks()),
                }
            }
            self.step_coming(dir, None);
            self.drop_table(dir);
        }
        removed
    }
}
