//! What must hold of a plan, whatever the snapshot: a plan that breaks it comes from a defect of the planner, and is not to leave it.
//!
//! Each check is one pass over segments and pieces, which is little beside making the plan. Goals (README.md) are not here: how
//! good a plan is depends on what it was made of.

use crate::plan::packing::Packing;
use crate::{Piece, Plan, Policy, Snapshot};

/// The ledgers of a finished packing agree with what lies in its bags.
pub(super) fn of_packing(snapshot: &Snapshot<'_>, policy: Policy, packing: &Packing) {
    assert_eq!(packing.bags.len(), snapshot.workers.len(), "every worker has a bag");
    if !minds_capacity(policy) {
        return;
    }
    let mut placed: Vec<u64> = vec![0; snapshot.segments.len()];
    for (worker, bag) in (0..).zip(&packing.bags) {
        let room = packing.room[worker as usize];
        assert_eq!(room + load(bag), packing.capacity(worker), "worker {worker}: room and load are its capacity");
        bag.iter().for_each(|piece| placed[piece.segment as usize] += piece.count);
    }
    packing.left.iter().for_each(|piece| placed[piece.segment as usize] += piece.count);
    for (segment, (placed, demand)) in placed.into_iter().zip(snapshot.segments).enumerate() {
        assert_eq!(placed, demand.count, "segment {segment}: what is placed and what is left is what was asked for");
    }
}

/// What those who follow a plan rely on.
pub(super) fn of_plan(snapshot: &Snapshot<'_>, policy: Policy, plan: &Plan) {
    for (worker, bag) in plan.assignment.iter().enumerate() {
        let ascends = bag.windows(2).all(|pair| pair[0].segment < pair[1].segment);
        assert!(ascends, "worker {worker}: a segment is on it once, and segments ascend");
        let bytes = bag.iter().map(|piece| snapshot.segments[piece.segment as usize].bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        assert!(bytes <= snapshot.workers[worker].bytes, "worker {worker}: its replicas fit into its bytes");
        let within = !minds_capacity(policy) || load(bag) <= plan.capacity[worker];
        assert!(within, "worker {worker}: it is given no more than its capacity");
    }
    let mut missing = plan.unsatisfied.iter().peekable();
    for (segment, demand) in (0..).zip(snapshot.segments) {
        let missing = missing.next_if(|missing| missing.segment == segment).map_or(0, |missing| missing.count);
        let served = plan.holders(segment).iter().map(|share| share.count).sum::<u64>();
        let all = served.checked_add(missing);
        assert_eq!(all, Some(demand.count), "segment {segment}: what is served and what is not is what was asked for");
    }
    assert!(missing.next().is_none(), "what is not satisfied is said once, by segment");
    let is_bound = !plan.unsatisfied.is_empty() || !minds_capacity(policy) || plan.replicas >= plan.lower_bound;
    assert!(is_bound, "{} replicas are fewer than the {} that were proven", plan.replicas, plan.lower_bound);
}

/// The baselines know no capacities.
fn minds_capacity(policy: Policy) -> bool {
    !matches!(policy, Policy::Uniform { .. } | Policy::Scarlett { .. })
}

fn load(bag: &[Piece]) -> u64 {
    bag.iter().map(|piece| piece.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fit::{Fit, fit};
    use crate::{Holdings, PlanSettings, SegmentDemand, WorkerRoom, plan};

    const COUNTS: [u64; 4] = [5, 4, 2, 1];

    /// Checks a plan for two workers, and a packing by Best Fit, after something was done to them.
    fn check(spoil_packing: impl FnOnce(&mut Packing), spoil_plan: impl FnOnce(&mut Plan)) {
        let segments = COUNTS.map(|count| SegmentDemand { count, bytes: 10, ..SegmentDemand::default() });
        let workers = WorkerRoom::equal(2).into_iter().map(|room| WorkerRoom { bytes: 35, ..room }).collect::<Vec<_>>();
        let snapshot = Snapshot { segments: &segments, workers: &workers, held: &Holdings::none() };
        let mut packing = Packing::empty(&snapshot, &[6, 6]);
        fit(&snapshot, &mut packing, 0..4, Fit::Best);
        spoil_packing(&mut packing);
        of_packing(&snapshot, Policy::BestFit, &packing);
        let mut plan = plan(&snapshot, &PlanSettings::of(Policy::BestFit));
        spoil_plan(&mut plan);
        of_plan(&snapshot, Policy::BestFit, &plan);
    }

    #[test]
    fn what_is_sound_passes() {
        check(|_| {}, |_| {});
    }

    #[test]
    #[should_panic(expected = "room and load are its capacity")]
    fn a_piece_that_took_no_room_is_caught() {
        check(|packing| packing.bags[0][0].count -= 1, |_| {});
    }

    #[test]
    #[should_panic(expected = "what is placed and what is left is what was asked for")]
    fn a_piece_that_got_lost_is_caught() {
        let lose = |packing: &mut Packing| {
            let piece = packing.bags[1].pop().unwrap();
            packing.room[1] += piece.count;
        };
        check(lose, |_| {});
    }

    #[test]
    #[should_panic(expected = "a segment is on it once")]
    fn a_segment_that_is_twice_on_a_worker_is_caught() {
        let repeat = |plan: &mut Plan| {
            let first = plan.assignment[0][0];
            plan.assignment[0].insert(0, first);
        };
        check(|_| {}, repeat);
    }

    #[test]
    #[should_panic(expected = "it is given no more than its capacity")]
    fn a_worker_that_is_given_too_much_is_caught() {
        check(|_| {}, |plan| plan.assignment[1][0].count += 7);
    }

    #[test]
    #[should_panic(expected = "its replicas fit into its bytes")]
    fn a_worker_without_room_for_its_bytes_is_caught() {
        check(|_| {}, |plan| plan.assignment[0] = (0..4).map(|segment| Piece { segment, count: 0 }).collect());
    }

    #[test]
    #[should_panic(expected = "what is served and what is not is what was asked for")]
    fn a_demand_that_is_said_to_miss_though_it_is_served_is_caught() {
        let missing = |segment| crate::Unsatisfied { segment, count: 1, replicas: 0, reason: crate::Reason::Capacity };
        check(|_| {}, |plan| plan.unsatisfied.push(missing(2)));
    }

    #[test]
    #[should_panic(expected = "are fewer than the")]
    fn a_bound_that_is_none_is_caught() {
        check(|_| {}, |plan| plan.lower_bound = plan.replicas + 1);
    }
}
