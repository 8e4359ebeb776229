//! What ties containers to their names, which may be with other workers.

use std::collections::HashSet;

use super::Namespace;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

impl Namespace {
    /// The containers here that no name here leads to: another worker's does, or none any more. O(containers).
    pub fn strangers(&self) -> Vec<DirId> {
        let strangers = self.tables.keys().filter(|id| **id != ROOT && !self.links.contains_key(*id));
        strangers.filter(|id| !self.coming.contains_key(*id)).copied().collect()
    }

    /// The containers that containers here are in.
    pub fn parents(&self, containers: &[DirId]) -> Vec<(DirId, DirId)> {
        containers.iter().filter_map(|id| Some((*id, self.tables.get(id)?.parent))).collect()
    }

    /// Of some containers those that no name here leads to, not one on its way here either.
    pub fn nameless(&self, mut containers: Vec<DirId>) -> Vec<DirId> {
        let arriving: HashSet<DirId> = self.arriving.values().filter_map(|arriving| arriving.node.container()).collect();
        containers.retain(|id| !self.links.contains_key(id) && !arriving.contains(id));
        containers
    }

    /// Of some containers those that are not here, and were not given to another worker.
    pub fn missing(&self, mut containers: Vec<DirId>) -> Vec<DirId> {
        containers.retain(|id| !self.has(*id) && !self.moved.contains_key(id));
        containers
    }

    /// The container that a name leads to.
    pub fn container_of(&self, dir: DirId, name: &str) -> Option<DirId> {
        self.tables.get(&dir)?.find(name)?.container()
    }

    /// The container that a name leads to when its nodes are with another worker.
    pub fn container_elsewhere(&self, dir: DirId, name: &str) -> Option<DirId> {
        self.tables.get(&dir)?.find(name)?.container().filter(|id| !self.has(*id))
    }

    /// Whether `dir` is `outer` or below it, as far as this part knows.
    pub(crate) fn is_below(&self, dir: DirId, outer: DirId) -> bool {
        let mut at = dir;
        // Each container of this part at most once. Parents that are elsewhere end the way up.
        for _ in 0..=self.tables.len() {
            if at == outer {
                return true;
            }
            match self.tables.get(&at) {
                Some(table) if at != ROOT => at = table.parent,
                _ => return false,
            }
        }
        // A circle, which [`Self::set_parent`] lets nobody make: nothing comes into it.
        true
    }

    /// A container's name is in `parent` now. To be told to where it moved when it is not here any more ([`Self::moved_to`]).
    /// `Invalid` when it would come to lie in itself.
    pub fn set_parent(&mut self, id: DirId, parent: DirId) -> NodeResult<()> {
        if !self.has(id) {
            return Ok(());
        }
        if id == ROOT || self.is_below(parent, id) {
            return Err(NodeError::new(NodeErrorKind::Invalid, "a container can't be moved into itself"));
        }
        self.whole(|names| names.step_parent(id, parent));
        debug_assert!(!self.is_below(parent, id), "no container lies in itself");
        Ok(())
    }
}
