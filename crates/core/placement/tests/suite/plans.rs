//! What holds of every plan, whatever the policy.

use std::collections::{BTreeSet, HashMap};

use forebay_placement::{
    Concurrency, Holdings, Plan, PlanSettings, Policy, Reason, SegmentDemand, Snapshot, Unsatisfied, WorkerRoom, plan,
};
use proptest::prelude::*;

use crate::support::{of_counts, planned};

/// Those that give no worker more than its capacity.
const PACKING: [Policy; 6] =
    [Policy::Getafix, Policy::GetafixPaper, Policy::FirstFit, Policy::LargestFit, Policy::BestFit, Policy::Repack];
const BASELINES: [Policy; 3] = [
    Policy::Uniform { replicas: 1.5 },
    Policy::Scarlett { concurrency: Concurrency::Peak, delta: 1, budget: None },
    Policy::Scarlett { concurrency: Concurrency::Mean, delta: 0, budget: Some(12) },
];

fn settings(policy: Policy, seed: u64) -> PlanSettings {
    PlanSettings { policy, seed, iterations: 60, ..PlanSettings::default() }
}

/// A cluster in any state: equal or unequal workers, tight or wide, with holdings from an earlier time.
#[derive(Clone, Debug)]
struct Cluster {
    segments: Vec<SegmentDemand>,
    workers: Vec<WorkerRoom>,
    held: Holdings,
}

impl Cluster {
    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { segments: &self.segments, workers: &self.workers, held: &self.held }
    }
}

fn segment() -> impl Strategy<Value = SegmentDemand> {
    let count = prop_oneof![Just(0), 1u64..20, 1u64..400];
    (count, 1u64..20, 0u32..4, 0u32..3, 0u32..30).prop_map(|(count, bytes, minimum, dataset, order)| SegmentDemand {
        count,
        bytes,
        minimum,
        dataset,
        order,
        concurrent_peak: count as f64 / 10.0,
        concurrent_mean: count as f64 / 50.0,
    })
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let worker = (prop_oneof![Just(None), (0u64..300).prop_map(Some)], 1u32..4, prop_oneof![Just(u64::MAX), 5u64..200], 0u32..8);
    let worker = worker.prop_map(|(capacity, speed, bytes, host)| WorkerRoom {
        capacity,
        speed: f64::from(speed),
        bytes,
        host,
        domain: host / 2,
    });
    let workers = prop_oneof![(1u32..10).prop_map(WorkerRoom::equal), prop::collection::vec(worker, 1..10)];
    let held = prop::collection::vec((0u32..40, 0u32..12), 0..60);
    (prop::collection::vec(segment(), 0..40), workers, held).prop_map(|(segments, workers, held)| {
        let held = Holdings::from_pairs(segments.len(), held);
        Cluster { segments, workers, held }
    })
}

/// Pieces whose segment is split, as edges: no path leads back to where it began.
fn is_forest(plan: &Plan, segments: usize) -> bool {
    let mut roots: Vec<usize> = (0..segments + plan.assignment.len()).collect();
    fn root(roots: &mut [usize], mut node: usize) -> usize {
        while roots[node] != node {
            node = roots[node];
        }
        node
    }
    for (worker, bag) in plan.assignment.iter().enumerate() {
        for piece in bag.iter().filter(|piece| piece.count > 0) {
            let (one, other) = (root(&mut roots, piece.segment as usize), root(&mut roots, segments + worker));
            if one == other {
                return false;
            }
            roots[one] = other;
        }
    }
    true
}

