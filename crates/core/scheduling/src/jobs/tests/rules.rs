//! The rules of the schedule, one by one.

use forebay_types::{PageRun, WorkerId};

use super::super::model::{Policy, Source};
use super::super::{JobId, Schedule, ScheduleSettings, TaskId};
use super::super::{STEP_STARTS, STEP_TASKS};
use super::{BYTES, cluster, job, range, stepping, storage, task};

fn settings() -> ScheduleSettings {
    ScheduleSettings { in_flight_bytes: 4 * BYTES, ..ScheduleSettings::default() }
}

fn segments(transfers: &[super::super::Transfer]) -> Vec<u64> {
    transfers.iter().map(|transfer| transfer.range.segment.0 as u64).collect()
}

#[test]
fn a_job_of_high_priority_that_comes_late_is_next_in_the_transfer_order() {
    let mut schedule = cluster(2, 1, settings());
    job(&mut schedule, 1, 0, (0..20).map(|id| task(id, &[id], &[])).collect());
    assert_eq!(segments(&schedule.transfers()), [0, 1, 2, 3]);
    job(&mut schedule, 2, 5, vec![task(0, &[100], &[])]);
    assert!(schedule.transfers().is_empty(), "the link is full");
    let to = schedule.ranges[0].arriving.expect("it is on its way");
    schedule.arrived(range(0), to);
    assert_eq!(segments(&schedule.transfers()), [100]);
}

#[test]
fn a_job_that_comes_before_one_with_all_the_slots_does_not_wait_for_what_that_one_reads() {
    for policy in [Policy::Fifo, Policy::Fair] {
        let mut schedule = cluster(2, 4, ScheduleSettings { policy, ..settings() });
        job(&mut schedule, 1, 0, (0..20).map(|id| task(id, &[id], &[])).collect());
        assert!(schedule.transfers().iter().all(|transfer| !transfer.urgent), "nobody is before it");
        while let Some(next) = schedule.next_task(WorkerId(0)).or_else(|| schedule.next_task(WorkerId(1))) {
            assert!(next.bring.iter().all(|transfer| !transfer.urgent));
        }
        assert!(schedule.transfers().is_empty(), "its tasks fill the link");
        job(&mut schedule, 2, 0, (0..20).map(|id| task(id, &[100 + id], &[])).collect());
        match policy {
            Policy::Fifo => assert!(schedule.transfers().is_empty(), "it is behind the first one"),
            Policy::Fair => assert_eq!(segments(&schedule.transfers()), [100, 101, 102, 103], "what may be in flight of it"),
        }
        if policy == Policy::Fair {
            assert!(schedule.transfers().is_empty(), "no more than that");
            let to = schedule.ranges.iter().find(|of| of.key == range(100)).and_then(|of| of.arriving);
            schedule.arrived(range(100), to.expect("it is on its way"));
        }
        job(&mut schedule, 3, 5, vec![task(0, &[200], &[])]);
        let late = schedule.transfers();
        assert!(segments(&late) == [200] && late[0].urgent);
    }
}

#[test]
fn in_flight_is_what_the_bandwidth_gives_in_half_a_second() {
    let mut schedule = cluster(2, 1, ScheduleSettings { in_flight_bytes: 64 * BYTES, ..settings() });
    job(&mut schedule, 1, 0, (0..200).map(|id| task(id, &[id], &[])).collect());
    let begun = [Some(64 * BYTES), Some(1), None].map(|bandwidth| {
        schedule.set_bandwidth(storage(0), bandwidth);
        schedule.transfers().len()
    });
    assert_eq!(begun, [32, 0, 32], "the last time as many as the settings say");
}

#[test]
fn a_storage_whose_window_is_full_keeps_no_other_waiting() {
    let mut schedule = cluster(2, 1, ScheduleSettings { in_flight_bytes: 24 * BYTES, ..settings() });
    schedule.set_bandwidth(storage(0), Some(1));
    let other = 1_u64 << 40;
    job(&mut schedule, 1, 0, (0..20).map(|id| task(id, &[id], &[])).collect());
    job(&mut schedule, 2, 0, (0..30).map(|id| task(id, &[other + id], &[])).collect());
    let begun = segments(&schedule.transfers());
    let slow = begun.iter().filter(|number| storage(**number) == storage(0)).count();
    assert_eq!((slow, begun.len() - slow), (16, 24), "each as much as it may have on its way");
    assert!(begun[..slow].iter().all(|number| *number < 20), "in the order of jobs");
}

