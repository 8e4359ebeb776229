//! How much a container's files and values may have, with those of the containers in it.
//!
//! What a quota is over lies with one worker, whole: so it can be counted before each change. Containers that are made in it come here, and
//! what would come into it with nodes of other workers is refused.

use std::collections::HashSet;

use super::Namespace;
use super::table::Table;
use crate::node::Node;
use crate::terms::{DirId, HAS_QUOTA, NAMED_IN_PART, NodeError, NodeErrorKind, NodeResult, ROOT};

impl Namespace {
    /// `NoSpace` when the file or value of a name may not have so many bytes, by the quota of its container or one that this is in. What
    /// shrinks may, also where more is there than the quota allows by now. What is on its way here counts as if it had come.
    pub(crate) fn check_quota(&self, dir: DirId, name: &str, len: u64) -> NodeResult<()> {
        self.check_comes(dir, name, (len, None), None)
    }

    /// The same of a node of so many bytes, or a container, that comes to a place, from a container of this part maybe: what both places
    /// are in has it already. `Invalid` of a container that is not here whole, `Moving` while one in it is about to go.
    pub(crate) fn check_comes(
        &self,
        dir: DirId,
        name: &str,
        (len, container): (u64, Option<DirId>),
        from: Option<DirId>,
    ) -> NodeResult<()> {
        if !self.is_bounded(dir) {
            return Ok(());
        }
        let more = match container {
            Some(id) => {
                self.check_whole(id)?;
                self.used_in(id)
            }
            None => len.saturating_sub(self.tables.get(&dir).and_then(|table| table.find(name)).map_or(0, Node::len)),
        };
        let shared = from.filter(|_| more > 0).map_or_else(Vec::new, |from| self.over(from));
        let bounds = self.over(dir).into_iter().filter_map(|at| Some((at, self.tables.get(&at)?.quota?)));
        for (at, quota) in bounds.filter(|(at, _)| more > 0 && !shared.contains(at)) {
            let used = self.used_in(at);
            if used.saturating_add(more) > quota {
                let container = self.path_of(at);
                return Err(NodeError::new(
                    NodeErrorKind::NoSpace,
                    format!(
                        "{name:?}: {container}{HAS_QUOTA}{quota} bytes, {used} of them used, and these are {more} more: delete \
                         something in it, or raise the quota"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Whether a container or one that it is in, or about to come into, has a quota.
    pub fn is_bounded(&self, dir: DirId) -> bool {
        self.bounded > 0 && self.over(dir).iter().any(|at| self.has_quota(*at))
    }

    /// Whether a quota ties a container to this worker: it has one and holds containers, or a container above it has one.
    pub fn is_tied(&self, id: DirId) -> bool {
        let holds = self.tables.get(&id).is_some_and(|table| table.quota.is_some() && !table.inside.is_empty());
        holds || self.bounded > 0 && self.over(id).iter().any(|at| *at != id && self.has_quota(*at))
    }

    fn has_quota(&self, dir: DirId) -> bool {
        self.tables.get(&dir).is_some_and(|table| table.quota.is_some())
    }

    /// Bytes of the files and values in a container and in those in it, and on their way there, as far as they are here.
    pub(crate) fn used_in(&self, dir: DirId) -> u64 {
        let tree = self.tree(dir);
        let there: u64 = tree.iter().filter_map(|id| self.tables.get(id)).map(|table| table.used).sum();
        let coming = self.arriving.iter().filter(|((to, _), _)| tree.contains(to));
        there + coming.map(|(_, arriving)| arriving.node.len()).sum::<u64>()
    }

    /// `Invalid` when a container or one in it is with another worker, or comes from one; `Moving` while one of them is about to go.
    pub(crate) fn check_whole(&self, dir: DirId) -> NodeResult<()> {
        for id in self.tree(dir) {
            let table = self.tables.get(&id).ok_or_else(|| {
                NodeError::new(
                    NodeErrorKind::Invalid,
                    "it holds containers that are with other workers, whose bytes nobody could count before each put: give each its own \
                     quota",
                )
            })?;
            table.check_open()?;
            if self.coming.contains_key(&id) {
                return Err(NodeError::moving());
            }
        }
        Ok(())
    }

    /// A container's nodes are here now, or not any more; gives what was there.
    pub(super) fn put_table(&mut self, dir: DirId, table: Option<Table>) -> Option<Table> {
        let has_quota = |table: &Option<Table>| usize::from(table.as_ref().is_some_and(|table| table.quota.is_some()));
        let more = has_quota(&table);
        let before = if let Some(table) = table { self.tables.insert(dir, table) } else { self.tables.remove(&dir) };
        self.bounded = self.bounded + more - has_quota(&before);
        debug_assert!(self.bounded <= self.tables.len(), "only what is here has a quota");
        before
    }

    /// Another quota of a container that is here; gives the one before.
    pub(super) fn put_quota(&mut self, dir: DirId, quota: Option<u64>) -> Option<Option<u64>> {
        let before = std::mem::replace(&mut self.tables.get_mut(&dir)?.quota, quota);
        self.bounded = self.bounded + usize::from(quota.is_some()) - usize::from(before.is_some());
        Some(before)
    }

    /// A container, the one that it is in, and so on, as far as their names are here.
    fn way_of(&self, dir: DirId) -> impl Iterator<Item = DirId> {
        // Each name of this part at most once.
        let up = std::iter::successors(Some(dir), move |at: &DirId| {
            self.links.get(at).map(|(parent, _)| *parent).filter(|_| *at != ROOT)
        });
        up.take(self.links.len() + 1)
    }

    /// A container and all containers above it, those that one of them is being renamed into among them.
    fn over(&self, dir: DirId) -> Vec<DirId> {
        let (mut over, mut next) = (self.way_of(dir).collect::<Vec<_>>(), 0);
        while let Some(&at) = over.get(next) {
            for ((to, _), arriving) in &self.arriving {
                if arriving.node.container() == Some(at) && !over.contains(to) {
                    over.extend(self.way_of(*to));
                }
            }
            next += 1;
        }
        over
    }

    /// A container and all containers below it, those being renamed into one of them among them, wherever their nodes are.
    fn tree(&self, dir: DirId) -> Vec<DirId> {
        let (mut tree, mut known, mut next) = (vec![dir], HashSet::from([dir]), 0);
        while let Some(&at) = tree.get(next) {
            let inside = self.tables.get(&at).into_iter().flat_map(|table| table.inside.iter().copied());
            let arriving = self.arriving.iter().filter(|((to, _), _)| *to == at);
            let arriving = arriving.filter_map(|(_, arriving)| arriving.node.container());
            tree.extend(inside.chain(arriving).filter(|id| known.insert(*id)));
            next += 1;
        }
        tree
    }

    /// The path of a container, as far as its names are here.
    fn path_of(&self, dir: DirId) -> String {
        let (mut at, mut path) = (dir, String::new());
        // Each name of this part at most once.
        for _ in 0..=self.links.len() {
            let Some((parent, name)) = self.links.get(&at) else { break };
            path.insert_str(0, &format!("/{name}"));
            at = *parent;
        }
        match path.as_str() {
            _ if at == ROOT => format!("/tmp{path}"),
            "" => "the container".to_string(),
            _ => format!("{NAMED_IN_PART}{path}"),
        }
    }
}
