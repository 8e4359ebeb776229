//! What brings a part of the namespace back to where it was, when a change ends by a defect in the midst of its steps.
//!
//! A list of what each step has replaced, and not a copy of the part, which may have millions of nodes, nor a look at all of it
//! afterwards, which can't tell whose bytes are missing. What is replaced is moved to the list instead of being dropped, so that a
//! step costs a push and a copy of a short name.

use std::time::Duration;

use super::table::{Table, TableState};
use super::underway::{Arriving, Coming};
use super::{Namespace, Numbers};
use crate::node::{FileBack, Flags, Node};
use crate::terms::DirId;

/// Steps that the list keeps its memory for, and bytes of names.
const STEPS_KEPT: usize = 1_024;
const TEXT_BYTES_KEPT: usize = 64 << 10;

/// Where a name is in the list's memory for names, which is used again: who changes something has the names alone, and asks for no memory meanwhile
/// that he can do without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    start: usize,
    end: usize,
}

/// What takes one step back.
#[derive(Debug)]
pub(super) enum Back {
    /// Another node had this name, or none.
    Node(DirId, Kept, Option<Node>),
    /// A node had another place; what it took the place of.
    Moved(Box<[(DirId, Box<str>); 2]>, Option<Node>),
    /// A node was on its way to its place; what it took the place of.
    Arrived(DirId, Box<str>, Box<(u128, u64, Option<Node>)>),
    Flags(DirId, Box<str>, Flags),
    /// The name of a container led elsewhere.
    Leads(DirId, Box<str>, DirId),
    File(DirId, Kept, FileBack),
    Lease(DirId, Box<str>, Option<Duration>),
    Link(DirId, Option<(DirId, Box<str>)>),
    Table(DirId, Option<Box<Table>>),
    State(DirId, TableState),
    Quota(DirId, Option<u64>),
    Parent(DirId, DirId),
    Arriving(DirId, Box<str>, Option<Box<Arriving>>),
    Coming(DirId, Option<Coming>),
    MovedTo(DirId, Option<DirId>),
    /// Bytes and nodes that were counted.
    Counts(u64, u64),
    /// Blocks that were freed before.
    Freed(usize),
    /// Everything was another one.
    All(Box<Namespace>),
}

/// The steps of the change that is under way, the last one at the end.
#[derive(Debug, Default)]
pub(super) struct Undo {
    steps: Vec<Back>,
    /// The names in them.
    text: String,
    is_open: bool,
}

impl Undo {
    pub(super) fn note(&mut self, back: Back) {
        assert!(self.is_open, "changes are made as wholes");
        self.steps.push(back);
        #[cfg(test)]
        fail::point();
    }

    /// A name for a step of the change that is under way.
    pub(super) fn keep(&mut self, name: &str) -> Kept {
        let start = self.text.len();
        self.text.push_str(name);
        Kept { start, end: self.text.len() }
    }

    fn name(&self, kept: Kept) -> Box<str> {
        self.text[kept.start..kept.end].into()
    }

    fn close(&mut self) {
        self.steps.clear();
        self.steps.shrink_to(STEPS_KEPT);
        self.text.clear();
        self.text.shrink_to(TEXT_BYTES_KEPT);
        self.is_open = false;
    }
}

/// A change that is under way: taken back when it is dropped before its end.
struct Whole<'n>(&'n mut Namespace);

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        while let Some(back) = self.0.undo.steps.pop() {
            self.0.take_back(back);
        }
        self.0.undo.close();
    }
}

