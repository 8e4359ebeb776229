//! Which worker gets what: decisions that look at workers and sizes alone, and not at a part of the namespace. Here, which workers a new
//! block is offered to, one after the other.

mod drain;

use std::collections::HashMap;
use std::time::Duration;

use crate::terms::{Location, StorageClass};

pub use drain::{Haven, Moves, plan_blocks, plan_containers};

/// How long a worker that had no room for a block is asked after the others.
const FULL_FOR: Duration = Duration::from_secs(1);

/// A worker that blocks can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The worker.
    pub worker: u64,
    /// The label of where it is.
    pub location: &'a str,
    /// It has a disk tier.
    pub has_disk: bool,
    /// It is the one that writes, or beside the process that does.
    pub is_beside: bool,
    /// It had no room a moment ago ([`Full`]).
    pub is_full: bool,
}

/// The workers that a block is offered to, one after the other until one has room, in an order that spreads blocks: workers of the
/// location that its node asks for come first, and among those, as among all others, workers beside the writer. Each fills its memory
/// before its disk. A worker that has just been full comes last, and a worker without a disk tier is asked for one only when there is
/// no other, so that it says so.
///
/// ```
/// use forebay_nodes::{Candidate, Location, StorageClass, offer};
///
/// let at = |worker, location| Candidate { worker, location, has_disk: true, is_beside: false, is_full: false };
/// let workers = [at(1, "rack1"), at(2, "rack2"), at(3, "rack1")];
/// let location: Location = "rack2".parse().unwrap();
/// assert_eq!(offer(&workers, &location, StorageClass::Dram), [2, 1, 3]);
/// ```
pub fn offer(candidates: &[Candidate<'_>], location: &Location, class: StorageClass) -> Vec<u64> {
    let without_disk = |candidate: &Candidate<'_>| class == StorageClass::Disk && !candidate.has_disk;
    let mut order: Vec<_> = candidates.iter().filter(|candidate| !without_disk(candidate)).collect();
    if order.is_empty() {
        order = candidates.iter().collect();
    }
    order.sort_by_key(|candidate| (candidate.is_full, !location.is_at(candidate.location), !candidate.is_beside));
    order.into_iter().map(|candidate| candidate.worker).collect()
}

/// Workers that had no room for a block a moment ago, so that not every block waits for each of them to say so again.
#[derive(Debug, Default)]
pub struct Full(HashMap<u64, Duration>);

impl Full {
    /// A worker has no room now.
    pub fn note(&mut self, worker: u64, now: Duration) {
        self.0.retain(|_, until| *until > now);
        self.0.insert(worker, now + FULL_FOR);
    }

    /// Whether it had none a moment ago.
    pub fn is(&self, worker: u64, now: Duration) -> bool {
        self.0.get(&worker).is_some_and(|until| *until > now)
    }
}
