//! From what is held to what is planned: lazily, and never breaking before making.

use forebay_placement::{
    Candidate, Changes, Garbage, Holdings, InFlight, Load, Pick, PlanSettings, Replica, Snapshot, Storage, WorkerRoom, changes,
    collect, garbage, pick, plan,
};
use proptest::prelude::*;

use crate::support::of_counts;

/// One segment on worker 0 of two by plan, and held as given.
fn step(held: &[u32], loading: &[u32], named: &[u32]) -> Changes {
    let segments = of_counts(&[10]);
    let workers = WorkerRoom::equal(2).into_iter().map(|room| WorkerRoom { capacity: Some(10), ..room }).collect::<Vec<_>>();
    let on = |workers: &[u32]| Holdings::from_pairs(1, workers.iter().map(|worker| (0, *worker)));
    let planned = plan(&Snapshot { segments: &segments, workers: &workers, held: &on(&[0]) }, &PlanSettings::default());
    assert!(planned.holds(0, 0) && planned.replicas == 1);
    let held = on(held);
    let snapshot = Snapshot { segments: &segments, workers: &workers, held: &held };
    changes(&snapshot, &planned, &InFlight { loading: &on(loading), named: &on(named) })
}

#[test]
fn a_replica_leaves_when_its_successor_is_there() {
    assert_eq!(
        step(&[1], &[], &[]),
        Changes { load: vec![Load { segment: 0, worker: 0, from: Some(1) }], keep: vec![(0, 1)], ..Changes::default() }
    );
    assert_eq!(step(&[1], &[0], &[]), Changes { keep: vec![(0, 1)], ..Changes::default() }, "it is loading");
    assert_eq!(step(&[0, 1], &[], &[1]), Changes { keep: vec![(0, 1)], ..Changes::default() }, "a client's table names it");
    assert_eq!(step(&[0, 1], &[], &[0]), Changes { delete: vec![(0, 1)], ..Changes::default() });
    assert_eq!(step(&[], &[], &[]), Changes { load: vec![Load { segment: 0, worker: 0, from: None }], ..Changes::default() });
}

#[test]
fn what_was_everywhere_and_is_read_no_more_is_held_once_after_two_runs() {
    let segments = of_counts(&[10]);
    let workers: Vec<_> = WorkerRoom::equal(4).into_iter().map(|room| WorkerRoom { capacity: Some(10), ..room }).collect();
    let on = |workers: &[u32]| Holdings::from_pairs(1, workers.iter().map(|worker| (0, *worker)));
    let (none, mut holders, mut runs) = (Holdings::none(), vec![0, 1, 2, 3], Vec::new());
    while holders.len() > 1 && runs.len() < 4 {
        let held = on(&holders);
        let snapshot = Snapshot { segments: &segments, workers: &workers, held: &held };
        let planned = plan(&snapshot, &PlanSettings::default());
        assert_eq!(planned.replicas, 1);
        let changes = changes(&snapshot, &planned, &InFlight { loading: &none, named: &none });
        assert_eq!(changes.load, []);
        holders.retain(|worker| !changes.delete.contains(&(0, *worker)));
        runs.push(changes.delete.len());
    }
    assert_eq!(runs, [2, 1]);
}

