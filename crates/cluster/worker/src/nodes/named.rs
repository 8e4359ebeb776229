//! Containers whose names are with other workers.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use forebay_nodes::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};
use forebay_protocol::{NodeReply, PeerCall, PeerOp};

use super::Nodes;
use super::fence::Reached;
use super::tree::misfit;

/// How long a container's name is looked for: one that was just made may not be there yet.
pub(super) const NAME_WITHIN: Duration = Duration::from_secs(10);
/// Containers of one question.
pub(super) const ASKED_MAX: usize = 10_000;
/// Containers that are looked for soon at most: others are looked for with all.
const NEW_MAX: usize = 100_000;
/// How long the name of a container that had one must have been missed: it may be on its way from one worker to another.
const MISSED_FOR: Duration = Duration::from_millis(500);

/// What is known of the names of containers whose names are with other workers.
#[derive(Default)]
pub(super) struct Named {
    /// Their names were found once.
    found: HashSet<DirId>,
    /// Since when no worker has a name for them.
    missed: HashMap<DirId, Instant>,
    /// They were made, or came, since the last look.
    new: HashSet<DirId>,
}

impl Named {
    /// Those that are to be looked at soon, of all that are here.
    fn soon(&mut self, all: &[DirId]) -> Vec<DirId> {
        let soon: HashSet<DirId> = self.new.drain().chain(self.missed.keys().copied()).collect();
        all.iter().filter(|id| soon.contains(id)).copied().collect()
    }

    /// Some of all containers that are here were looked for, and of these some have no name: those that are to be dropped.
    fn looked(&mut self, all: &[DirId], asked: &[DirId], nameless: &[DirId], now: Instant) -> Vec<DirId> {
        let set = |ids: &[DirId]| ids.iter().copied().collect::<HashSet<DirId>>();
        let (all, asked, nameless) = (set(all), set(asked), set(nameless));
        self.found.retain(|id| all.contains(id));
        self.found.extend(asked.difference(&nameless));
        self.missed.retain(|id, _| all.contains(id) && (nameless.contains(id) || !asked.contains(id)));
        let is_over = |id: &DirId, since: Instant| {
            let within = if self.found.contains(id) { MISSED_FOR } else { NAME_WITHIN };
            now.saturating_duration_since(since) >= within
        };
        let mut lost = Vec::new();
        for id in nameless {
            if is_over(&id, *self.missed.entry(id).or_insert(now)) {
                lost.push(id);
            }
        }
        lost
    }
}

/// There is one namespace: what no name leads to is dropped, also when clients remember the way to it.
impl Nodes {
    /// Whether there are containers to be looked at soon.
    pub(super) fn has_doubts(&self) -> bool {
        let named = self.apart.named.lock();
        !named.missed.is_empty() || !named.new.is_empty()
    }

    /// A container has come here whose name is another worker's business: it is looked for soon, so that it is known later that
    /// there was one.
    pub(super) fn came(&self, id: DirId) {
        let mut named = self.apart.named.lock();
        if named.new.len() < NEW_MAX {
            named.new.insert(id);
        }
    }

    /// Drops what was lost with the worker that had its name: containers that no worker has a name for any more, and a root
    /// that is another worker's by now. Looks at all of them, or at those in doubt.
    pub(super) async fn look_for_names(&self, at_all: bool) {
        // One that was live under the coordinator before may come back with the names.
        if !self.cluster.hearing.holds() {
            return;
        }
        let view = self.cluster.view();
        if view.root().is_some_and(|root| root.id.0 != self.worker) {
            let removed = self.names.write().drop_root();
            self.gone(removed, None);
        }
        let all = self.names.read().strangers();
        let asked = if at_all { all.clone() } else { self.apart.named.lock().soon(&all) };
        let Ok(nameless) = self.nameless(&asked).await else {
            // Those that are new still are.
            self.apart.named.lock().new.extend(asked);
            return;
        };
        let lost = self.apart.named.lock().looked(&all, &asked, &nameless, forebay_runtime::now());
        for id in lost {
            tracing::info!(container = ?id, "container lost with the worker that had its name");
            let removed = self.names.write().remove_nodes(id, true);
            if let Ok(removed) = removed {
                self.gone(removed, None);
            }
        }
    }

