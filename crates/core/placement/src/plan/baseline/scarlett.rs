//! Replicas by concurrent accesses.

use std::cmp::Reverse;

use super::{Ladder, share_equally};
use crate::plan::packing::Packing;
use crate::{Concurrency, SegmentDemand, Snapshot};

/// A thousandth of an access in flight: loads are whole numbers, so that sums don't depend on their order.
const GRAIN: f64 = 1e3;

/// Scarlett (G. Ananthanarayanan and others, EuroSys 2011), as Getafix compares itself with it (section 5.1).
///
/// A segment wants as many replicas as it has concurrent accesses, and `delta` more. Passes over the segments in
/// decreasing concurrency give each that wants more one more, while the budget lasts; the first replica is everybody's. A
/// new replica goes to the worker with the least expected load that doesn't have it. What is held stays as long as it is
/// wanted.
pub(crate) fn scarlett(
    snapshot: &Snapshot<'_>,
    packing: &mut Packing,
    concurrency: Concurrency,
    delta: u32,
    budget: Option<u64>,
) {
    let workers = snapshot.workers.len();
    let concurrent = |demand: &SegmentDemand| match concurrency {
        Concurrency::Peak => demand.concurrent_peak.max(0.0),
        Concurrency::Mean => demand.concurrent_mean.max(0.0),
    };
    let mut order: Vec<u32> = (0..)
        .zip(snapshot.segments)
        .filter(|(_, demand)| demand.count > 0 || demand.minimum > 0)
        .map(|(segment, _)| segment)
        .collect();
    let of = |segment: u32| &snapshot.segments[segment as usize];
    order.sort_by_key(|segment| (Reverse((concurrent(of(*segment)) * GRAIN) as u64), Reverse(of(*segment).bytes), *segment));
    let goals = goals(order.iter().map(|segment| wanted(concurrent(of(*segment)), delta, workers)).collect(), budget);

    let mut ladder = Ladder::new((0..workers as u64).collect());
    let mut holders: Vec<Vec<u32>> = vec![Vec::new(); snapshot.segments.len()];
    let load = |segment: u32, goal: usize| (concurrent(of(segment)) * GRAIN) as u64 / goal.max(1) as u64 + 1;
    for (segment, goal) in order.iter().zip(&goals) {
        // Where it has too many, the most loaded workers give theirs up.
        let mut held: Vec<u32> = snapshot.held.of(*segment).iter().copied().filter(|at| (*at as usize) < workers).collect();
        held.sort_by_key(|worker| ladder.load(*worker));
        for worker in held.into_iter().take(*goal) {
            if packing.bytes[worker as usize] >= of(*segment).bytes {
                packing.bytes[worker as usize] -= of(*segment).bytes;
                ladder.add(worker, load(*segment, *goal));
                holders[*segment as usize].push(worker);
            }
        }
    }
    for (segment, goal) in order.iter().zip(&goals) {
        let mine = &mut holders[*segment as usize];
        while mine.len() < *goal {
            let fit = |worker: u32| !mine.contains(&worker) && packing.bytes[worker as usize] >= of(*segment).bytes;
            let Some(worker) = ladder.least(fit) else { break };
            packing.bytes[worker as usize] -= of(*segment).bytes;
            ladder.add(worker, load(*segment, *goal));
            mine.push(worker);
        }
    }
    share_equally(snapshot, packing, &holders);
}

/// r_f = c_f + delta, at most one a worker.
fn wanted(concurrent: f64, delta: u32, workers: usize) -> usize {
    ((concurrent.ceil() as usize).saturating_add(delta as usize)).clamp(1, workers.max(1))
}

/// How many replicas each gets of those it wants, in passes over them in the order that they are given.
fn goals(wanted: Vec<usize>, budget: Option<u64>) -> Vec<usize> {
    let Some(budget) = budget else { return wanted };
    let mut goals = vec![1; wanted.len()];
    let mut left = budget.saturating_sub(goals.len() as u64);
    let mut grew = true;
    while grew && left > 0 {
        grew = false;
        for (goal, wanted) in goals.iter_mut().zip(&wanted) {
            if *goal < *wanted && left > 0 {
                (*goal, left, grew) = (*goal + 1, left - 1, true);
            }
        }
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_go_round_while_the_budget_lasts() {
        assert_eq!(goals(vec![4, 3, 1], None), [4, 3, 1]);
        assert_eq!(goals(vec![4, 3, 1], Some(6)), [3, 2, 1]);
        assert_eq!(goals(vec![4, 3, 1], Some(2)), [1, 1, 1], "the first replica is everybody's");
        assert_eq!(goals(vec![4, 3, 1], Some(100)), [4, 3, 1]);
    }

    #[test]
    fn a_segment_wants_its_concurrency_and_delta() {
        assert_eq!([wanted(0.0, 0, 9), wanted(1.2, 1, 9), wanted(50.0, 1, 9)], [1, 3, 9]);
    }
}
