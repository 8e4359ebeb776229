//! Splits of a bound.

use forebay_scheduling::{Ahead, Need, share_bound_by_need};
use forebay_types::{OperationId, PlanTurn, Standing};
use proptest::prelude::*;

fn turn(number: u64) -> PlanTurn {
    Standing { priority: 0, began_ms: number + 1 }.turn(OperationId(number), 0)
}

/// A split by demand alone.
fn share_bound<Who: Copy + Ord>(bound_bytes_per_sec: u64, demands: &[(Who, u64)]) -> Vec<(Who, u64)> {
    let needs: Vec<_> = demands.iter().map(|(who, demand)| Need { who: *who, demand: *demand, background: 0 }).collect();
    share_bound_by_need(bound_bytes_per_sec, &needs, &[])
}

#[test]
fn a_split_is_by_demand_and_what_nobody_asks_for_is_spread() {
    assert_eq!(share_bound(100, &[("a", 10), ("b", 80), ("c", 500)]), [("a", 10), ("b", 45), ("c", 45)]);
    assert_eq!(share_bound(100, &[("a", 0), ("b", 0)]), [("a", 50), ("b", 50)]);
    assert_eq!(share_bound(120, &[("a", 0), ("b", 20), ("c", 20)]), [("a", 2), ("b", 59), ("c", 59)]);
}

#[test]
fn one_alone_gets_the_whole_bound_whatever_it_asks_for() {
    assert_eq!(share_bound(50_000_000, &[(1, 0)]), [(1, 50_000_000)]);
    assert_eq!(share_bound(50_000_000, &[(1, u64::MAX)]), [(1, 50_000_000)]);
}

#[test]
fn nobody_to_share_with_is_no_share() {
    assert_eq!(share_bound::<u32>(100, &[]), []);
}

#[test]
fn a_small_demand_is_met_and_the_large_ones_split_the_rest() {
    assert_eq!(share_bound(100, &[('c', 90), ('a', 20), ('b', 70)]), [('c', 40), ('a', 20), ('b', 40)]);
}

#[test]
fn an_idle_one_keeps_a_floor_under_full_demand() {
    let shares = share_bound(4_000, &[(1, 1_000_000), (2, 0), (3, 1_000_000), (4, 0)]);
    assert_eq!(shares, [(1, 1_950), (2, 50), (3, 1_950), (4, 50)]);
}

#[test]
fn a_busy_one_among_many_idle_ones_gets_95_percent() {
    let demands: Vec<_> = (0..100).map(|i| (i, if i == 17 { u64::MAX } else { 0 })).collect();
    let shares = share_bound(125_000_000, &demands);
    assert!(shares[17].1 >= 125_000_000 / 100 * 95, "{}", shares[17].1);
}

#[test]
fn odd_bytes_go_to_the_first_by_name_not_by_place() {
    assert_eq!(share_bound(11, &[(9, 100), (2, 100), (5, 100)]), [(9, 3), (2, 4), (5, 4)]);
}

#[test]
fn background_takes_what_is_left_over_and_no_more() {
    let need = |who, demand, background| Need { who, demand, background };
    assert_eq!(share_bound_by_need(100, &[need('a', 60, 0), need('b', 0, u64::MAX)], &[]), [('a', 60), ('b', 40)]);
    assert_eq!(
        share_bound_by_need(100, &[need('a', u64::MAX, 0), need('b', 0, u64::MAX)], &[]),
        [('a', 98), ('b', 2)],
        "its floor"
    );
    assert_eq!(
        share_bound_by_need(120, &[need('a', 60, 10), need('b', 0, 500), need('c', 0, 500)], &[]),
        [('a', 70), ('b', 25), ('c', 25)]
    );
    assert_eq!(
        share_bound_by_need(120, &[need('a', 0, 10), need('b', 20, 0)], &[]),
        [('a', 57), ('b', 63)],
        "what nobody asks for is spread"
    );
}