proptest! {
    // Each case makes a plan with all its repacking.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn steps_are_lazy_and_make_before_they_break(
        counts in prop::collection::vec(0u64..50, 1..20),
        workers in 1u32..6,
        held in prop::collection::vec((0u32..20, 0u32..6), 0..50),
        loading in prop::collection::vec((0u32..20, 0u32..6), 0..10),
        named in prop::collection::vec((0u32..20, 0u32..6), 0..10),
        minimum in 0u32..3,
    ) {
        let mut segments = of_counts(&counts);
        segments.iter_mut().for_each(|segment| segment.minimum = minimum);
        let of = |pairs: Vec<(u32, u32)>| Holdings::from_pairs(counts.len(), pairs.into_iter().filter(|(_, worker)| *worker < workers));
        let (held, loading, named) = (of(held), of(loading), of(named));
        let rooms = WorkerRoom::equal(workers);
        let snapshot = Snapshot { segments: &segments, workers: &rooms, held: &held };
        let plan = plan(&snapshot, &PlanSettings::default());
        let changes = changes(&snapshot, &plan, &InFlight { loading: &loading, named: &named });
        let mut deleted = vec![0; counts.len()];
        for (segment, worker) in &changes.delete {
            deleted[*segment as usize] += 1;
            prop_assert!(held.holds(*segment, *worker) && !plan.holds(*segment, *worker));
            prop_assert!(!named.holds(*segment, *worker), "a client may still ask it");
            prop_assert!(plan.holders(*segment).iter().all(|share| held.holds(*segment, share.worker)), "a successor is loading");
        }
        for (segment, deleted) in (0..).zip(deleted) {
            prop_assert!(deleted <= (held.of(segment).len() / 2).max(1), "half of a segment's replicas a run, or one");
            let left = held.of(segment).len() - deleted;
            prop_assert!(left >= held.of(segment).len().min(minimum.max(1) as usize));
        }
        for load in &changes.load {
            prop_assert!(!held.holds(load.segment, load.worker) && !loading.holds(load.segment, load.worker));
            prop_assert!(load.from.is_none_or(|from| held.holds(load.segment, from)));
        }
        let all = changes.delete.len() + changes.keep.len();
        prop_assert_eq!(all, held.pairs().filter(|(segment, worker)| !plan.holds(*segment, *worker)).count());
    }

    #[test]
    fn garbage_collection_ends_the_pressure_or_takes_all_it_may(
        replicas in prop::collection::vec((1u64..50, 0u64..5, 0u64..9, any::<bool>()), 0..30),
        limit in 0u64..1000,
    ) {
        let replicas: Vec<Replica> = (0..).zip(replicas).map(|(segment, (bytes, share, count, stays))| Replica { segment, bytes, share, count, stays }).collect();
        let dropped = garbage(&replicas, limit, 0.8);
        let gone = |replica: &Replica| dropped.contains(&replica.segment);
        let left: u64 = replicas.iter().filter(|replica| !gone(replica)).map(|replica| replica.bytes).sum();
        prop_assert!(!replicas.iter().any(|replica| replica.stays && gone(replica)));
        prop_assert!(left <= limit * 8 / 10 || replicas.iter().all(|replica| replica.stays || gone(replica)));
        if let Some(last) = dropped.last() {
            prop_assert!(left + replicas[*last as usize].bytes > limit * 8 / 10, "the last one was needed");
        }
        let rank = |replica: &Replica| (replica.share, replica.count);
        let most = replicas.iter().filter(|replica| gone(replica)).map(rank).max();
        prop_assert!(replicas.iter().filter(|replica| !replica.stays && !gone(replica)).all(|replica| Some(rank(replica)) >= most));
    }
}

/// How often each candidate is picked in 10,000 reads.
fn picked(how: Pick, candidates: &[Candidate]) -> Vec<f64> {
    let mut times = vec![0.0; candidates.len()];
    let mut random = 1u64;
    for _ in 0..10_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let picked = pick(how, candidates, random.rotate_left(29) ^ (random >> 7)).expect("there are candidates");
        times[picked] += 1e-4;
    }
    times
}

fn candidates(of: &[(u32, Option<u32>)]) -> Vec<Candidate> {
    of.iter().map(|(weight, queue)| Candidate { weight: *weight, queue: *queue }).collect()
}

#[test]
fn without_queues_the_table_decides() {
    for how in [Pick::TwoChoices, Pick::Table] {
        for queue in [None, Some(3)] {
            let times = picked(how, &candidates(&[(70, queue), (20, queue), (10, queue)]));
            for (time, part) in times.iter().zip([0.7, 0.2, 0.1]) {
                assert!((time - part).abs() < 0.02, "{how:?}: {times:?}");
            }
        }
    }
}

#[test]
fn a_slow_worker_loses_its_traffic_at_once() {
    let times = picked(Pick::TwoChoices, &candidates(&[(80, Some(40)), (10, Some(1)), (10, Some(1))]));
    assert_eq!(times[0], 0.0, "any two have a faster one: {times:?}");
}

#[test]
fn one_that_was_never_heard_of_goes_before_one_that_has_not_answered() {
    let times = picked(Pick::TwoChoices, &candidates(&[(50, Some(100)), (50, None)]));
    assert_eq!(times[0], 0.0, "it may never answer: {times:?}");
    let times = picked(Pick::TwoChoices, &candidates(&[(50, Some(0)), (50, None)]));
    assert!((times[0] - 0.5).abs() < 0.02, "both are idle as far as is known: {times:?}");
}