impl Namespace {
    /// Makes a change that comes about as a whole, or not at all when it panics. One within another ends with that one.
    pub(crate) fn whole<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        if self.undo.is_open {
            return change(self);
        }
        assert!(self.undo.steps.is_empty(), "{} steps of an earlier change are left", self.undo.steps.len());
        self.undo.is_open = true;
        let whole = Whole(self);
        let done = change(&mut *whole.0);
        whole.0.check_small();
        whole.0.undo.close();
        done
    }

    /// Takes the last step back that is still there. Nothing in it can fail.
    fn take_back(&mut self, back: Back) {
        match back {
            Back::Node(dir, name, before) => {
                let name = self.undo.name(name);
                drop(self.back_in_place(dir, name, before));
            }
            Back::Moved(places, before) => {
                let [from, to] = *places;
                if let Some(node) = self.back_in_place(to.0, to.1, before) {
                    self.back_in_place(from.0, from.1, Some(node));
                }
            }
            Back::Arrived(dir, name, of) => {
                let (rename, source, before) = *of;
                if let Some(node) = self.back_in_place(dir, name.clone(), before) {
                    self.arriving.insert((dir, name), Arriving { rename, source, node });
                }
            }
            Back::Flags(dir, name, before) => self.with(dir, &name, |node| *node.flags_mut() = before),
            Back::Leads(dir, name, before) => _ = self.tables.get_mut(&dir).and_then(|table| table.lead(&name, before)),
            Back::File(dir, name, before) => {
                let name = self.undo.name(name);
                let Some(Table { nodes, used, .. }) = self.tables.get_mut(&dir) else { return };
                if let Some(Node::File(_, file)) = nodes.get_mut(&name) {
                    let len = file.len();
                    file.take_back(before);
                    *used = *used + file.len() - len;
                }
            }
            Back::Lease(dir, name, before) => drop(put(&mut self.leases, (dir, name), before)),
            Back::Link(id, before) => match before {
                Some(place) => drop(self.links.insert(id, place)),
                None => drop(self.links.remove(&id)),
            },
            Back::Table(dir, before) => drop(self.put_table(dir, before.map(|table| *table))),
            Back::State(dir, before) => self.tables.get_mut(&dir).map_or((), |table| table.state = before),
            Back::Quota(dir, before) => _ = self.put_quota(dir, before),
            Back::Parent(dir, before) => self.tables.get_mut(&dir).map_or((), |table| table.parent = before),
            Back::Arriving(dir, name, before) => match before {
                Some(arriving) => drop(self.arriving.insert((dir, name), *arriving)),
                None => drop(self.arriving.remove(&(dir, name))),
            },
            Back::Coming(id, before) => match before {
                Some(coming) => drop(self.coming.insert(id, coming)),
                None => drop(self.coming.remove(&id)),
            },
            Back::MovedTo(id, before) => match before {
                Some(to) => drop(self.moved.insert(id, to)),
                None => drop(self.moved.remove(&id)),
            },
            Back::Counts(bytes, nodes) => (self.counts.bytes, self.counts.nodes) = (bytes, nodes),
            Back::Freed(before) => self.freed.truncate(before),
            Back::All(before) => {
                let (undo, freed) = (std::mem::take(&mut self.undo), std::mem::take(&mut self.freed));
                // Numbers that were given are not given again.
                let numbers = Numbers::behind(self.numbers.worker, self.numbers.last());
                *self = Self { undo, freed, numbers, ..*before };
            }
        }
    }

    /// Puts in a place what was there, and gives what is there.
    fn back_in_place(&mut self, dir: DirId, name: Box<str>, before: Option<Node>) -> Option<Node> {
        self.tables.get_mut(&dir)?.set(&name, before)
    }

    fn with(&mut self, dir: DirId, name: &str, what: impl FnOnce(&mut Node)) {
        if let Some(node) = self.tables.get_mut(&dir).and_then(|table| table.nodes.get_mut(name)) {
            what(node);
        }
    }
}

fn put<K: Ord, V>(map: &mut std::collections::BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    if let Some(value) = value { map.insert(key, value) } else { map.remove(&key) }
}

/// Panics that tests plant between two steps.
#[cfg(test)]
pub(super) mod fail {
    use std::cell::Cell;

    thread_local!(static LEFT: Cell<Option<u32>> = const { Cell::new(None) });

    /// The step after so many more ends in a panic; none does any more.
    pub(crate) fn after(steps: Option<u32>) {
        LEFT.set(steps);
    }

    pub(super) fn point() {
        let left = LEFT.get();
        LEFT.set(left.and_then(|left| left.checked_sub(1)));
        assert!(left != Some(0), "planted between two steps");
    }
}

#[cfg(test)]
mod tests;
