//! Who holds how much of a segment.

use forebay_types::WorkerId;
use smallvec::SmallVec;

/// Bytes that are believed to be held of a segment: cells, which are not cut at 64 MiB, are far smaller.
pub(super) const HELD_BYTES_MAX: u64 = 1 << 40;

/// What is known of a segment on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replica {
    pub(super) state: ReplicaState,
    pub(super) held_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaState {
    Held,
    /// Ordered, and not there yet.
    Loading,
    /// Ordered to be dropped.
    Dropping,
}

/// A segment's replicas, by worker. Most segments have one: it lies in place, so that who looks through all of them finds each with its
/// segment.
#[derive(Debug, Default)]
pub(super) struct Replicas(SmallVec<[(WorkerId, Replica); 1]>);

impl Replicas {
    pub(super) fn get(&self, worker: WorkerId) -> Option<&Replica> {
        self.find(worker).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, worker: WorkerId) -> Option<&mut Replica> {
        let at = self.find(worker).ok()?;
        Some(&mut self.0[at].1)
    }

    /// In the order of workers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkerId, &Replica)> {
        self.0.iter().map(|(worker, replica)| (*worker, replica))
    }

    pub(super) fn insert(&mut self, worker: WorkerId, replica: Replica) {
        match self.find(worker) {
            Ok(at) => self.0[at].1 = replica,
            Err(at) => self.0.insert(at, (worker, replica)),
        }
        debug_assert!(self.0.is_sorted_by(|one, next| one.0 < next.0), "workers are found by their order");
    }

    /// Whether there was one.
    pub(super) fn remove(&mut self, worker: WorkerId) -> bool {
        let found = self.find(worker);
        if let Ok(at) = found {
            self.0.remove(at);
        }
        found.is_ok()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Where a worker's replica is, or would be.
    fn find(&self, worker: WorkerId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&worker, |(holder, _)| *holder)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn replicas_are_found_as_in_a_map(steps in prop::collection::vec((0u8..4, 0u64..6, 1u64..100), 0..60)) {
            let (mut replicas, mut map) = (Replicas::default(), BTreeMap::<WorkerId, Replica>::new());
            for (step, worker, held_bytes) in steps {
                let worker = WorkerId(worker);
                match step {
                    0 => prop_assert_eq!(replicas.remove(worker), map.remove(&worker).is_some()),
                    1 if held_bytes > 90 => {
                        replicas.clear();
                        map.clear();
                    }
                    1 => {
                        if let Some(replica) = replicas.get_mut(worker) {
                            replica.held_bytes += 1;
                        }
                        if let Some(replica) = map.get_mut(&worker) {
                            replica.held_bytes += 1;
                        }
                    }
                    _ => {
                        let replica = Replica { state: ReplicaState::Held, held_bytes };
                        replicas.insert(worker, replica);
                        map.insert(worker, replica);
                    }
                }
                prop_assert_eq!(replicas.get(worker), map.get(&worker));
                prop_assert!(replicas.iter().eq(map.iter().map(|(worker, replica)| (*worker, replica))), "{replicas:?}, {map:?}");
            }
        }
    }
}