fn check(cluster: &Cluster, plan: &Plan) -> Result<(), TestCaseError> {
    let mut pieces = 0;
    for (worker, (bag, room)) in plan.assignment.iter().zip(&cluster.workers).enumerate() {
        let bytes: u64 = bag.iter().map(|piece| cluster.segments[piece.segment as usize].bytes).sum();
        prop_assert!(bytes <= room.bytes, "worker {} holds {} bytes of {}", worker, bytes, room.bytes);
        let mut segments: Vec<u32> = bag.iter().map(|piece| piece.segment).collect();
        segments.dedup();
        prop_assert_eq!(segments.len(), bag.len(), "a segment is on a worker once");
        pieces += bag.len() as u64;
    }
    prop_assert_eq!(pieces, plan.replicas);
    let missing: HashMap<u32, Unsatisfied> = plan.unsatisfied.iter().map(|missing| (missing.segment, *missing)).collect();
    for (segment, demand) in (0..).zip(&cluster.segments) {
        let holders = plan.holders(segment);
        let placed: u64 = holders.iter().map(|share| share.count).sum();
        prop_assert_eq!(placed + missing.get(&segment).map_or(0, |missing| missing.count), demand.count, "counts are kept");
        for share in holders {
            let piece = plan.assignment[share.worker as usize].iter().find(|piece| piece.segment == segment);
            prop_assert_eq!(piece.map(|piece| piece.count), Some(share.count));
        }
        let routing = plan.routing(segment);
        prop_assert_eq!(routing.iter().map(|(_, percent)| percent).sum::<u32>(), if holders.is_empty() { 0 } else { 100 });
        for (share, (worker, percent)) in holders.iter().zip(routing) {
            prop_assert_eq!(share.worker, worker);
            if placed > 0 {
                prop_assert!((share.count as f64 * 100.0 / placed as f64 - f64::from(percent)).abs() < 1.0);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn plans_are_sound(cluster in cluster(), seed in 0u64..1000) {
        for policy in PACKING.into_iter().chain(BASELINES) {
            let plan = plan(&cluster.snapshot(), &settings(policy, seed));
            check(&cluster, &plan).map_err(|error| TestCaseError::fail(format!("{policy}: {error}")))?;
        }
    }

    #[test]
    fn no_worker_is_given_more_than_its_capacity(cluster in cluster(), seed in 0u64..1000) {
        for policy in PACKING {
            let plan = plan(&cluster.snapshot(), &settings(policy, seed));
            for (worker, capacity) in (0..).zip(&plan.capacity) {
                prop_assert!(plan.load(worker) <= *capacity, "{}: worker {} {} of {}", policy, worker, plan.load(worker), capacity);
            }
        }
    }

    #[test]
    fn a_plan_is_a_function_of_snapshot_and_seed(cluster in cluster(), seed in 0u64..1000) {
        for policy in PACKING.into_iter().chain(BASELINES) {
            prop_assert_eq!(plan(&cluster.snapshot(), &settings(policy, seed)), plan(&cluster.snapshot(), &settings(policy, seed)));
        }
    }

    #[test]
    fn pieces_form_a_forest(mut cluster in cluster(), seed in 0u64..1000) {
        for segment in &mut cluster.segments {
            segment.minimum = 0;
        }
        for policy in PACKING {
            let plan = plan(&cluster.snapshot(), &settings(policy, seed));
            prop_assert!(is_forest(&plan, cluster.segments.len()), "{}", policy);
            let counted = cluster.segments.iter().filter(|segment| segment.count > 0).count();
            prop_assert!(plan.replicas < (counted + cluster.workers.len()).max(1) as u64);
        }
    }

    #[test]
    fn never_more_replicas_than_best_fit(counts in prop::collection::vec(0u64..300, 1..50), workers in 1u32..12, seed in 0u64..1000) {
        let segments = of_counts(&counts);
        let best_fit = planned(&segments, workers, &settings(Policy::BestFit, seed));
        for policy in [Policy::Repack, Policy::Getafix] {
            let plan = planned(&segments, workers, &settings(policy, seed));
            prop_assert!(plan.replicas <= best_fit.replicas, "{}: {} and {}", policy, plan.replicas, best_fit.replicas);
            prop_assert!(plan.unsatisfied.is_empty());
        }
    }

    #[test]
    fn no_plan_is_below_its_lower_bound(mut cluster in cluster(), seed in 0u64..1000) {
        cluster.workers.iter_mut().for_each(|worker| worker.bytes = u64::MAX);
        for policy in PACKING {
            let plan = plan(&cluster.snapshot(), &settings(policy, seed));
            if plan.unsatisfied.is_empty() {
                prop_assert!(plan.replicas >= plan.lower_bound, "{}: {} below {}", policy, plan.replicas, plan.lower_bound);
            }
        }
    }

    #[test]
    fn a_minimum_of_replicas_is_on_different_hosts(cluster in cluster(), seed in 0u64..1000) {
        for policy in PACKING {
            let plan = plan(&cluster.snapshot(), &settings(policy, seed));
            for (segment, demand) in (0..).zip(&cluster.segments) {
                let mut hosts: Vec<u32> = plan.holders(segment).iter().map(|share| cluster.workers[share.worker as usize].host).collect();
                hosts.sort_unstable();
                hosts.dedup();
                let reported = plan.unsatisfied.iter().find(|missing| missing.segment == segment).map_or(0, |missing| missing.replicas);
                let least = demand.minimum.max(u32::from(demand.count > 0));
                if least > 1 {
                    prop_assert!(hosts.len() as u32 + reported >= least, "{}: segment {}", policy, segment);
                }
            }
        }
    }
}

#[test]
fn counterexamples_to_the_papers_proof_cost_no_replica_more_than_they_must() {
    for (counts, workers, best_fit, least) in [
        (&[3, 3, 2, 2, 2, 2][..], 2, 7, 6),
        (&[4, 4, 4, 3, 3], 3, 7, 6),
        (&[4, 4, 3, 3, 3, 3], 2, 7, 6),
        (&[4, 4, 4, 4, 3, 3], 4, 8, 7),
    ] {
        let segments = of_counts(counts);
        assert_eq!(planned(&segments, workers, &PlanSettings::of(Policy::BestFit)).replicas, best_fit, "{counts:?}");
        assert_eq!(planned(&segments, workers, &PlanSettings::of(Policy::Repack)).replicas, least, "{counts:?}");
        assert!(planned(&segments, workers, &PlanSettings::default()).replicas <= least, "{counts:?}");
    }
}

#[test]
fn slower_workers_are_given_less() {
    let segments = of_counts(&[10; 30]);
    let workers: Vec<WorkerRoom> = [1.0, 1.0, 0.5, 0.5]
        .iter()
        .zip(0..)
        .map(|(speed, domain)| WorkerRoom { capacity: None, speed: *speed, bytes: u64::MAX, host: domain, domain })
        .collect();
    let settings = PlanSettings { slack: 0.0, ..PlanSettings::default() };
    let plan = plan(&Snapshot { segments: &segments, workers: &workers, held: &Holdings::none() }, &settings);
    assert_eq!(plan.capacity, [100, 100, 50, 50]);
    assert_eq!((0..4).map(|worker| plan.load(worker)).collect::<Vec<_>>(), [100, 100, 50, 50]);
    assert_eq!(plan.replicas, 30);
}

#[test]
fn what_finds_no_room_is_reported() {
    let segments = [
        SegmentDemand { count: 9, bytes: 10, ..SegmentDemand::default() },
        SegmentDemand { count: 5, bytes: 10, ..SegmentDemand::default() },
        SegmentDemand { count: 0, bytes: 1, minimum: 2, ..SegmentDemand::default() },
    ];
    let rooms = |capacity, bytes, domain| WorkerRoom { capacity: Some(capacity), speed: 1.0, bytes, host: domain, domain };
    let of = |workers: &[WorkerRoom]| {
        plan(&Snapshot { segments: &segments, workers, held: &Holdings::none() }, &PlanSettings::default()).unsatisfied
    };
    let copies = Unsatisfied { segment: 2, count: 0, replicas: 1, reason: Reason::Domains };
    assert_eq!(of(&[rooms(9, 100, 0), rooms(9, 100, 1)]), []);
    assert_eq!(of(&[rooms(9, 100, 0), rooms(9, 100, 0)]), [copies]);
    let short = Unsatisfied { segment: 1, count: 2, replicas: 0, reason: Reason::Capacity };
    assert_eq!(of(&[rooms(9, 100, 0), rooms(3, 100, 1)]), [short]);
    let no_bytes = Unsatisfied { segment: 1, count: 5, replicas: 1, reason: Reason::Bytes };
    assert_eq!(of(&[rooms(9, 12, 0), rooms(9, 2, 1)]), [no_bytes]);
    assert_eq!(of(&[]).len(), 3);
}

#[test]
fn copies_that_find_no_room_in_another_rack_are_on_another_host() {
    let segments = vec![SegmentDemand { count: 10, bytes: 10, minimum: 2, ..SegmentDemand::default() }; 3];
    let room = |bytes, host, domain| WorkerRoom { capacity: Some(1000), speed: 1.0, bytes, host, domain };
    let places = |workers: &[WorkerRoom], policy, of: fn(&WorkerRoom) -> u32| {
        let plan = plan(&Snapshot { segments: &segments, workers, held: &Holdings::none() }, &settings(policy, 1));
        assert_eq!(plan.unsatisfied, [], "{policy}");
        let places = |segment| -> BTreeSet<u32> {
            plan.holders(segment).iter().map(|share| of(&workers[share.worker as usize])).collect()
        };
        (0..3).map(|segment| places(segment).len()).collect::<Vec<_>>()
    };
    for policy in PACKING {
        // The first host has two workers, the second rack is full, or has room for one segment, or for all.
        let of = |bytes| [room(1000, 0, 0), room(1000, 0, 0), room(1000, 1, 0), room(bytes, 2, 1)];
        assert_eq!(places(&of(0), policy, |room| room.host), [2, 2, 2], "{policy}");
        assert_eq!(places(&of(10), policy, |room| room.domain).iter().sum::<usize>(), 4, "{policy}");
        assert_eq!(places(&of(1000), policy, |room| room.domain), [2, 2, 2], "{policy}");
    }
}

#[test]
fn what_no_capacity_is_left_for_is_on_one_worker_all_the_same() {
    let rooms: Vec<WorkerRoom> = WorkerRoom::equal(2).into_iter().map(|room| WorkerRoom { capacity: Some(5), ..room }).collect();
    let segments = of_counts(&[5, 5, 3]);
    let plan = plan(&Snapshot { segments: &segments, workers: &rooms, held: &Holdings::none() }, &PlanSettings::default());
    assert_eq!(plan.unsatisfied, [Unsatisfied { segment: 2, count: 3, replicas: 0, reason: Reason::Capacity }]);
    assert_eq!(plan.routing(2).len(), 1);
}

#[test]
fn copies_share_the_work_of_a_segment() {
    let segments = vec![SegmentDemand { count: 100, bytes: 1, minimum: 2, ..SegmentDemand::default() }; 4];
    let plan = planned(&segments, 4, &PlanSettings::default());
    for segment in 0..4 {
        assert_eq!(plan.holders(segment).iter().map(|share| share.count).collect::<Vec<_>>(), [50, 50]);
    }
}

#[test]
fn what_is_read_together_lies_apart() {
    // Counts fall with age, as in the paper's workload, so that Best Fit puts neighbours side by side.
    let segments: Vec<SegmentDemand> = (0..120)
        .map(|order| SegmentDemand { count: 1200 / (u64::from(order) / 4 + 2), bytes: 64, order, ..SegmentDemand::default() })
        .collect();
    let crowd = |policy| {
        let plan = planned(&segments, 15, &PlanSettings::of(policy));
        let windows = (0..108u32).map(|start| {
            let mut on = [0; 15];
            (start..start + 12).for_each(|segment| on[plan.holders(segment)[0].worker as usize] += 1);
            on.into_iter().max().unwrap()
        });
        f64::from(windows.sum::<u32>()) / 108.0
    };
    let (default, paper) = (crowd(Policy::Getafix), crowd(Policy::GetafixPaper));
    assert!(default <= 1.6, "{default} of 12 neighbours on one worker; Best Fit: {paper}");
    assert!(default < paper);
}

#[test]
fn a_moved_part_goes_where_most_of_it_is() {
    // Best Fit numbers its workers anew whenever counts change their order; matching finds the old ones.
    let mut segments = of_counts(&[50, 40, 30]);
    segments.iter_mut().for_each(|segment| segment.bytes = 10);
    let held = Holdings::from_pairs(3, [(0, 2), (1, 0), (2, 1)]);
    let settings = PlanSettings { policy: Policy::GetafixPaper, ..PlanSettings::default() };
    let workers: Vec<WorkerRoom> =
        WorkerRoom::equal(3).into_iter().map(|room| WorkerRoom { capacity: Some(50), ..room }).collect();
    let plan = plan(&Snapshot { segments: &segments, workers: &workers, held: &held }, &settings);
    assert_eq!(plan.bytes_to_move, 0);
    assert!(plan.holds(0, 2) && plan.holds(1, 0) && plan.holds(2, 1));
}

proptest! {
    // Each case is many plans.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_is_placed_comes_to_rest_when_nothing_changes(counts in prop::collection::vec(1u64..300, 1..40), workers in 1u32..10) {
        let mut segments = of_counts(&counts);
        segments.iter_mut().for_each(|segment| segment.bytes = 64);
        let rooms = WorkerRoom::equal(workers);
        let again =
            |held: &Holdings, policy| plan(&Snapshot { segments: &segments, workers: &rooms, held }, &settings(policy, 1));
        for policy in [Policy::Repack, Policy::GetafixPaper] {
            let held = planned(&segments, workers, &settings(policy, 1)).holdings();
            prop_assert_eq!(again(&held, policy).bytes_to_move, 0, "{}", policy);
        }
        // The default moves a few at a time as long as that takes apart what is read together.
        let mut held = planned(&segments, workers, &settings(Policy::Getafix, 1)).holdings();
        let mut runs = 0;
        loop {
            let next = again(&held, Policy::Getafix);
            if next.bytes_to_move == 0 {
                break;
            }
            (held, runs) = (next.holdings(), runs + 1);
            prop_assert!(runs < 50, "still moving");
        }
    }
}

proptest! {
    // Each case makes a plan with all its repacking, twice or more.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_budget_is_kept_and_takes_nothing_from_the_plan(
        cluster in prop::collection::vec((1u64..400, 1u64..20), 2..40),
        workers in 2u32..9,
        budget in 1.0f64..4.0,
        seed in 0u64..4,
    ) {
        let segments: Vec<SegmentDemand> =
            cluster.iter().map(|(count, bytes)| SegmentDemand { count: *count, bytes: *bytes, ..SegmentDemand::default() }).collect();
        let (rooms, none) = (WorkerRoom::equal(workers), Holdings::none());
        let snapshot = Snapshot { segments: &segments, workers: &rooms, held: &none };
        let bytes = |plan: &Plan| -> u64 {
            (0..segments.len() as u32).map(|at| plan.holders(at).len() as u64 * segments[at as usize].bytes).sum()
        };
        let least = plan(&snapshot, &settings(Policy::Getafix, seed));
        let more = plan(&snapshot, &PlanSettings { budget, ..settings(Policy::Getafix, seed) });
        let one_each: u64 = segments.iter().map(|segment| segment.bytes).sum();
        // What is split more often than its count needs, as what is left of a worker's room calls for, is beyond any budget.
        let splits = workers as u64 * 20;
        prop_assert!(bytes(&more) as f64 <= (one_each as f64 * budget).max(bytes(&least) as f64) + splits as f64);
        for (segment, demand) in (0u32..).zip(&segments) {
            prop_assert_eq!(more.holders(segment).iter().map(|share| share.count).sum::<u64>(), demand.count);
        }
        prop_assert!(more.unsatisfied.is_empty(), "raised minima are nobody's demand");
    }
}

#[test]
fn the_budget_of_two_copies_goes_where_queues_are_longest() {
    let counts: Vec<u64> = (1..=50).map(|rank| 5_000 / rank).collect();
    let settings = PlanSettings { budget: 2.0, ..PlanSettings::default() };
    let segments: Vec<SegmentDemand> =
        of_counts(&counts).into_iter().map(|segment| SegmentDemand { bytes: 64 << 20, ..segment }).collect();
    let plan = planned(&segments, 10, &settings);
    assert!((95..=100).contains(&plan.replicas), "{}", plan.replicas);
    assert!(plan.holders(0).len() > plan.holders(49).len());
}