    /// Those of the containers that no live worker has a name for. The workers that are to have the names are asked first, and
    /// of what they don't have all others.
    async fn nameless(&self, asked: &[DirId]) -> NodeResult<Vec<DirId>> {
        let mut by_worker: HashMap<u64, Vec<DirId>> = HashMap::new();
        let parents = self.names.read().parents(asked);
        for (id, parent) in parents {
            by_worker.entry(parent.worker).or_default().push(id);
        }
        let mut left = Vec::new();
        for (worker, containers) in by_worker {
            for containers in containers.chunks(ASKED_MAX) {
                match self.nameless_at(worker, containers).await {
                    Err(error) if error.kind == NodeErrorKind::DataLost => left.extend_from_slice(containers),
                    nameless => left.extend(nameless?),
                }
            }
        }
        for worker in &self.cluster.view().workers {
            let mut still = Vec::new();
            for containers in left.chunks(ASKED_MAX) {
                still.extend(self.nameless_at(worker.id.0, containers).await?);
            }
            left = still;
        }
        Ok(left)
    }

    async fn nameless_at(&self, worker: u64, containers: &[DirId]) -> NodeResult<Vec<DirId>> {
        if worker == self.worker {
            return Ok(self.names.read().nameless(containers.to_vec()));
        }
        let op = PeerOp::Nameless { containers: containers.to_vec() };
        match self.ask_nodes(worker, &PeerCall { from: ROOT, path: "", op }, None).await?.reply()? {
            NodeReply::Dirs(mut nameless) => {
                let asked: HashSet<_> = containers.iter().collect();
                nameless.retain(|id| asked.contains(id));
                Ok(nameless)
            }
            _ => Err(misfit()),
        }
    }

    /// Takes a name away whose container is lost with its worker, so that it can be given anew. Whether it was so; `Moving` while that is
    /// not known to all: some may still be led there.
    pub(super) async fn clear_lost(&self, at: Reached, name: &str) -> NodeResult<bool> {
        let dir = at.dir;
        let Some(id) = self.reached(at)?.container_elsewhere(dir, name) else { return Ok(false) };
        let call = PeerCall { from: ROOT, path: "", op: PeerOp::Missing { containers: vec![id] } };
        let asked = self.ask_nodes(id.worker, &call, None).await;
        let is_lost = match asked.as_ref().map(|answer| answer.reply()) {
            Ok(Ok(NodeReply::Dirs(missing))) => missing.contains(&id),
            // Not in the view.
            Err(error) => error.kind == NodeErrorKind::DataLost,
            _ => false,
        };
        if !is_lost {
            return Ok(false);
        }
        // One that was live under the coordinator before may come back.
        if !self.may_replace_lost() {
            return Err(NodeError::new(NodeErrorKind::Moving, "its container is lost, which not all workers know yet"));
        }
        let removed = {
            let mut names = self.changing(at)?;
            let is_still = names.container_elsewhere(dir, name) == Some(id);
            if is_still { names.delete(dir, name, true)? } else { return Ok(true) }
        };
        tracing::info!(name, container = ?id, "name of a lost container given free");
        self.gone(removed, Some(id));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_dropped_when_its_name_was_missed_for_a_while() {
        let (mut named, now) = (Named::default(), forebay_runtime::now());
        let ids = [1, 2].map(|number| DirId { worker: 1, number });
        let [old, new] = ids;
        let after = |millis| now + Duration::from_millis(millis);
        assert_eq!(named.looked(&[old], &[old], &[], now), []);
        assert_eq!(named.looked(&ids, &ids, &ids, after(100)), []);
        assert_eq!(named.looked(&ids, &ids, &ids, after(500)), []);
        assert_eq!(named.looked(&ids, &ids, &ids, after(600)), [old], "the other one may not have been given its name yet");
        assert_eq!(named.looked(&[new], &[], &[], after(700)), []);
        assert_eq!((named.soon(&[new]), named.soon(&ids)), (vec![new], vec![new]), "missed, as long as it was not found");
        assert_eq!(named.looked(&[new], &[new], &[new], after(10_099)), []);
        assert_eq!(named.looked(&[new], &[new], &[new], after(10_100)), [new]);
        assert_eq!(named.looked(&[], &[], &[], after(10_200)), []);
        assert!(named.missed.is_empty() && named.found.is_empty());
    }

    #[test]
    fn a_name_that_is_found_again_was_not_missed() {
        let (mut named, now) = (Named::default(), forebay_runtime::now());
        let id = DirId { worker: 1, number: 1 };
        let after = |millis| now + Duration::from_millis(millis);
        named.looked(&[id], &[id], &[], now);
        named.looked(&[id], &[id], &[id], after(100));
        assert_eq!(named.looked(&[id], &[id], &[], after(500)), []);
        assert_eq!(named.looked(&[id], &[id], &[id], after(700)), [], "from the start");
    }
}
