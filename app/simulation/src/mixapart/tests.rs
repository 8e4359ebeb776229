//! MixApart's example, where tasks run, rates that are learned, and tiers that are too small.

use std::collections::HashSet;

use forebay_eviction::Claims;
use forebay_scheduling::{
    BlockRange, JobId, Schedule, ScheduleSettings, TaskId, TaskInput, TaskSpec, ahead_bytes_max, room_bytes,
};
use forebay_types::{MountId, OperationId, PAGES_PER_BLOCK, PageRun, SegmentId, WorkerId};

use super::bars::crossing_at;
use super::tiers::{Counts, Tiers, remembered_by};
use super::{MixApartJob, MixApartSettings, mixapart, mixapart_batch, sustained};
use crate::random::Random;
use crate::workload::Micros;

/// Figure 1's cluster at a tenth: 20 s tasks of 64 MB, 80 % of it cached, behind 1 Gbit/s.
fn tenth() -> MixApartSettings {
    MixApartSettings { bandwidth_bytes_per_sec: 1e9 / 8.0, job_tasks_max: 10, secs: 2_000.0, ..MixApartSettings::default() }
}

#[test]
fn the_papers_example_sustains_the_models_number_of_tasks() {
    let found = sustained(&tenth());
    let ratio = found.simulated / found.model;
    assert!((0.95..=1.05).contains(&ratio), "{found:?}");
}

#[test]
fn a_run_is_a_function_of_its_settings() {
    let settings = MixApartSettings { offered_tasks: 100.0, workers: 100, secs: 400.0, ..tenth() };
    assert_eq!(mixapart(&settings), mixapart(&settings));
}

#[test]
fn with_tasks_waiting_they_run_where_their_input_is() {
    let settings = MixApartSettings { offered_tasks: 10.0, workers: 4, slots: 2, ..tenth() };
    let outcome = mixapart(&settings);
    assert!(outcome.local >= 0.95, "{outcome:?}");
}

#[test]
fn the_less_a_job_reads_a_second_the_less_of_its_input_has_to_be_cached() {
    let found = crossing_at(1.0, true, 1);
    assert!((0.7..0.85).contains(&found), "{found}");
    assert!(crossing_at(6.0, true, 1) <= 0.0, "the link is faster than all slots read");
    assert!(crossing_at(1.0, false, 1) > found, "fetched by tasks more of it has to be");
}

#[test]
fn rates_are_learned_from_tasks_that_are_done() {
    let settings = MixApartSettings { offered_tasks: 50.0, workers: 100, task_secs: vec![5.0, 20.0], ..tenth() };
    let outcome = mixapart(&settings);
    assert!(outcome.rate_off < 0.001, "{outcome:?}");
    let outcome = mixapart(&MixApartSettings { spread: 0.3, ..settings });
    assert!((0.001..0.1).contains(&outcome.rate_off), "near what they do read, of tasks that differ: {outcome:?}");
}

/// 4 workers of 2 slots over 40 segments.
fn set(tier: f64, disk_tier: f64, seed: u64) -> MixApartSettings {
    let (workers, slots, working_set) = (4, 2, 40);
    MixApartSettings { offered_tasks: 5.0, workers, slots, working_set, tier, disk_tier, seed, ..tenth() }
}

#[test]
fn tiers_evict_when_and_only_when_they_are_too_small() {
    for seed in 1..=6 {
        // Each worker has room for all of the set.
        let large = mixapart(&set(4.0, 0.0, seed));
        assert_eq!((large.evicted, large.evicted_unread, large.misrouted, large.from_disk), (0, 0.0, 0, 0.0), "{large:?}");
        assert_eq!(large, mixapart(&set(4.0, 0.0, seed)));
        let small = mixapart(&set(0.5, 0.0, seed));
        assert!(small.evicted > 0 && small.from_disk <= 0.0 && small.cached < large.cached, "{small:?}");
        assert!(small.copies <= 0.5, "no more than there is room for: {small:?}");
        assert!(large.copies > 0.5 && large.copies <= 4.0, "{large:?}");
        let disk = mixapart(&set(0.5, 4.0, seed));
        assert!(disk.evicted == 0 && disk.from_disk > 0.0 && disk.cached > small.cached, "{disk:?}");
    }
}

