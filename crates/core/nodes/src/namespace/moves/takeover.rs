//! The side that takes a container over.

use std::time::Duration;

use super::handover::{Carton, Packed};
use crate::namespace::operations::Removed;
use crate::namespace::{Coming, Namespace, Table, TableState};
use crate::node::Node;
use crate::terms::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

/// The side that takes a container over. Until it has come as a whole and its source has given it up, nobody knows what it
/// will be.
impl Namespace {
    /// First step: a place for it, under what it will be. A try before this one is forgotten. The root stays what it is.
    pub fn begin_takeover(&mut self, source: u64, carton: Carton) -> NodeResult<DirId> {
        self.check_room(256)?;
        let Carton { old, kind, affinity, parent, quota } = carton;
        self.drop_takeover_of(old);
        if old == ROOT && self.has(ROOT) {
            return Err(NodeError::new(NodeErrorKind::Invalid, "this worker has /tmp already"));
        }
        let id = if old == ROOT { ROOT } else { self.allocate() };
        self.whole(|names| {
            names.step_table(id, Some(Table { state: TableState::Sealed, quota, ..Table::new(kind, affinity, parent) }));
            names.step_coming(id, Some(Coming { old, source, parent, is_whole: false }));
        });
        Ok(id)
    }

    /// Some of its nodes.
    pub fn unpack(&mut self, id: DirId, packed: Vec<Packed>, now: Duration) -> NodeResult<()> {
        self.check_coming(id)?;
        for Packed { name, node, lease, writer } in packed {
            let label = self.label(&node.location)?;
            let mut node = node.into_node(label);
            self.check_room(Self::size(&name, &node))?;
            if let Node::File(_, file) = &mut node {
                file.set_writer(writer.map(|(writer, left)| (writer, now + left)));
            }
            node.flags_mut().set_leased(lease.is_some());
            self.whole(|names| {
                names.place(id, &name, node);
                if let Some(left) = lease {
                    names.step_lease(id, &name, Some(now + left));
                }
            });
        }
        Ok(())
    }

    /// It is whole: the source may give it up.
    pub fn end_takeover(&mut self, id: DirId) -> NodeResult<()> {
        self.check_coming(id)?;
        let whole = self.coming.get(&id).map(|coming| Coming { is_whole: true, ..*coming });
        self.whole(|names| {
            names.step_coming(id, whole);
            // The root is this worker's when all say so.
            if id != ROOT {
                names.step_state(id, TableState::Open);
            }
        });
        Ok(())
    }

    /// The source keeps it: nothing is left of it here. Its blocks are the source's.
    pub fn drop_takeover(&mut self, id: DirId) {
        if self.coming.contains_key(&id) {
            self.whole(|names| {
                names.step_coming(id, None);
                names.drop_table(id);
            });
        }
    }

    /// The same of what it was.
    pub fn drop_takeover_of(&mut self, old: DirId) {
        let id = self.coming.iter().find(|(_, coming)| coming.old == old).map(|(id, _)| *id);
        id.into_iter().for_each(|id| self.drop_takeover(id));
    }

    /// Last step: the source has given it up, or is gone. Its name is in `parent`, when that is known. Returns the containers in
    /// it, which have to be told of their new parent ([`Self::set_parent`]), and the container that has its own name.
    pub fn settle_takeover(&mut self, id: DirId, parent: Option<DirId>) -> (Vec<DirId>, Option<DirId>) {
        let (coming, known) = (self.coming.get(&id).copied(), self.tables.get(&id).map(|table| table.parent));
        self.whole(|names| {
            names.step_coming(id, None);
            // Later word of it may have come by another way.
            if let (Some(coming), Some(parent)) = (coming, parent)
                && known == Some(coming.parent)
                && parent != id
            {
                names.step_parent(id, parent);
            }
        });
        let Some(table) = self.tables.get(&id) else { return (Vec::new(), None) };
        (table.nodes.values().filter_map(Node::container).collect(), Some(table.parent))
    }

    /// Containers that have not been given up by their sources, by what they will be: what they were, whose, and whether they
    /// are here as a whole.
    pub fn coming(&self) -> Vec<(DirId, DirId, u64, bool)> {
        self.coming.iter().map(|(id, coming)| (*id, coming.old, coming.source, coming.is_whole)).collect()
    }

    /// A container is another one now: its name, when that is here, leads there. `Moving` while the name itself is on its way.
    pub fn relink(&mut self, old: DirId, new: DirId) -> NodeResult<bool> {
        if self.arriving.values().any(|arriving| arriving.node.container() == Some(old)) {
            return Err(NodeError::moving());
        }
        let Some((dir, name)) = self.links.get(&old).cloned() else { return Ok(self.links.contains_key(&new)) };
        if self.coming.contains_key(&dir) {
            return Err(NodeError::moving());
        }
        match self.node(dir, &name)? {
            node if node.flags().is_moving() => return Err(NodeError::moving()),
            Node::Container(..) => {}
            _ => return Ok(false),
        }
        self.whole(|names| {
            names.step_leads(dir, &name, new);
            names.step_link(old, None);
            names.step_link(new, Some((dir, name)));
        });
        Ok(true)
    }

    fn check_coming(&self, id: DirId) -> NodeResult<()> {
        match self.coming.get(&id) {
            Some(coming) if !coming.is_whole => Ok(()),
            _ => Err(NodeError::new(NodeErrorKind::Retry, "no such container is about to come here: begin again")),
        }
    }

    /// This worker was lost to all others: everything goes. With it come the blocks of nodes that were on their way between this
    /// worker and another one, which may have them by now: they are to be given back only when no node anywhere has them.
    pub fn lose_all(&mut self) -> (Removed, Vec<BlockRef>) {
        let (mut removed, mut doubtful) = (Removed::default(), Vec::new());
        for (id, table) in &self.tables {
            let is_still = table.state == TableState::Open && !self.coming.contains_key(id);
            for node in table.nodes.values() {
                match node {
                    node if !is_still || node.flags().is_moving() => doubtful.extend(node.blocks()),
                    Node::Container(_, link) if link.1.worker != self.numbers.worker => removed.elsewhere.push(link.1),
                    node => removed.blocks.extend(node.blocks()),
                }
            }
        }
        doubtful.extend(self.arriving.values().flat_map(|arriving| arriving.node.blocks()));
        self.whole(Self::step_clear);
        (removed, doubtful)
    }
}