#[test]
fn what_was_brought_for_a_later_job_never_keeps_the_next_one_waiting() {
    let limits = ScheduleSettings { look_ahead_bytes: 4 * BYTES, ..settings() };
    let mut schedule = cluster(2, 1, limits);
    job(&mut schedule, 1, 0, (0..8).map(|id| task(id, &[id], &[])).collect());
    for transfer in schedule.transfers() {
        schedule.arrived(transfer.range, transfer.to);
    }
    assert!(schedule.transfers().is_empty(), "the look-ahead is used up");
    job(&mut schedule, 2, 1, vec![task(0, &[50], &[])]);
    assert_eq!(segments(&schedule.transfers()), [50]);
}

/// A worker with a slot and room for so many ranges, a third of them brought ahead, and much that may be in flight.
fn with_room(ranges: u64) -> Schedule {
    let mut schedule = cluster(1, 1, ScheduleSettings { in_flight_bytes: 64 * BYTES, ..settings() });
    schedule.worker_joined(WorkerId(0), 1, ranges * BYTES);
    schedule
}

#[test]
fn more_was_brought_ahead_to_a_worker_than_it_holds_until_tasks_begin() {
    let mut schedule = with_room(9);
    job(&mut schedule, 1, 0, (0..20).map(|id| task(id, &[id], &[])).collect());
    assert_eq!(segments(&schedule.transfers()), [0, 1, 2]);
    (0..3).for_each(|number| schedule.arrived(range(number), WorkerId(0)));
    assert!(schedule.transfers().is_empty(), "all of it is still to be read");
    let started = schedule.next_task(WorkerId(0)).expect("tasks wait");
    assert_eq!((started.task, segments(&schedule.transfers())), (TaskId(0), vec![3]));
    schedule.finished(started.job, started.task, true);
    assert!(schedule.transfers().is_empty(), "it was no longer ahead when it ended");
    schedule.evicted(range(1), WorkerId(0));
    assert_eq!(segments(&schedule.transfers()), [1], "what has gone is not ahead");
    schedule.failed(range(3), WorkerId(0));
    assert_eq!(segments(&schedule.transfers()), [3], "and neither is what does not come");
    schedule.close(JobId(1));
    (0..4).for_each(|number| schedule.arrived(range(number), WorkerId(0)));
    job(&mut schedule, 2, 0, (30..40).map(|id| task(id, &[id], &[])).collect());
    assert_eq!(schedule.transfers().len(), 3, "nor what nobody reads any more");
}

#[test]
fn what_waiting_tasks_find_there_takes_nothing_from_what_is_brought_ahead() {
    let mut schedule = with_room(12);
    let cached = |id: u64| task(id, &[id], if id < 6 { &[0] } else { &[] });
    job(&mut schedule, 1, 0, (0..20).map(cached).collect());
    assert_eq!(segments(&schedule.transfers()), [6, 7, 8, 9], "of a job most of whose input may be there");
}

#[test]
fn one_range_is_brought_ahead_however_little_a_worker_holds() {
    let mut schedule = with_room(2);
    job(&mut schedule, 1, 0, (0..3).map(|id| task(id, &[id], &[])).collect());
    for next in 0..3 {
        assert_eq!(segments(&schedule.transfers()), [next]);
        assert!(schedule.transfers().is_empty(), "one");
        let started = schedule.next_task(WorkerId(0)).expect("tasks wait");
        assert!(started.bring.is_empty(), "its input is on its way");
        schedule.arrived(range(next), WorkerId(0));
        schedule.finished(started.job, started.task, true);
    }
}

#[test]
fn what_has_left_the_worker_that_it_was_brought_to_is_not_ahead_there_though_another_one_has_it() {
    let mut schedule = cluster(2, 1, settings());
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[])]);
    let brought = schedule.transfers()[0];
    schedule.arrived(brought.range, brought.to);
    let other = WorkerId(1 - brought.to.0);
    schedule.arrived(brought.range, other);
    let ahead = |schedule: &Schedule| [brought.to, other].map(|id| schedule.fleet.get(id).unwrap().ahead_bytes);
    assert_eq!(ahead(&schedule), [BYTES, 0]);
    schedule.evicted(brought.range, brought.to);
    assert_eq!(ahead(&schedule), [0, 0]);
    assert!(schedule.transfers().is_empty(), "it is there");
}

#[test]
fn what_was_brought_ahead_of_a_job_that_is_over_was_taken_for_that_of_a_later_one_of_its_number() {
    let mut schedule = with_room(3);
    job(&mut schedule, 1, 5, vec![task(0, &[7], &[])]);
    job(&mut schedule, 2, 0, vec![task(0, &[7], &[])]);
    assert_eq!(segments(&schedule.transfers()), [7]);
    schedule.close(JobId(1));
    job(&mut schedule, 1, 0, vec![task(0, &[8], &[])]);
    assert!(schedule.transfers().is_empty(), "what another job is still to read is ahead");
    assert_eq!(schedule.next_task(WorkerId(0)).expect("tasks wait").job, JobId(2));
    assert_eq!(segments(&schedule.transfers()), [8]);
}