#[test]
fn random_and_shortest_queue() {
    let some = candidates(&[(98, Some(5)), (1, Some(2)), (1, Some(2))]);
    assert!(picked(Pick::Random, &some).iter().all(|time| (time - 1.0 / 3.0).abs() < 0.02));
    let shortest = picked(Pick::ShortestQueue, &some);
    assert!(shortest[0] == 0.0 && shortest[1] > 0.0 && shortest[2] > 0.0, "{shortest:?}");
    for how in [Pick::TwoChoices, Pick::Table, Pick::Random, Pick::ShortestQueue] {
        assert_eq!(pick(how, &[], 5), None);
        assert_eq!(pick(how, &some[..1], 5), Some(0));
        assert!(picked(how, &candidates(&[(0, None), (0, None)])).iter().all(|time| *time > 0.4));
    }
}

/// Segment 0 on worker 0 by plan; 1 and 2 aren't read any more. What is collected at 80 % of four on worker 1.
fn collected(held: &[(u32, u32)], named: &[(u32, u32)], used: u64) -> Garbage {
    let mut segments = of_counts(&[10, 0, 0]);
    segments.iter_mut().for_each(|segment| segment.bytes = 1);
    let mut workers = WorkerRoom::equal(2);
    workers.iter_mut().for_each(|worker| worker.capacity = Some(10));
    let of = |pairs: &[(u32, u32)]| Holdings::from_pairs(3, pairs.iter().copied());
    let planned = plan(&Snapshot { segments: &segments, workers: &workers, held: &of(&[(0, 0)]) }, &PlanSettings::default());
    let (held, named, none) = (of(held), of(named), Holdings::none());
    let snapshot = Snapshot { segments: &segments, workers: &workers, held: &held };
    let flight = InFlight { loading: &none, named: &named };
    let changes = Changes { delete: Vec::new(), ..changes(&snapshot, &planned, &flight) };
    let storage =
        [Storage { limit: 4, used: held.pairs().filter(|(_, worker)| *worker == 0).count() as u64 }, Storage { limit: 4, used }];
    collect(&snapshot, &planned, &changes, &flight, &storage, 0.8)
}

#[test]
fn garbage_is_spare_unnamed_and_only_under_pressure() {
    let two_each = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let nothing = Garbage::default();
    assert_eq!(collected(&two_each, &[], 3), nothing, "used by 3 of 4, of which 80 % are 3");
    assert_eq!(collected(&two_each, &[], 4), Garbage { spare: vec![(1, 1)], ..nothing.clone() }, "the least popular first");
    assert_eq!(collected(&two_each, &[(1, 1)], 4), Garbage { spare: vec![(0, 1)], ..nothing.clone() }, "a table names the other");
    assert_eq!(collected(&[(0, 0), (1, 1), (2, 1)], &[], 4), nothing, "last ones stay while nobody needs their room");
}

#[test]
fn what_is_loaded_finds_room_even_where_last_replicas_are() {
    // Segment 0 is to be loaded to worker 0, which is full of what nobody reads; a table still names it.
    let full = [(0, 1), (1, 0), (2, 0)];
    let segments: Vec<_> =
        of_counts(&[10, 0, 0]).into_iter().map(|it| forebay_placement::SegmentDemand { bytes: 2, ..it }).collect();
    let workers: Vec<_> = WorkerRoom::equal(2).into_iter().map(|room| WorkerRoom { capacity: Some(10), ..room }).collect();
    let of = |pairs: &[(u32, u32)]| Holdings::from_pairs(3, pairs.iter().copied());
    let planned = plan(&Snapshot { segments: &segments, workers: &workers, held: &of(&[(0, 0)]) }, &PlanSettings::default());
    let (held, named, none) = (of(&full), of(&[(1, 0)]), Holdings::none());
    let snapshot = Snapshot { segments: &segments, workers: &workers, held: &held };
    let flight = InFlight { loading: &none, named: &named };
    let changes = changes(&snapshot, &planned, &flight);
    assert_eq!(changes.load.len(), 1);
    let storage = [Storage { limit: 4, used: 4 }, Storage { limit: 40, used: 2 }];
    let garbage = collect(&snapshot, &planned, &changes, &flight, &storage, 0.8);
    assert_eq!(garbage, Garbage { spare: vec![], in_the_way: vec![(1, 0)] }, "one makes room");
}
