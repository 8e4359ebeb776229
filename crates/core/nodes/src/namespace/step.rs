//! The single steps that changes are made of: each is noted, so that it can be taken back, and nothing in it can fail.
//!
//! What may fail is looked at before the first of them. Numbers and labels are not taken back: that they were given binds nobody.

use std::time::Duration;

use super::Namespace;
use super::table::{Table, TableState};
use super::underway::{Arriving, Coming};
use super::undo::Back;
use crate::node::{File, FileBack, Flags, Node};
use crate::terms::{BlockRef, DirId, NodeError, NodeResult, NodeType};

impl Namespace {
    /// Gives a name to a node, or to none.
    pub(super) fn step_node(&mut self, dir: DirId, name: &str, node: Option<Node>) {
        let Some(table) = self.tables.get_mut(&dir) else { return };
        let (used, is_none) = (table.used, node.is_none());
        let before = table.set(name, node);
        let less = before.as_ref().map(Node::len);
        if is_none && less.is_none() {
            return;
        }
        let name = self.undo.keep(name);
        self.undo.note(Back::Node(dir, name, before));
        let less = less.unwrap_or_default();
        assert!(used >= less, "{less} bytes go of {used}: a container has those of its nodes");
    }

    /// The same of a name that is free, in a container that is here; else the type of the node that has it, and keeps it.
    pub(super) fn step_new(&mut self, dir: DirId, name: &str, node: Node) -> Option<NodeType> {
        let has = self.tables.get_mut(&dir)?.add(name, node);
        if has.is_none() {
            let name = self.undo.keep(name);
            self.undo.note(Back::Node(dir, name, None));
        }
        has
    }

    /// The same of a name that a node of its type has; gives the blocks of that one.
    pub(super) fn step_over(&mut self, dir: DirId, name: &str, node: Node) -> Vec<BlockRef> {
        let Some(table) = self.tables.get_mut(&dir) else { return Vec::new() };
        let kind = node.kind();
        let before = table.set(name, Some(node));
        let (was, blocks) = (before.as_ref().map(Node::kind), before.as_ref().map_or_else(Vec::new, Node::blocks));
        let name = self.undo.keep(name);
        self.undo.note(Back::Node(dir, name, before));
        assert!(was == Some(kind), "a node of its type is there, whose place it takes");
        blocks
    }

    /// Another place for a node that is there.
    pub(super) fn step_move(&mut self, from: (DirId, &str), to: (DirId, &str)) {
        if !self.tables.contains_key(&to.0) {
            return;
        }
        let taken = self.tables.get_mut(&from.0).and_then(|table| table.set(from.1, None));
        let (Some(node), Some(table)) = (taken, self.tables.get_mut(&to.0)) else { return };
        let before = table.set(to.1, Some(node));
        self.undo.note(Back::Moved(Box::new([(from.0, from.1.into()), (to.0, to.1.into())]), before));
    }

    /// A node that was on its way is in its place.
    pub(super) fn step_arrived(&mut self, place: &(DirId, Box<str>)) {
        let Some(table) = self.tables.get_mut(&place.0) else { return };
        let Some(Arriving { rename, source, node }) = self.arriving.remove(place) else { return };
        let before = table.set(&place.1, Some(node));
        self.undo.note(Back::Arrived(place.0, place.1.clone(), Box::new((rename, source, before))));
    }

    pub(crate) fn step_flags(&mut self, dir: DirId, name: &str, flags: Flags) {
        let Some(node) = self.tables.get_mut(&dir).and_then(|table| table.nodes.get_mut(name)) else { return };
        let before = std::mem::replace(node.flags_mut(), flags);
        self.undo.note(Back::Flags(dir, name.into(), before));
    }

    /// The name of a container leads elsewhere.
    pub(crate) fn step_leads(&mut self, dir: DirId, name: &str, to: DirId) {
        let Some(before) = self.tables.get_mut(&dir).and_then(|table| table.lead(name, to)) else { return };
        self.undo.note(Back::Leads(dir, name.into(), before));
    }

    /// Changes a file that can be changed now.
    pub(crate) fn step_file(
        &mut self,
        dir: DirId,
        name: &str,
        change: impl FnOnce(&mut File) -> NodeResult<FileBack>,
    ) -> NodeResult<&File> {
        self.movable(dir, name)?;
        let Self { tables, undo, .. } = self;
        let Some(Table { nodes, used, .. }) = tables.get_mut(&dir) else { return Err(NodeError::not_found(name)) };
        match nodes.get_mut(name) {
            Some(Node::File(_, file)) => {
                let before = file.len();
                assert!(*used >= before, "a container of {used} bytes has the {before} of its file");
                let back = change(file)?;
                *used = *used + file.len() - before;
                let name = undo.keep(name);
                undo.note(Back::File(dir, name, back));
                Ok(file)
            }
            Some(other) => Err(other.wrong_type(name, NodeType::File)),
            None => Err(NodeError::not_found(name)),
        }
    }

