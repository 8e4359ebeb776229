//! What the assignment promises: agreement, balance, little movement.

mod papers;
mod plans;
mod popularity;
mod steps;
mod support;

use std::collections::HashMap;

use forebay_placement::{holder, rank};
use forebay_types::{Key, MountId, RouteKey, WorkerId};
use proptest::prelude::*;

const ROUTES: u64 = 40_000;

/// Worker ids as they are in life: large random numbers.
fn workers(count: u64) -> Vec<WorkerId> {
    (1..=count).map(|i| WorkerId(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// Routes of real keys: neighbours in a folder, several segments each.
fn routes() -> impl Iterator<Item = RouteKey> {
    (0..ROUTES).map(|i| {
        let key = Key::new(format!("sales/2024/part-{:05}.parquet", i / 4)).expect("a legal key");
        RouteKey::of(MountId(1), &key, (i % 4) as u32)
    })
}

#[test]
fn load_is_balanced_within_a_few_percent() {
    for count in [2, 3, 8, 10] {
        let workers = workers(count);
        let mut load: HashMap<WorkerId, u64> = HashMap::new();
        routes().for_each(|route| *load.entry(holder(route, &workers).unwrap()).or_default() += 1);
        let mean = ROUTES as f64 / count as f64;
        for worker in &workers {
            let off = (load[worker] as f64 - mean).abs() / mean;
            assert!(off < 0.06, "{worker} of {count} holds {} routes, {:.1} % off the mean", load[worker], off * 100.0);
        }
    }
}

#[test]
fn small_worker_ids_balance_too() {
    let workers: Vec<_> = (1..=5).map(WorkerId).collect();
    let mut load: HashMap<WorkerId, u64> = HashMap::new();
    (0..ROUTES).for_each(|route| *load.entry(holder(RouteKey(route), &workers).unwrap()).or_default() += 1);
    assert!(workers.iter().all(|worker| (7_500..8_500).contains(&load[worker])), "{load:?}");
}

#[test]
fn a_worker_that_joins_takes_its_part_and_nothing_else_moves() {
    let before = workers(9);
    let after = workers(10);
    let joined = *after.last().unwrap();
    let mut moved = 0;
    for route in routes() {
        let (old, new) = (holder(route, &before), holder(route, &after));
        if old != new {
            assert_eq!(new, Some(joined));
            moved += 1;
        }
    }
    let part = moved as f64 / ROUTES as f64;
    assert!((0.09..0.11).contains(&part), "{part} of all routes moved");
}

#[test]
fn what_a_lost_worker_held_is_spread_over_all_others() {
    let before = workers(6);
    let (lost, after) = (before[2], [&before[..2], &before[3..]].concat());
    let mut taken: HashMap<WorkerId, u64> = HashMap::new();
    for route in routes().filter(|route| holder(*route, &before) == Some(lost)) {
        let heir = holder(route, &after).unwrap();
        assert_eq!(heir, rank(route, &before)[1], "the second in rank is the heir");
        *taken.entry(heir).or_default() += 1;
    }
    let mean = taken.values().sum::<u64>() as f64 / 5.0;
    assert_eq!(taken.len(), 5);
    assert!(taken.values().all(|count| (*count as f64 - mean).abs() < 0.1 * mean), "{taken:?}");
}

/// Two versions of Forebay in one cluster must agree: these values never change.
#[test]
fn golden_order() {
    let workers = [WorkerId(1), WorkerId(2), WorkerId(3), WorkerId(0xdead_beef_0000_0001)];
    let order =
        |route| -> [u64; 4] { rank(route, &workers).iter().map(|worker| worker.0).collect::<Vec<_>>().try_into().unwrap() };
    let key = Key::new("sales/x.parquet").unwrap();
    let routes = [
        RouteKey(0),
        RouteKey(u64::MAX),
        RouteKey(1),
        RouteKey(12345),
        RouteKey::of(MountId(1), &key, 0),
        RouteKey::of_listing(MountId(1)),
    ];
    assert_eq!(routes.map(order), GOLDEN);
}

const GOLDEN: [[u64; 4]; 6] = [
    [3, 2, 1, 0xdead_beef_0000_0001],
    [3, 2, 1, 0xdead_beef_0000_0001],
    [3, 1, 0xdead_beef_0000_0001, 2],
    [1, 3, 0xdead_beef_0000_0001, 2],
    [1, 2, 0xdead_beef_0000_0001, 3],
    [1, 2, 0xdead_beef_0000_0001, 3],
];

#[test]
fn nobody_holds_anything_without_workers() {
    assert_eq!(holder(RouteKey(1), &[]), None);
    assert!(rank(RouteKey(1), &[]).is_empty());
}

proptest! {
    #[test]
    fn order_is_a_permutation_whatever_the_order_of_workers(
        route: u64, ids in prop::collection::hash_set(any::<u64>(), 0..40), turn in 0usize..40,
    ) {
        let mut workers: Vec<_> = ids.into_iter().map(WorkerId).collect();
        let order = rank(RouteKey(route), &workers);
        if !workers.is_empty() {
            let turn = turn % workers.len();
            workers.rotate_left(turn);
        }
        prop_assert_eq!(&order, &rank(RouteKey(route), &workers));
        prop_assert_eq!(order.first().copied(), holder(RouteKey(route), &workers));
        let mut sorted = order.clone();
        sorted.sort();
        workers.sort();
        prop_assert_eq!(sorted, workers);
    }

    #[test]
    fn taking_a_worker_out_keeps_the_order_of_the_others(
        route: u64, ids in prop::collection::hash_set(any::<u64>(), 1..40), out in 0usize..40,
    ) {
        let mut workers: Vec<_> = ids.into_iter().map(WorkerId).collect();
        let mut order = rank(RouteKey(route), &workers);
        let gone = workers.remove(out % workers.len());
        order.retain(|worker| *worker != gone);
        prop_assert_eq!(order, rank(RouteKey(route), &workers));
    }
}
