//! The side that takes a container over.

use std::time::Duration;

use super::handover::{Carton, Packed};
use crate::namespace::{Coming, Namespace, Table, TableState};
use crate::node::Node;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

/// The side that takes a container over. Until it has come as a whole and its source has given it up, nobody knows what it
/// will be.
impl Namespace {
    /// First step: a place for it, under what it will be. A try before this one is forgotten. The root stays what it is.
    pub fn begin_takeover(&mut self, source: u64, carton: Carton) -> NodeResult<DirId> {
        self.check_room(256)?;
        let Carton { old, kind, affinity, parent } = carton;
        self.drop_takeover_of(old);
        if old == ROOT && self.has(ROOT) {
            return Err(NodeError::new(NodeErrorKind::Invalid, "this worker has /tmp already"));
        }
        let id = if old == ROOT { ROOT } else { self.allocate() };
        self.tables.insert(id, Table { state: TableState::Sealed, ..Table::new(kind, affinity, parent) });
        self.coming.insert(id, Coming { old, source, parent, is_whole: false });
        Ok(id)
    }

    /// Some of its nodes.
    pub fn unpack(&mut self, id: DirId, packed: Vec<Packed>, now: Duration) -> NodeResult<()> {
        self.check_coming(id)?;
        for Packed { name, node, lease, writer } in packed {
            let label = self.label(node.location())?;
            let mut node = node.into_node(label);
            self.check_room(Self::size(&name, &node))?;
            if let Node::File(_, file) = &mut node {
                file.set_writer(writer.map(|(writer, left)| (writer, now + left)));
            }
            if let Some(left) = lease {
                node.flags_mut().set_leased(true);
                self.leases.insert((id, name.clone()), now + left);
            }
            self.place(id, &name, node);
        }
        Ok(())
    }

    /// It is whole: the source may give it up.
    pub fn end_takeover(&mut self, id: DirId) -> NodeResult<()> {
        self.check_coming(id)?;
        if let Some(coming) = self.coming.get_mut(&id) {
            coming.is_whole = true;
        }
        // The root is this worker's when all say so.
        if id != ROOT {
            self.set_state(id, TableState::Open);
        }
        Ok(())
    }

    /// The source keeps it: nothing is left of it here. Its blocks are the source's.
    pub fn drop_takeover(&mut self, id: DirId) {
        if self.coming.remove(&id).is_none() {
            return;
        }
        let Some(table) = self.tables.remove(&id) else { return };
        for (name, node) in &table.nodes {
            self.forget(id, name, node);
        }
    }

    /// The same of what it was.
    pub fn drop_takeover_of(&mut self, old: DirId) {
        let id = self.coming.iter().find(|(_, coming)| coming.old == old).map(|(id, _)| *id);
        id.into_iter().for_each(|id| self.drop_takeover(id));
    }

    /// Last step: the source has given it up, or is gone. Its name is in `parent`, when that is known. Gives the containers in
    /// it, which are to be told that their names are in another one now ([`Self::set_parent`]), and the one that its own name
    /// is in.
    pub fn settle_takeover(&mut self, id: DirId, parent: Option<DirId>) -> (Vec<DirId>, Option<DirId>) {
        let coming = self.coming.remove(&id);
        let Some(table) = self.tables.get_mut(&id) else { return (Vec::new(), None) };
        // Later word of it may have come by another way.
        if let (Some(coming), Some(parent)) = (coming, parent)
            && table.parent == coming.parent
            && parent != id
        {
            table.parent = parent;
        }
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
        match self.node_mut(dir, &name)? {
            node if node.flags().is_moving() => return Err(NodeError::moving()),
            Node::Container(_, link) => link.1 = new,
            _ => return Ok(false),
        }
        self.links.remove(&old);
        self.links.insert(new, (dir, name));
        Ok(true)
    }

    fn check_coming(&self, id: DirId) -> NodeResult<()> {
        match self.coming.get(&id) {
            Some(coming) if !coming.is_whole => Ok(()),
            _ => Err(NodeError::new(NodeErrorKind::Retry, "no such container is about to come here: begin again")),
        }
    }
}
