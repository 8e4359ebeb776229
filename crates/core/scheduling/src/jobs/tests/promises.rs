//! What the schedule promises whatever happens: bounded transfers, the orders of jobs, no starvation.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::WorkerId;
use proptest::prelude::*;

use super::super::model::{Policy, Source, ahead_bytes_max};
use super::super::{BlockRange, JobId, Schedule, ScheduleSettings, TaskSpec};
use super::{BYTES, cluster, job, range, task};

/// Jobs of (priority, tasks' ranges); every range is of one job, so that a transfer says for whom it is.
fn jobs(tasks: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(i32, usize)>> {
    prop::collection::vec((0..3i32, tasks), 1..6)
}

fn tasks(job: u64, count: usize, holders: &[u64]) -> Vec<TaskSpec> {
    (0..count as u64).map(|at| task(at, &[job * 1_000 + at], holders)).collect()
}

fn submit(schedule: &mut Schedule, jobs: &[(i32, usize)], holders: &[u64]) {
    for (id, (priority, count)) in (0..).zip(jobs) {
        job(schedule, id, *priority, tasks(id, *count, holders));
    }
}

/// Of a job, what FIFO goes by.
fn turn(jobs: &[(i32, usize)], id: u64) -> (i32, u64) {
    (-jobs[id as usize].0, id)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_brought_ahead_of_a_job_and_those_before_it_is_bounded(
        jobs in jobs(1..20), ahead in 1..10u64, flight in 1..6u64, arrivals in prop::collection::vec(any::<bool>(), 0..80),
    ) {
        let settings = ScheduleSettings { in_flight_bytes: flight * BYTES, look_ahead_bytes: ahead * BYTES, ..ScheduleSettings::default() };
        let mut schedule = cluster(2, 2, settings);
        submit(&mut schedule, &jobs, &[]);
        // Bytes by the turn of the job that they were brought for. Nothing starts, so that all of it is ahead.
        let (mut brought, mut on_the_way) = (BTreeMap::<(i32, u64), u64>::new(), Vec::new());
        for arrives in arrivals {
            for transfer in schedule.transfers() {
                let turn = turn(&jobs, transfer.range.segment.0 as u64 / 1_000);
                *brought.entry(turn).or_default() += BYTES;
                prop_assert!(brought.range(..=turn).map(|(_, bytes)| bytes).sum::<u64>() <= ahead * BYTES);
                prop_assert_eq!(transfer.from, Source::Storage);
                on_the_way.push(transfer);
            }
            prop_assert!(schedule.arriving_bytes() <= flight * BYTES, "within the budget");
            if let (true, Some(transfer)) = (arrives, on_the_way.pop()) {
                schedule.arrived(transfer.range, transfer.to);
            }
        }
    }

    #[test]
    fn what_is_ahead_at_a_worker_is_bounded_whatever_happens_and_nothing_is_in_the_end(
        jobs in jobs(1..16), room in 1..16u64, events in prop::collection::vec((0..5u8, 0..2u64), 0..200),
    ) {
        let mut schedule = cluster(2, 2, ScheduleSettings::default());
        (0..2).for_each(|id| schedule.worker_joined(WorkerId(id), 2, room * BYTES));
        submit(&mut schedule, &jobs, &[]);
        let most = ahead_bytes_max(room * BYTES).max(BYTES);
        let (mut ahead, mut on_the_way, mut running) = (BTreeMap::<BlockRange, WorkerId>::new(), Vec::new(), Vec::new());
        let mut left: usize = jobs.iter().map(|(_, count)| count).sum();
        // Once they are over, all that can happen does.
        let afterwards = [(4, 0), (3, 0), (3, 1), (0, 0)].into_iter().cycle().take(2_000);
        for (event, worker) in events.into_iter().chain(afterwards) {
            if left == 0 {
                break;
            }
            for transfer in schedule.transfers() {
                ahead.insert(transfer.range, transfer.to);
                on_the_way.push(transfer);
            }
            for id in [WorkerId(0), WorkerId(1)] {
                let bytes = ahead.values().filter(|to| **to == id).count() as u64 * BYTES;
                prop_assert_eq!(schedule.fleet.get(id).unwrap().ahead_bytes, bytes);
                prop_assert!(bytes <= most, "{bytes} of {most}");
            }
            match event {
                3 => {
                    let Some(started) = schedule.next_task(WorkerId(worker)) else { continue };
                    ahead.remove(&range(started.job.0 * 1_000 + started.task.0));
                    on_the_way.extend(started.bring.iter().filter(|transfer| transfer.from == Source::Storage));
                    running.push((started.job, started.task));
                }
                4 => {
                    let Some((job, task)) = running.pop() else { continue };
                    schedule.finished(job, task, true);
                    left -= 1;
                }
                fate => {
                    let Some(transfer) = on_the_way.pop() else { continue };
                    match fate {
                        0 => schedule.arrived(transfer.range, transfer.to),
                        1 => schedule.failed(transfer.range, transfer.to),
                        _ => {
                            schedule.arrived(transfer.range, transfer.to);
                            schedule.evicted(transfer.range, transfer.to);
                        }
                    }
                    if fate > 0 {
                        ahead.remove(&transfer.range);
                    }
                }
            }
        }
        prop_assert_eq!((left, ahead.len()), (0, 0), "each job has ended");
    }

    #[test]
    fn fifo_brings_and_starts_by_priority_and_arrival(jobs in jobs(1..12)) {
        let mut schedule = cluster(1, 4, ScheduleSettings { in_flight_bytes: BYTES, ..ScheduleSettings::default() });
        submit(&mut schedule, &jobs, &[]);
        let mut order = Vec::new();
        while let [transfer] = schedule.transfers()[..] {
            order.push(turn(&jobs, transfer.range.segment.0 as u64 / 1_000));
            schedule.arrived(transfer.range, transfer.to);
        }
        prop_assert!(order.is_sorted(), "{order:?}");
        prop_assert_eq!(order.len(), jobs.iter().map(|(_, count)| count).sum::<usize>());
        let mut started = Vec::new();
        while let Some(assignment) = schedule.next_task(WorkerId(0)) {
            started.push(turn(&jobs, assignment.job.0));
            schedule.finished(assignment.job, assignment.task, true);
        }
        prop_assert!(started.is_sorted() && started.len() == order.len(), "{started:?}");
    }

    #[test]
    fn fair_keeps_running_tasks_and_ready_blocks_within_one(counts in prop::collection::vec(1..12usize, 1..6), slots in 1..12u32) {
        let jobs: Vec<(i32, usize)> = counts.iter().map(|count| (0, *count)).collect();
        let settings = ScheduleSettings { policy: Policy::Fair, in_flight_bytes: BYTES, ..ScheduleSettings::default() };
        let mut schedule = cluster(1, slots, settings);
        submit(&mut schedule, &jobs, &[]);
        let mut ready = vec![0; jobs.len()];
        let within_one = |counts: &[usize], of: usize, all: &[usize]| {
            // Nobody who still lacks something has less than the one that was served had.
            counts.iter().zip(all).all(|(count, all)| count == all || *count + 1 >= counts[of])
        };
        while let [transfer] = schedule.transfers()[..] {
            let of = (transfer.range.segment.0 / 1_000) as usize;
            ready[of] += 1;
            prop_assert!(within_one(&ready, of, &counts), "{ready:?} of {counts:?}");
            schedule.arrived(transfer.range, transfer.to);
        }
        prop_assert_eq!(&ready, &counts);
        let mut running = vec![0; jobs.len()];
        while let Some(assignment) = schedule.next_task(WorkerId(0)) {
            let of = assignment.job.0 as usize;
            running[of] += 1;
            prop_assert!(within_one(&running, of, &counts), "{running:?} of {counts:?}");
        }
        prop_assert_eq!(running.iter().sum::<usize>(), counts.iter().sum::<usize>().min(slots as usize));
    }

    #[test]
    fn what_some_worker_has_never_comes_from_shared_storage(jobs in jobs(1..8), holder in 0..3u64, offers in prop::collection::vec(0..3u64, 1..40)) {
        let mut schedule = cluster(3, 2, ScheduleSettings::default());
        submit(&mut schedule, &jobs, &[holder]);
        prop_assert!(schedule.transfers().is_empty());
        for worker in offers {
            let Some(assignment) = schedule.next_task(WorkerId(worker)) else { continue };
            for transfer in assignment.bring {
                prop_assert_eq!((transfer.from, transfer.to), (Source::Peer(WorkerId(holder)), WorkerId(worker)));
            }
            prop_assert_eq!(assignment.local_bytes > 0, worker == holder);
        }
        prop_assert_eq!(schedule.arriving_bytes(), 0);
    }

    #[test]
    fn the_first_in_line_is_served_after_so_many_others(patience in 0..6u32, others in 10..40usize, fair in any::<bool>()) {
        let policy = if fair { Policy::Fair } else { Policy::Fifo };
        let mut schedule = cluster(2, 1, ScheduleSettings { policy, patience, ..ScheduleSettings::default() });
        job(&mut schedule, 0, 0, tasks(0, 1, &[1]));
        job(&mut schedule, 1, 0, tasks(1, others, &[0]));
        // Worker 1, which has the first job's input, never asks.
        let mut before = 0;
        while let Some(assignment) = schedule.next_task(WorkerId(0)) {
            schedule.finished(assignment.job, assignment.task, true);
            if assignment.job == JobId(0) {
                break;
            }
            before += 1;
        }
        prop_assert_eq!(before, patience);
    }

    #[test]
    fn a_block_that_is_lost_or_failed_is_brought_again(count in 1..20usize, fates in prop::collection::vec(0..4u8, 1..100)) {
        let mut schedule = cluster(2, 1, ScheduleSettings { in_flight_bytes: 3 * BYTES, ..ScheduleSettings::default() });
        job(&mut schedule, 1, 0, tasks(1, count, &[]));
        let (mut there, mut on_the_way) = (BTreeSet::new(), Vec::new());
        let mut fates = fates.into_iter();
        // Once fate has had its say, everything arrives.
        for _ in 0..1_000 {
            on_the_way.extend(schedule.transfers());
            match (fates.next(), on_the_way.pop()) {
                (Some(0), Some(transfer)) => schedule.failed(transfer.range, transfer.to),
                (Some(1), Some(transfer)) => {
                    schedule.arrived(transfer.range, transfer.to);
                    schedule.evicted(transfer.range, transfer.to);
                }
                (_, Some(transfer)) => {
                    schedule.arrived(transfer.range, transfer.to);
                    there.insert(transfer.range);
                }
                (_, None) => break,
            }
        }
        prop_assert_eq!(there, (0..count as u64).map(|at| range(1_000 + at)).collect::<BTreeSet<_>>());
    }
}