#[test]
fn a_worker_with_room_is_found_behind_many_that_have_none() {
    let mut schedule = cluster(200, 1, settings());
    (0..199).for_each(|id| schedule.worker_joined(WorkerId(id), 1, 0));
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[])]);
    let to: Vec<WorkerId> = schedule.transfers().iter().map(|transfer| transfer.to).collect();
    assert_eq!(to, [WorkerId(199)]);
}

#[test]
fn a_job_that_computes_more_than_it_reads_leaves_the_bandwidth_to_the_next() {
    let mut schedule = cluster(1, 1, ScheduleSettings { look_ahead_secs: 1.0, ..settings() });
    schedule.submit(JobId(1), 0, BYTES);
    schedule.add_tasks(JobId(1), (0..9).map(|id| task(id, &[id], &[])).collect());
    schedule.submit(JobId(2), 0, 100 * BYTES);
    schedule.add_tasks(JobId(2), (0..9).map(|id| task(id, &[100 + id], &[])).collect());
    assert_eq!(segments(&schedule.transfers()), [0, 100, 101, 102]);
}

#[test]
fn the_range_that_most_tasks_of_all_jobs_want_goes_first() {
    let mut schedule = cluster(2, 1, ScheduleSettings { in_flight_bytes: 1, ..settings() });
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[]), task(1, &[2], &[])]);
    job(&mut schedule, 2, 0, vec![task(0, &[2], &[])]);
    assert_eq!(segments(&schedule.transfers()), [2]);
}

#[test]
fn fair_transfers_go_to_the_job_with_the_fewest_blocks_ready() {
    let mut schedule = cluster(2, 1, ScheduleSettings { policy: Policy::Fair, ..settings() });
    job(&mut schedule, 1, 0, (0..20).map(|id| task(id, &[id], &[])).collect());
    job(&mut schedule, 2, 0, (0..2).map(|id| task(id, &[100 + id], &[])).collect());
    assert_eq!(segments(&schedule.transfers()), [0, 100, 1, 101]);
}

#[test]
fn fair_slots_go_to_the_job_with_the_fewest_running_tasks() {
    let mut schedule = cluster(1, 4, ScheduleSettings { policy: Policy::Fair, ..settings() });
    job(&mut schedule, 1, 0, (0..20).map(|id| task(id, &[id], &[0])).collect());
    job(&mut schedule, 2, 0, (0..2).map(|id| task(id, &[100 + id], &[0])).collect());
    let jobs: Vec<u64> = (0..4).map(|_| schedule.next_task(WorkerId(0)).expect("tasks wait").job.0).collect();
    assert_eq!(jobs, [1, 2, 1, 2]);
}

#[test]
fn the_task_with_the_largest_share_here_or_on_its_way_here_goes_first() {
    let mut schedule = cluster(2, 1, settings());
    job(&mut schedule, 1, 0, vec![task(0, &[1, 2, 3], &[]), task(1, &[4, 5], &[]), task(2, &[6], &[1])]);
    schedule.arrived(range(1), WorkerId(0));
    schedule.arrived(range(4), WorkerId(0));
    let first = schedule.next_task(WorkerId(0)).expect("tasks wait");
    assert_eq!((first.task, first.local_bytes, first.input_bytes), (TaskId(1), 2 * BYTES, 2 * BYTES));
    assert_eq!(segments(&first.bring), [5]);
    assert_eq!(schedule.next_task(WorkerId(1)).expect("tasks wait").task, TaskId(2));
}

#[test]
fn what_is_here_is_read_before_what_is_on_its_way() {
    let mut schedule = cluster(1, 1, settings());
    job(&mut schedule, 1, 0, vec![task(1, &[1], &[]), task(2, &[2], &[0]), task(3, &[3, 4], &[])]);
    schedule.transfers();
    schedule.arrived(range(3), WorkerId(0));
    let mut order = Vec::new();
    for _ in 0..3 {
        let next = schedule.next_task(WorkerId(0)).unwrap();
        schedule.finished(next.job, next.task, true);
        order.push(next.task.0);
    }
    assert_eq!(order, [2, 3, 1], "all of it, half of it, none of it is here");
}