    /// Puts other blocks in the places of some of all nodes that can be changed now, until there are `enough`.
    pub(crate) fn step_blocks(&mut self, mut other: impl FnMut(BlockRef) -> Option<BlockRef>, enough: usize) {
        let (mut left, Self { tables, coming, undo, .. }) = (enough, self);
        let tables = tables.iter_mut().filter(|(id, table)| table.check_open().is_ok() && !coming.contains_key(*id));
        for (dir, table) in tables {
            for (name, node) in table.nodes.iter_mut().filter(|(_, node)| !node.flags().is_moving()) {
                if left == 0 {
                    return;
                }
                let blocks = node.blocks();
                let new: Vec<_> = blocks.iter().map(|block| other(*block)).collect();
                let count = new.iter().flatten().count();
                if count > 0 {
                    left = left.saturating_sub(count);
                    let before = node.clone();
                    let mut new = blocks.into_iter().zip(new).map(|(old, new)| new.unwrap_or(old));
                    node.replace_blocks(|old| new.next().unwrap_or(old));
                    let bytes = (before.len(), node.len());
                    let name = undo.keep(name);
                    undo.note(Back::Node(*dir, name, Some(before)));
                    assert_eq!(bytes.0, bytes.1, "other blocks have the same bytes");
                }
            }
        }
    }

    pub(crate) fn step_lease(&mut self, dir: DirId, name: &str, until: Option<Duration>) {
        let place = (dir, name.into());
        let before = if let Some(until) = until { self.leases.insert(place, until) } else { self.leases.remove(&place) };
        self.undo.note(Back::Lease(dir, name.into(), before));
    }

    /// Where the name of a container is.
    pub(crate) fn step_link(&mut self, id: DirId, place: Option<(DirId, Box<str>)>) {
        let before = if let Some(place) = place { self.links.insert(id, place) } else { self.links.remove(&id) };
        self.undo.note(Back::Link(id, before));
    }

    pub(crate) fn step_table(&mut self, dir: DirId, table: Option<Table>) {
        assert!(table.is_none() || !self.has(dir), "no container takes the place of another one");
        let before = self.put_table(dir, table);
        self.undo.note(Back::Table(dir, before.map(Box::new)));
    }

    pub(crate) fn step_state(&mut self, dir: DirId, state: TableState) {
        if let Some(table) = self.tables.get_mut(&dir) {
            let before = std::mem::replace(&mut table.state, state);
            self.undo.note(Back::State(dir, before));
        }
    }

    pub(crate) fn step_quota(&mut self, dir: DirId, quota: Option<u64>) {
        if let Some(before) = self.put_quota(dir, quota) {
            self.undo.note(Back::Quota(dir, before));
        }
    }

    pub(crate) fn step_parent(&mut self, dir: DirId, parent: DirId) {
        if let Some(table) = self.tables.get_mut(&dir) {
            let before = std::mem::replace(&mut table.parent, parent);
            self.undo.note(Back::Parent(dir, before));
        }
    }

    pub(crate) fn step_arriving(&mut self, dir: DirId, name: &str, arriving: Option<Arriving>) {
        let place = (dir, name.into());
        assert!(arriving.is_none() || !self.arriving.contains_key(&place), "one node at a time is on its way to a place");
        let before = match arriving {
            Some(arriving) => self.arriving.insert(place, arriving),
            None => self.arriving.remove(&place),
        };
        self.undo.note(Back::Arriving(dir, name.into(), before.map(Box::new)));
    }

    pub(crate) fn step_coming(&mut self, id: DirId, coming: Option<Coming>) {
        let before = if let Some(coming) = coming { self.coming.insert(id, coming) } else { self.coming.remove(&id) };
        self.undo.note(Back::Coming(id, before));
    }

    pub(crate) fn step_moved_to(&mut self, id: DirId, to: DirId) {
        let before = self.moved.insert(id, to);
        self.undo.note(Back::MovedTo(id, before));
    }

    /// What is counted: so much less, and so much more.
    pub(crate) fn step_counts(&mut self, less: (u64, u64), more: (u64, u64)) {
        let before = (self.counts.bytes, self.counts.nodes);
        assert!(before.0 + more.0 >= less.0 && before.1 + more.1 >= less.1, "no more goes than is here: {before:?}");
        (self.counts.bytes, self.counts.nodes) = (self.counts.bytes + more.0 - less.0, self.counts.nodes + more.1 - less.1);
        self.undo.note(Back::Counts(before.0, before.1));
    }

    /// No node has these blocks any more.
    pub(crate) fn step_freed(&mut self, blocks: Vec<BlockRef>) {
        if !blocks.is_empty() {
            let before = self.freed.len();
            self.freed.extend(blocks);
            self.undo.note(Back::Freed(before));
        }
    }

    /// Nothing is here any more. Numbers go on, so that none is given twice.
    pub(crate) fn step_clear(&mut self) {
        let (undo, freed) = (std::mem::take(&mut self.undo), std::mem::take(&mut self.freed));
        let (worker, last) = (self.numbers.worker, self.numbers.last());
        let new = Self { undo, freed, ..Self::with_numbers(worker, self.counts.bytes_max, last) };
        let before = std::mem::replace(self, new);
        self.undo.note(Back::All(Box::new(before)));
        assert!(self.numbers.last() >= last, "numbers go on, so that none is given twice");
    }
}