#[test]
fn the_first_plan_has_what_it_needs_wherever_it_is_brought_before_the_second_one_has_anything() {
    let needs = ['a', 'b', 'c'].map(|who| Need { who, demand: 0, background: 0 });
    let ahead = |who, plan, bytes_per_sec| Ahead { who, turn: turn(plan), bytes_per_sec };
    // The floor of 10 is everyone's.
    let shares = share_bound_by_need(600, &needs, &[ahead('a', 2, 500), ahead('b', 1, 300), ahead('c', 1, 200)]);
    assert_eq!(shares, [('a', 80), ('b', 310), ('c', 210)]);
    let urgent = Ahead { turn: Standing { priority: 1, began_ms: 9 }.turn(OperationId(3), 0), ..ahead('a', 3, 500) };
    let shares = share_bound_by_need(600, &needs, &[ahead('b', 1, 300), ahead('c', 1, 200), urgent]);
    assert_eq!(shares, [('a', 510), ('b', 45), ('c', 45)], "but for its priority");
    assert_eq!(share_bound_by_need(600, &needs, &[ahead('x', 1, 300)]), [('a', 200), ('b', 200), ('c', 200)], "it is gone");
}

#[test]
fn demand_waits_for_no_plan_and_background_for_all() {
    let need = |who, demand, background| Need { who, demand, background };
    let ahead = Ahead { who: 'b', turn: turn(1), bytes_per_sec: u64::MAX };
    let needs = [need('a', 500, 0), need('b', 0, 0), need('c', 0, u64::MAX)];
    assert_eq!(share_bound_by_need(600, &needs, &[ahead]), [('a', 500), ('b', 90), ('c', 10)]);
    let little = Ahead { bytes_per_sec: 20, ..ahead };
    assert_eq!(share_bound_by_need(600, &needs, &[little]), [('a', 500), ('b', 30), ('c', 70)]);
}

/// Byte by byte: each goes to whoever has least of those that are short; when nobody is, the rest is spread
/// over those who ask for more than the floor.
fn brute_force(bound: u64, demands: &[(u8, u64)]) -> Vec<(u8, u64)> {
    let count = demands.len() as u64;
    let floor = bound / (count * 20);
    let mut shares: Vec<(u8, u64)> = demands.iter().map(|(who, _)| (*who, 0)).collect();
    let mut left = bound;
    while left > 0 {
        let short = (0..shares.len()).filter(|at| shares[*at].1 < demands[*at].1.max(floor));
        let Some(at) = short.min_by_key(|at| (shares[*at].1, shares[*at].0)) else { break };
        shares[at].1 += 1;
        left -= 1;
    }
    let asking = |demand: &u64| *demand > floor || demands.iter().all(|(_, demand)| *demand <= floor);
    let mut names: Vec<u8> = demands.iter().filter(|(_, demand)| asking(demand)).map(|(who, _)| *who).collect();
    names.sort();
    for name in names.iter().cycle().take(left as usize) {
        shares.iter_mut().find(|(who, _)| who == name).expect("same names").1 += 1;
    }
    shares
}

