//! The plan, as others read it.

use crate::plan::bound::lower_bound;
use crate::plan::copies::{apart, least};
use crate::plan::packing::Packing;
use crate::routing::percentages;
use crate::{Holdings, Piece, Snapshot, WorkerRoom};

/// A worker's part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The worker.
    pub worker: u32,
    /// Accesses a window that it is to serve; 0 for a copy that is only there for safety.
    pub count: u64,
}

/// Why a part of a demand isn't in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No worker with room for its bytes has capacity left.
    Capacity,
    /// No worker with capacity left has room for its bytes.
    Bytes,
    /// There are too few hosts, or too few with room, for the minimum of replicas.
    Domains,
}

/// A part of a demand that isn't in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsatisfied {
    /// The segment.
    pub segment: u32,
    /// Accesses a window that no worker was given.
    pub count: u64,
    /// Replicas that miss to the minimum.
    pub replicas: u32,
    /// Why.
    pub reason: Reason,
}

/// Which worker serves how much of which segment in the next window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What each worker holds and serves, by segment.
    pub assignment: Vec<Vec<Piece>>,
    /// Replicas in all.
    pub replicas: u64,
    /// What no plan within these capacities goes below.
    pub lower_bound: u64,
    /// Accesses a window that each worker may be given.
    pub capacity: Vec<u64>,
    /// Bytes of the replicas that their workers don't hold yet.
    pub bytes_to_move: u64,
    /// What couldn't be had, by segment.
    pub unsatisfied: Vec<Unsatisfied>,
    starts: Vec<u32>,
    shares: Vec<Share>,
}

impl Plan {
    /// Who is to hold `segment`, and what each serves of it, by worker.
    pub fn holders(&self, segment: u32) -> &[Share] {
        let at = segment as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.shares[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The routing table's line of `segment`: (worker, percent) in proportion to the plan, summing to 100 (Getafix,
    /// section 3.4). Empty when it is placed nowhere.
    pub fn routing(&self, segment: u32) -> Vec<(u32, u32)> {
        percentages(self.holders(segment).iter().map(|share| (share.worker, share.count)))
    }

    /// Whether `worker` is to hold `segment`.
    pub fn holds(&self, segment: u32, worker: u32) -> bool {
        self.holders(segment).binary_search_by_key(&worker, |share| share.worker).is_ok()
    }

    /// Who is to hold what.
    pub fn holdings(&self) -> Holdings {
        let segments = self.starts.len().saturating_sub(1);
        let pairs =
            (0..segments as u32).flat_map(|segment| self.holders(segment).iter().map(move |share| (segment, share.worker)));
        Holdings::from_pairs(segments, pairs)
    }

    /// Accesses a window that `worker` is given.
    pub fn load(&self, worker: u32) -> u64 {
        self.assignment[worker as usize].iter().map(|piece| piece.count).sum()
    }

    /// The plan that a packing is.
    pub(crate) fn of(snapshot: &Snapshot<'_>, capacity: Vec<u64>, mut packing: Packing) -> Self {
        let mut starts = vec![0u32; snapshot.segments.len() + 1];
        for piece in packing.bags.iter().flatten() {
            starts[piece.segment as usize + 1] += 1;
        }
        for segment in 0..snapshot.segments.len() {
            starts[segment + 1] += starts[segment];
        }
        let mut next = starts.clone();
        let mut shares = vec![Share { worker: 0, count: 0 }; packing.replicas() as usize];
        let mut bytes_to_move = 0;
        for (worker, bag) in packing.bags.iter_mut().enumerate() {
            bag.sort_unstable_by_key(|piece| piece.segment);
            for piece in bag {
                let at = &mut next[piece.segment as usize];
                shares[*at as usize] = Share { worker: worker as u32, count: piece.count };
                *at += 1;
                if !snapshot.held.holds(piece.segment, worker as u32) {
                    bytes_to_move += snapshot.segments[piece.segment as usize].bytes;
                }
            }
        }
        let mut plan = Self {
            replicas: packing.replicas(),
            lower_bound: lower_bound(snapshot, &capacity),
            assignment: packing.bags,
            capacity,
            bytes_to_move,
            unsatisfied: Vec::new(),
            starts,
            shares,
        };
        plan.unsatisfied = plan.unsatisfied(snapshot);
        plan
    }

    /// What the snapshot asks for and the plan hasn't.
    fn unsatisfied(&self, snapshot: &Snapshot<'_>) -> Vec<Unsatisfied> {
        let room = snapshot.workers.iter().zip(&self.assignment).zip(&self.capacity);
        let open = room.filter(|((_, bag), capacity)| bag.iter().map(|piece| piece.count).sum::<u64>() < **capacity).count();
        let mut missing = Vec::new();
        for (segment, demand) in (0..).zip(snapshot.segments) {
            let holders = self.holders(segment);
            let count = demand.count - holders.iter().map(|share| share.count).sum::<u64>();
            let apart = match demand.minimum {
                0 | 1 => holders.len(),
                _ => apart(snapshot, &holders.iter().map(|share| share.worker).collect::<Vec<_>>(), WorkerRoom::host),
            };
            let replicas = least(demand.minimum, demand.count).saturating_sub(apart as u32);
            if count > 0 || replicas > 0 {
                let reason = match (count, open) {
                    (0, _) => Reason::Domains,
                    (_, 0) => Reason::Capacity,
                    _ => Reason::Bytes,
                };
                missing.push(Unsatisfied { segment, count, replicas, reason });
            }
        }
        missing
    }
}