#[test]
fn a_range_that_another_worker_holds_comes_from_there() {
    let mut schedule = cluster(2, 1, settings());
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[1]), task(1, &[2], &[1])]);
    assert!(schedule.next_task(WorkerId(1)).is_some());
    let assignment = schedule.next_task(WorkerId(0)).expect("a slot never waits while a task waits");
    assert_eq!(assignment.bring[0].from, Source::Peer(WorkerId(1)));
    assert_eq!(assignment.local_bytes, 0);
    assert!(schedule.transfers().is_empty());
}

#[test]
fn a_task_is_left_to_the_free_slot_beside_its_input_but_not_for_ever() {
    let mut schedule = cluster(2, 1, ScheduleSettings { patience: 2, ..settings() });
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[1])]);
    assert!(schedule.clone().next_task(WorkerId(1)).is_some());
    assert_eq!(schedule.clone().next_tasks()[0].0, WorkerId(1));
    assert_eq!([(); 3].map(|()| schedule.next_task(WorkerId(0)).is_some()), [false, false, true]);
}

#[test]
fn a_job_passed_over_too_often_takes_the_next_slot() {
    let mut schedule = cluster(2, 1, ScheduleSettings { patience: 3, ..settings() });
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[1])]);
    job(&mut schedule, 2, 0, (0..9).map(|id| task(id, &[100 + id], &[0])).collect());
    let mut jobs = Vec::new();
    for _ in 0..4 {
        let assignment = schedule.next_task(WorkerId(0)).expect("tasks wait");
        jobs.push(assignment.job.0);
        schedule.finished(assignment.job, assignment.task, true);
    }
    assert_eq!(jobs, [2, 2, 2, 1]);
}

#[test]
fn a_lost_worker_gives_back_its_tasks_and_what_it_held_is_missing_again() {
    let mut schedule = cluster(2, 1, settings());
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[0])]);
    assert_eq!(schedule.next_task(WorkerId(0)).expect("a task waits").task, TaskId(0));
    schedule.worker_lost(WorkerId(0));
    assert_eq!(segments(&schedule.transfers()), [1]);
    assert_eq!(schedule.next_task(WorkerId(1)).expect("it waits again").task, TaskId(0));
}

#[test]
fn more_slots_beside_a_worker_leave_what_runs_and_lies_there() {
    let mut schedule = cluster(1, 1, settings());
    job(&mut schedule, 1, 0, (0..4).map(|id| task(id, &[id], &[])).collect());
    let first = schedule.next_task(WorkerId(0)).expect("a slot is free");
    assert!(schedule.next_task(WorkerId(0)).is_none());
    schedule.slots_changed(WorkerId(0), 3, 64 * BYTES);
    let more: Vec<_> = std::iter::from_fn(|| schedule.next_task(WorkerId(0))).map(|next| next.task).collect();
    assert!(more.len() == 2 && !more.contains(&first.task), "{more:?} beside {:?}", first.task);
    schedule.slots_changed(WorkerId(0), 2, 64 * BYTES);
    let anew: Vec<_> = std::iter::from_fn(|| schedule.next_task(WorkerId(0))).collect();
    assert_eq!(anew.len(), 2, "nobody knows which are gone");
    schedule.slots_changed(WorkerId(1), 1, 64 * BYTES);
    assert!(schedule.next_task(WorkerId(1)).is_some(), "one that was not there joins");
}

#[test]
fn ten_thousand_workers_and_a_hundred_thousand_tasks() {
    let mut schedule = cluster(10_000, 2, ScheduleSettings { in_flight_bytes: 1_000 * BYTES, ..settings() });
    for id in 0..100 {
        let tasks = (0..1_000).map(|at| task(at, &[id * 1_000 + at], if at % 5 == 0 { &[] } else { &[7] })).collect();
        job(&mut schedule, id, 0, tasks);
    }
    let (mut brought, mut started) = (0, 0);
    loop {
        brought += schedule.transfers().len();
        let step = schedule.next_tasks().len();
        assert!(step <= STEP_STARTS, "a call takes no longer because much is to be done");
        started += step;
        if step == 0 {
            break;
        }
    }
    // Some of what nobody has is brought by the tasks themselves.
    assert!(brought > 0, "{brought}");
    assert_eq!(started, 20_000);
}

