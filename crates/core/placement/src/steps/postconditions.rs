//! Planted defects of steps, and that what must hold of steps catches each.

use super::garbage::of_garbage;
use super::of_changes;
use crate::{Changes, Garbage, Holdings, InFlight, Load, Plan, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom, plan};

/// One segment, planned on one of two workers and held by `held`, with changes and garbage as they are given.
fn check(held: &[u32], make: impl FnOnce(&Plan) -> (Changes, Garbage)) {
    let segments = [SegmentDemand { count: 1, bytes: 1, ..SegmentDemand::default() }];
    let held = Holdings::from_pairs(1, held.iter().map(|worker| (0, *worker)));
    let snapshot = Snapshot { segments: &segments, workers: &WorkerRoom::equal(2), held: &held };
    let plan = plan(&snapshot, &PlanSettings::of(Policy::Getafix));
    let none = Holdings::none();
    let (changes, garbage) = make(&plan);
    of_changes(&snapshot, &plan, &InFlight { loading: &none, named: &none }, &changes);
    of_garbage(&snapshot, &plan, &changes, &garbage);
}

fn planned(plan: &Plan) -> u32 {
    plan.holders(0)[0].worker
}

#[test]
#[should_panic(expected = "brings what is planned and not on its way")]
fn a_load_of_what_is_held_is_caught() {
    let load = |plan: &Plan| Load { segment: 0, worker: planned(plan), from: None };
    check(&[0], |plan| (Changes { load: vec![load(plan)], ..Changes::default() }, Garbage::default()));
}

#[test]
#[should_panic(expected = "is planned, and stays")]
fn a_deletion_of_what_is_planned_is_caught() {
    check(&[0, 1], |plan| (Changes { delete: vec![(0, planned(plan))], ..Changes::default() }, Garbage::default()));
}

#[test]
#[should_panic(expected = "half go at most")]
fn a_deletion_of_all_of_a_segment_is_caught() {
    check(&[0, 1], |_| (Changes { delete: vec![(0, 0), (0, 1)], ..Changes::default() }, Garbage::default()));
}

#[test]
#[should_panic(expected = "a replica goes once")]
fn a_deletion_that_comes_twice_is_caught() {
    let other = |plan: &Plan| (0, 1 - planned(plan));
    check(&[0, 1], |plan| (Changes { delete: vec![other(plan); 2], ..Changes::default() }, Garbage::default()));
}

#[test]
#[should_panic(expected = "keeps its 1 replicas")]
fn a_deletion_of_the_last_replica_is_caught() {
    check(&[1], |plan| (Changes { delete: vec![(0, 1 - planned(plan))], ..Changes::default() }, Garbage::default()));
}

#[test]
#[should_panic(expected = "goes once")]
fn garbage_that_is_deleted_already_is_caught() {
    let other = |plan: &Plan| vec![(0, 1 - planned(plan))];
    let changes = |plan: &Plan| Changes { delete: other(plan), ..Changes::default() };
    check(&[0, 1], |plan| (changes(plan), Garbage { spare: other(plan), in_the_way: Vec::new() }));
}
