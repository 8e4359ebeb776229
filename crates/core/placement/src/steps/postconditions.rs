//! What must hold of steps: a step that breaks it would fetch for nothing, or take away what is still needed.

use super::changes::{Changes, InFlight};
use super::garbage::Garbage;
use crate::{Plan, Snapshot};

/// Loads bring what is planned and not there; deletions take what is not planned, and leave enough.
pub(super) fn of_changes(snapshot: &Snapshot<'_>, plan: &Plan, flight: &InFlight<'_>, changes: &Changes) {
    for load in &changes.load {
        let is_new = !snapshot.held.holds(load.segment, load.worker) && !flight.loading.holds(load.segment, load.worker);
        assert!(is_new && plan.holds(load.segment, load.worker), "{load:?} brings what is planned and not on its way");
    }
    let once = changes.delete.windows(2).all(|pair| pair[0].0 < pair[1].0);
    assert!(once, "at most one replica of a segment goes, and segments ascend");
    for &(segment, worker) in &changes.delete {
        let least = snapshot.segments[segment as usize].minimum.max(1) as usize;
        assert!(!plan.holds(segment, worker), "segment {segment} at worker {worker} is planned, and stays");
        assert!(!flight.named.holds(segment, worker), "segment {segment} at worker {worker} is named by a table, and stays");
        assert!(snapshot.held.of(segment).len() > least, "segment {segment} keeps its {least} replicas");
    }
}

/// What goes for bytes is there, is not planned and does not go already.
pub(super) fn of_garbage(snapshot: &Snapshot<'_>, plan: &Plan, changes: &Changes, garbage: &Garbage) {
    for &(segment, worker) in garbage.spare.iter().chain(&garbage.in_the_way) {
        assert!(snapshot.held.holds(segment, worker), "segment {segment} at worker {worker} is there to go");
        assert!(!plan.holds(segment, worker), "segment {segment} at worker {worker} is planned, and stays");
        let goes = changes.delete.binary_search(&(segment, worker)).is_ok();
        assert!(!goes, "segment {segment} at worker {worker} goes once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Holdings, Load, PlanSettings, Policy, SegmentDemand, WorkerRoom, plan};

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
    #[should_panic(expected = "at most one replica of a segment goes")]
    fn two_deletions_of_a_segment_are_caught() {
        check(&[0, 1], |_| (Changes { delete: vec![(0, 0), (0, 1)], ..Changes::default() }, Garbage::default()));
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
}