#[test]
fn every_job_over_a_small_tier_ends() {
    for seed in 1..=6 {
        for brings_ahead in [true, false] {
            let settings = MixApartSettings { brings_ahead, ..set(0.5, 0.25 * (seed % 3) as f64, seed) };
            let job = |number: u64| MixApartJob {
                at_secs: 5.0 * number as f64,
                priority: (number % 2) as i32,
                tasks: 1 + (number * seed % 60) as u32,
                task_secs: 2.0,
                reuse: 0.0,
                first: Some(number * 7 % 40),
            };
            let jobs: Vec<MixApartJob> = (0..20).map(job).collect();
            let batch = mixapart_batch(&settings, &jobs);
            assert!(batch.job_secs.iter().all(|secs| *secs >= 2.0), "{batch:?}");
            assert!(batch.link <= 1.0, "{batch:?}");
            assert_eq!(batch, mixapart_batch(&settings, &jobs));
        }
    }
}

const MIB: u64 = 1 << 20;
const OPERATION: OperationId = OperationId(7);

/// Tiers for segments of four blocks.
fn tiers(dram: u64, disk: u64) -> Tiers {
    Tiers::new(dram * MIB, disk * MIB, 4 * PAGES_PER_BLOCK)
}

fn bring(tiers: &mut Tiers, segment: u64, ahead_for: Option<OperationId>) -> u64 {
    let missing = tiers.begin(segment);
    tiers.arrive(segment, ahead_for, 0);
    missing
}

#[test]
fn nothing_goes_while_all_of_it_fits() {
    let mut tiers = tiers(16, 0);
    for _ in 0..3 {
        (0..4).for_each(|segment| {
            bring(&mut tiers, segment, None);
        });
    }
    assert!((0..4).all(|segment| tiers.has(segment)) && tiers.gone().is_empty());
    assert_eq!((tiers.counts, tiers.begin(3)), (Counts::default(), 0));
}

#[test]
fn what_comes_beyond_the_size_takes_others_out() {
    let mut tiers = tiers(16, 0);
    (0..5).for_each(|segment| assert_eq!(bring(&mut tiers, segment, None), 4 * MIB));
    assert!(tiers.has(4) && !tiers.has(0), "the one that came first, and was not read, goes");
    assert_eq!((tiers.counts.evicted, tiers.gone().len(), tiers.begin(0)), (4, 4, 4 * MIB));
}

#[test]
fn what_is_brought_ahead_stays_until_it_is_read() {
    let mut tiers = tiers(16, 0);
    bring(&mut tiers, 0, Some(OPERATION));
    (1..9).for_each(|segment| {
        bring(&mut tiers, segment, None);
    });
    assert!(tiers.has(0));
    assert_eq!((tiers.counts.ahead, tiers.counts.unread), (4, 0));
    tiers.read(0, OPERATION);
    (11..19).for_each(|segment| {
        bring(&mut tiers, segment, None);
    });
    assert!(!tiers.has(0), "as all else from then on");
    assert_eq!(tiers.counts.unread, 0);
}

#[test]
fn what_is_brought_ahead_beyond_the_share_of_claims_can_go_unread_and_is_counted() {
    let mut tiers = tiers(16, 0);
    (0..6).for_each(|segment| {
        bring(&mut tiers, segment, Some(OPERATION));
    });
    assert_eq!((tiers.counts.ahead, tiers.counts.unread, tiers.counts.evicted), (24, 8, 8));
    tiers.ended(OPERATION, 0);
    (10..14).for_each(|segment| {
        bring(&mut tiers, segment, None);
    });
    assert_eq!(tiers.counts.unread, 24, "who does not read any more holds nothing");
}

#[test]
fn as_much_is_brought_ahead_as_claims_hold() {
    for dram_bytes in [0, 3, 64 * MIB, 100 * MIB + 1, 512 << 30] {
        let claims: Claims<(), (), Micros> = Claims::new(dram_bytes);
        assert_eq!(ahead_bytes_max(room_bytes(dram_bytes)), claims.most_bytes());
    }
}