#[test]
fn a_large_job_comes_and_goes_in_steps_and_a_later_one_of_high_priority_does_not_wait_for_them() {
    let mut schedule = cluster(2, 2, settings());
    job(&mut schedule, 1, 0, (0..10_000).map(|id| task(id, &[id], &[])).collect());
    assert_eq!(schedule.jobs().collect::<Vec<_>>(), [(JobId(1), 10_000, 0)]);
    assert!(schedule.jobs[&JobId(1)].coming.len() >= 10_000 - STEP_TASKS);
    job(&mut schedule, 2, 5, vec![task(0, &[20_000], &[0])]);
    assert_eq!(schedule.next_task(WorkerId(0)).expect("tasks wait").job, JobId(2));
    let running = std::iter::from_fn(|| schedule.next_task(WorkerId(1))).count();
    assert_eq!(running, 2);
    schedule.close(JobId(1));
    assert_eq!(schedule.jobs().collect::<Vec<_>>(), [(JobId(2), 0, 1)]);
    // Its number may be used again, and the slots of the first one are free.
    job(&mut schedule, 1, 0, vec![task(0, &[1], &[]), task(1, &[2], &[])]);
    assert_eq!(schedule.jobs().collect::<Vec<_>>(), [(JobId(1), 2, 0), (JobId(2), 0, 1)]);
    assert_eq!(schedule.next_tasks().len(), 2);
}

#[test]
fn tasks_that_end_while_their_job_is_let_go_are_not_those_of_a_later_job_of_its_number() {
    let mut schedule = stepping(2, settings(), 1);
    job(&mut schedule, 1, 0, (0..2).map(|id| task(id, &[id], &[0])).collect());
    let running: Vec<_> = std::iter::from_fn(|| schedule.next_task(WorkerId(0))).collect();
    assert_eq!(running.len(), 2);
    schedule.close(JobId(1));
    running.iter().for_each(|assignment| schedule.finished(JobId(1), assignment.task, true));
    job(&mut schedule, 1, 0, (0..3).map(|id| task(id, &[10 + id], &[0])).collect());
    let again: Vec<_> = (0..9).filter_map(|_| schedule.next_task(WorkerId(0))).collect();
    assert_eq!(again.len(), 2);
    assert_eq!(schedule.jobs().collect::<Vec<_>>(), [(JobId(1), 1, 2)]);
}

#[test]
fn what_came_past_the_schedule_is_of_interest_where_tasks_wait_for_it() {
    let mut schedule = cluster(2, 1, ScheduleSettings::default());
    job(&mut schedule, 1, 0, vec![task(1, &[1, 2], &[]), task(2, &[3], &[0])]);
    let came = |number: u64| (range(number).segment, PageRun::new(200, 300));
    let all = [came(1), came(3), came(9)];
    assert_eq!(schedule.wanted_at(WorkerId(0), &all), [range(1)], "3 is there, and nobody reads 9");
    assert_eq!(schedule.wanted_at(WorkerId(1), &all), [range(1), range(3)]);
    assert_eq!(schedule.wanted_at(WorkerId(7), &all), [], "nobody runs there");
    let beside = (range(1).segment, PageRun::new(256, 300));
    assert_eq!(schedule.wanted_at(WorkerId(1), &[beside]), [], "other pages");
    schedule.arrived(range(1), WorkerId(0));
    assert_eq!(schedule.wanted_at(WorkerId(0), &all), []);
    let brought: Vec<_> = schedule.transfers().iter().map(|transfer| (transfer.range, transfer.to)).collect();
    let (of_two, to) = brought.into_iter().find(|(of, _)| *of == range(2)).expect("nobody has it");
    assert_eq!(schedule.wanted_at(to, &[came(2)]), [], "who brings it says when it is there");
    schedule.failed(of_two, to);
    assert_eq!(schedule.wanted_at(to, &[came(2)]), [range(2)]);
}

#[test]
fn what_is_brought_for_a_task_goes_where_others_read_it_unless_that_worker_has_more_to_do() {
    let settings = ScheduleSettings { in_flight_bytes: 64 * BYTES, ..settings() };
    let routed = |id: u64, range: u64, worker: u64| {
        let mut spec = task(id, &[range], &[]);
        spec.inputs[0].routed = vec![WorkerId(worker)];
        spec
    };
    let mut schedule = cluster(4, 1, settings);
    job(&mut schedule, 1, 0, vec![routed(0, 0, 3), routed(1, 1, 3), routed(2, 2, 1), routed(3, 3, 2)]);
    let to = |schedule: &mut super::super::Schedule| schedule.transfers().iter().map(|it| it.to.0).collect::<Vec<_>>();
    assert_eq!(to(&mut schedule), [3, 0, 1, 2], "each where it is read, and no two to one worker");
    let mut schedule = cluster(2, 1, settings);
    job(&mut schedule, 1, 0, vec![task(0, &[10, 11, 12], &[])]);
    job(&mut schedule, 2, 0, vec![routed(0, 20, 0)]);
    assert_eq!(to(&mut schedule), [0, 0, 0, 1], "what one worker has to read already comes first there");
}
