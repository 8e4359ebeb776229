//! The steps from what is held to what is planned: what to load and what to delete (`changes`), and what else has to go where bytes
//! are short (`garbage`). Each asserts what must hold of it.

mod garbage;
#[cfg(test)]
mod postconditions;

use std::cmp::Reverse;

use crate::{Holdings, Plan, Snapshot};

pub use garbage::{Garbage, Replica, Storage, collect, garbage};

/// A replica to bring to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The segment.
    pub segment: u32,
    /// Where to.
    pub worker: u32,
    /// A worker that holds it; none: shared storage.
    pub from: Option<u32>,
}

/// What isn't in a snapshot and decides when a replica may go.
#[derive(Clone, Copy, Debug)]
pub struct InFlight<'a> {
    /// Replicas on their way to their workers.
    pub loading: &'a Holdings,
    /// Replicas that a client's routing table may still name: the last plan's, and every one younger than the period in
    /// which clients poll.
    pub named: &'a Holdings,
}

/// What to do to come from what is held to what is planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Replicas to load now.
    pub load: Vec<Load>,
    /// Replicas to delete now, as (segment, worker).
    pub delete: Vec<(u32, u32)>,
    /// Replicas that aren't planned and stay for now, as (segment, worker).
    pub keep: Vec<(u32, u32)>,
}

/// The next step from what is held to `plan`.
///
/// Loads are all due at once. Deleting is lazy: where the paper lets one replica of a segment go in a run (Getafix, section 4.4), here
/// half of them go at most, so that what was hot enough to be everywhere is gone in a few runs. And make before break: a replica stays
/// while a client's table may name it, while a planned replica of its segment is still loading, and while fewer would be left than
/// the segment's minimum, which is 1 for all: the last replica of a segment that is no longer planned is for
/// [`garbage`](crate::garbage) to take.
pub fn changes(snapshot: &Snapshot<'_>, plan: &Plan, flight: &InFlight<'_>) -> Changes {
    let mut changes = Changes::default();
    let mut used: Vec<u64> = vec![0; snapshot.workers.len()];
    for (segment, worker) in snapshot.held.pairs() {
        if let Some(used) = used.get_mut(worker as usize) {
            *used += snapshot.segments[segment as usize].bytes;
        }
    }
    for (segment, demand) in (0..).zip(snapshot.segments) {
        let (held, planned) = (snapshot.held.of(segment), plan.holders(segment));
        let mut ready = true;
        for share in planned {
            if held.binary_search(&share.worker).is_err() {
                ready = false;
                if !flight.loading.holds(segment, share.worker) {
                    // Who leaves has the least to do.
                    let from = held.iter().find(|worker| !plan.holds(segment, **worker)).or(held.first()).copied();
                    changes.load.push(Load { segment, worker: share.worker, from });
                }
            }
        }
        let spare: Vec<u32> = held.iter().copied().filter(|worker| !plan.holds(segment, *worker)).collect();
        let least = demand.minimum.max(1) as usize;
        // The fullest workers give their replicas up first.
        let leaves = spare.iter().copied().filter(|worker| ready && !flight.named.holds(segment, *worker));
        let mut leaves: Vec<u32> = leaves.collect();
        leaves.sort_by_key(|worker| (Reverse(used.get(*worker as usize).copied()), *worker));
        leaves.truncate(at_once(held.len()).min(held.len().saturating_sub(least)));
        leaves.sort_unstable();
        changes.delete.extend(leaves.iter().map(|worker| (segment, *worker)));
        changes.keep.extend(spare.into_iter().filter(|worker| !leaves.contains(worker)).map(|worker| (segment, worker)));
    }
    of_changes(snapshot, plan, flight, &changes);
    changes
}

/// Replicas of a segment that may go in one run, of those that are held.
fn at_once(held: usize) -> usize {
    (held / 2).max(1)
}

/// Loads bring what is planned and not there; deletions take what is not planned, and leave enough.
fn of_changes(snapshot: &Snapshot<'_>, plan: &Plan, flight: &InFlight<'_>, changes: &Changes) {
    for load in &changes.load {
        let is_new = !snapshot.held.holds(load.segment, load.worker) && !flight.loading.holds(load.segment, load.worker);
        assert!(is_new && plan.holds(load.segment, load.worker), "{load:?} brings what is planned and not on its way");
    }
    assert!(changes.delete.is_sorted_by(|one, next| one < next), "a replica goes once, and segments ascend");
    for gone in changes.delete.chunk_by(|one, next| one.0 == next.0) {
        let segment = gone[0].0;
        let (held, least) = (snapshot.held.of(segment).len(), snapshot.segments[segment as usize].minimum.max(1) as usize);
        assert!(gone.len() <= at_once(held), "of {held} replicas of segment {segment} half go at most");
        assert!(held >= least + gone.len(), "segment {segment} keeps its {least} replicas");
        for &(_, worker) in gone {
            assert!(!plan.holds(segment, worker), "segment {segment} at worker {worker} is planned, and stays");
            assert!(!flight.named.holds(segment, worker), "segment {segment} at worker {worker} is named by a table, and stays");
        }
    }
}