#[test]
fn what_was_brought_ahead_of_tasks_left_before_they_began_while_others_read() {
    let (worker, job) = (WorkerId(0), JobId(OPERATION.0));
    let (mut tiers, mut schedule) = (tiers(64, 0), Schedule::new(ScheduleSettings::default()));
    schedule.worker_joined(worker, 1, room_bytes(64 * MIB));
    let input = |segment: u64| {
        let range = BlockRange { segment: SegmentId(segment.into()), pages: PageRun::new(0, 4 * PAGES_PER_BLOCK) };
        TaskInput { range, storage: MountId(1), holders: Vec::new(), routed: Vec::new() }
    };
    schedule.submit(job, 0, 64 * MIB);
    schedule.add_tasks(job, (0..40).map(|task| TaskSpec { id: TaskId(task), inputs: vec![input(task)] }).collect());
    let mut others = 100..;
    for _ in 0..40 {
        for transfer in schedule.transfers() {
            bring(&mut tiers, transfer.range.segment.0 as u64, Some(OPERATION));
            schedule.arrived(transfer.range, worker);
        }
        // As much as the tier takes.
        for other in others.by_ref().take(16) {
            bring(&mut tiers, other, None);
        }
        schedule.departed(worker, &tiers.gone());
        let started = schedule.next_task(worker).expect("tasks wait");
        assert!(started.bring.is_empty(), "its input is there");
        tiers.read(started.task.0, OPERATION);
        schedule.finished(job, started.task, true);
    }
    assert_eq!((tiers.counts.ahead, tiers.counts.unread), (160, 0));
}

#[test]
fn no_segment_is_remembered_for_another_one() {
    let blocks = (0..100).flat_map(|segment| (0..16).map(move |block| remembered_by((segment, block))));
    assert_eq!(blocks.collect::<HashSet<u32>>().len(), 1600);
}

#[test]
fn what_left_memory_is_on_disk() {
    let mut tiers = tiers(16, 32);
    (0..8).for_each(|segment| {
        bring(&mut tiers, segment, None);
    });
    assert!((0..8).all(|segment| tiers.has(segment)) && tiers.gone().is_empty());
    assert_eq!((tiers.on_disk_bytes(0), tiers.on_disk_bytes(7)), (4 * MIB, 0));
    bring(&mut tiers, 8, None);
    assert_eq!((tiers.counts.evicted, tiers.gone().len()), (4, 4), "the disk is full too");
    assert_eq!((tiers.has(0), tiers.on_disk_bytes(1)), (false, 4 * MIB));
    tiers.read(1, OPERATION);
    assert_eq!(tiers.on_disk_bytes(1), 0, "read by way of memory");
}

#[test]
fn readers_come_before_what_is_held() {
    let mut tiers = tiers(4, 0);
    bring(&mut tiers, 0, Some(OPERATION));
    assert!(tiers.has(0));
    bring(&mut tiers, 1, None);
    assert_eq!((tiers.has(0), tiers.has(1), tiers.counts.passed), (false, true, 0));
}

#[test]
fn whatever_comes_the_books_are_those_of_what_is_there() {
    for seed in 1..=20 {
        let mut random = Random::new(seed, 0);
        let mut tiers = tiers(8 + random.below(16) as u64, random.below(32) as u64);
        let mut coming = Vec::new();
        for now in 0..500 {
            let (segment, operation) = (random.below(12) as u64, OperationId(random.below(4) as u64));
            match random.below(4) {
                0 => {
                    tiers.begin(segment);
                    coming.push((segment, (random.below(2) == 0).then_some(operation)));
                }
                1 => {
                    if let Some((segment, ahead_for)) = coming.pop() {
                        tiers.arrive(segment, ahead_for, now);
                    }
                }
                2 => tiers.read(segment, operation),
                _ => tiers.ended(operation, now),
            }
            tiers.check();
        }
        let counts = tiers.counts;
        assert!(counts.unread <= counts.ahead && counts.unread <= counts.evicted, "seed {seed}: {counts:?}");
        assert_eq!(tiers.gone().len() as u64, counts.evicted, "seed {seed}");
    }
}