proptest! {
    #[test]
    fn equals_brute_force(
        bound in 0u64..3_000, demands in prop::collection::hash_map(any::<u8>(), prop_oneof![Just(0), 0u64..1_500, Just(u64::MAX)], 1..12),
    ) {
        let demands: Vec<_> = demands.into_iter().collect();
        prop_assert_eq!(share_bound(bound, &demands), brute_force(bound, &demands));
    }

    #[test]
    fn adds_up_and_keeps_the_floor_at_any_size(bound: u64, demands in prop::collection::vec(any::<u64>(), 1..50)) {
        let demands: Vec<_> = demands.into_iter().enumerate().collect();
        let shares = share_bound(bound, &demands);
        prop_assert_eq!(shares.iter().map(|(_, share)| u128::from(*share)).sum::<u128>(), u128::from(bound));
        let floor = bound / (demands.len() as u64 * 20);
        prop_assert!(shares.iter().all(|(_, share)| *share >= floor));
    }

    #[test]
    fn background_delays_no_demand(
        bound in 0u64..1_000_000,
        needs in prop::collection::vec(
            (prop_oneof![Just(0), 0u64..500_000, Just(u64::MAX)], prop_oneof![Just(0), 0u64..500_000, Just(u64::MAX)]), 1..20,
        ),
    ) {
        let demands: Vec<_> = needs.iter().enumerate().map(|(who, (demand, _))| (who, *demand)).collect();
        let needs: Vec<_> =
            needs.into_iter().enumerate().map(|(who, (demand, background))| Need { who, demand, background }).collect();
        let (alone, shares) = (share_bound(bound, &demands), share_bound_by_need(bound, &needs, &[]));
        prop_assert_eq!(shares.iter().map(|(_, share)| *share).sum::<u64>(), bound);
        for (need, (before, now)) in needs.iter().zip(alone.iter().zip(&shares)) {
            prop_assert!(now.1 >= need.demand.min(before.1), "{need:?} had {} of the bound and has {}", before.1, now.1);
        }
        // Nothing is given to who has no use for it while background work waits.
        let short = shares.iter().zip(&needs).any(|((_, share), need)| *share < need.demand.saturating_add(need.background));
        let floor = bound / (needs.len() as u64 * 20);
        let idle = shares.iter().zip(&needs).all(|((_, share), need)| {
            *share <= need.demand.saturating_add(need.background).max(need.background.saturating_add(floor))
        });
        prop_assert!(!short || idle, "{needs:?} of {bound}: {shares:?}");
    }

    #[test]
    fn plans_are_served_in_one_order_and_delay_no_demand(
        bound in 0u64..1_000_000,
        demands in prop::collection::vec(prop_oneof![Just(0), 0u64..500_000, Just(u64::MAX)], 1..12),
        plans in prop::collection::vec((0usize..12, 0u64..5, prop_oneof![0u64..500_000, Just(u64::MAX)]), 0..20),
    ) {
        let of_demand: Vec<_> = demands.iter().copied().enumerate().collect();
        let needs: Vec<_> = of_demand.iter().map(|(who, demand)| Need { who: *who, demand: *demand, background: 0 }).collect();
        let ahead = |number: &dyn Fn(u64) -> bool| -> Vec<Ahead<usize>> {
            let some = plans.iter().filter(|(_, plan, _)| number(*plan));
            some.map(|(who, plan, bytes_per_sec)| Ahead { who: *who, turn: turn(*plan), bytes_per_sec: *bytes_per_sec }).collect()
        };
        let (alone, shares) = (share_bound(bound, &of_demand), share_bound_by_need(bound, &needs, &ahead(&|_| true)));
        prop_assert_eq!(shares.iter().map(|(_, share)| *share).sum::<u64>(), bound, "never more than the bound");
        let floor = bound / (needs.len() as u64 * 20);
        for (need, (before, now)) in needs.iter().zip(alone.iter().zip(&shares)) {
            prop_assert!(now.1 >= need.demand.min(before.1), "{need:?} had {} of the bound and has {}", before.1, now.1);
            prop_assert!(now.1 >= floor, "nobody starves");
        }
        // Whatever comes behind a plan, it has what it would have without that, as far as it has use for it.
        for plan in 0..5 {
            let before = share_bound_by_need(bound, &needs, &ahead(&|number| number <= plan));
            for (who, share) in &shares {
                let of_it = ahead(&|number| number <= plan).into_iter().filter(|of| of.who == *who);
                let wanted = of_it.fold(demands[*who], |sum, of| sum.saturating_add(of.bytes_per_sec));
                prop_assert!(*share >= wanted.min(before[*who].1), "worker {who} of plan {plan}: {before:?}, now {shares:?}");
            }
        }
    }
}
