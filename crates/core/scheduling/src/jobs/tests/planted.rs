//! Defects that are planted in the books, and that what must hold of them catches each.

use forebay_types::WorkerId;

use super::{cluster, job, range, task};
use crate::jobs::entries::Job;
use crate::jobs::fleet::Worker;
use crate::jobs::{Assignment, JobId, Schedule, ScheduleSettings};

const JOB: JobId = JobId(1);
const WORKER: WorkerId = WorkerId(0);

/// A worker with a slot, and a job of three tasks whose input is on its way there.
fn coming() -> Schedule {
    let mut schedule = cluster(1, 1, ScheduleSettings::default());
    job(&mut schedule, JOB.0, 0, (0..3).map(|id| task(id, &[id], &[])).collect());
    assert_eq!(schedule.transfers().len(), 3);
    schedule
}

/// The same, and one of them runs.
fn running() -> (Schedule, Assignment) {
    let mut schedule = coming();
    let started = schedule.next_task(WORKER).unwrap();
    (schedule, started)
}

fn the_job(schedule: &mut Schedule) -> &mut Job {
    schedule.jobs.get_mut(&JOB).unwrap()
}

fn the_worker(schedule: &mut Schedule) -> &mut Worker {
    schedule.fleet.get_mut(WORKER).unwrap()
}

fn finish((mut schedule, started): (Schedule, Assignment)) {
    schedule.finished(started.job, started.task, true);
}

#[test]
fn what_is_sound_passes() {
    let (mut schedule, started) = running();
    schedule.arrived(range(0), WORKER);
    finish((schedule, started));
}

#[test]
#[should_panic(expected = "0 tasks wait")]
fn a_task_that_waits_and_is_not_counted_is_caught() {
    let mut schedule = coming();
    the_job(&mut schedule).pending.count = 0;
    schedule.next_task(WORKER);
}

#[test]
#[should_panic(expected = "0 tasks run")]
fn a_task_that_runs_and_is_not_counted_is_caught() {
    let (mut schedule, started) = running();
    the_job(&mut schedule).running = 0;
    finish((schedule, started));
}

#[test]
#[should_panic(expected = "of 0 were brought ahead")]
fn what_was_brought_ahead_and_not_counted_is_caught() {
    let mut schedule = coming();
    the_job(&mut schedule).ahead_bytes = 0;
    schedule.next_task(WORKER);
}

#[test]
#[should_panic(expected = "of 0 are ahead at a worker")]
fn what_is_ahead_at_a_worker_and_not_counted_is_caught() {
    let mut schedule = coming();
    the_worker(&mut schedule).ahead_bytes = 0;
    schedule.next_task(WORKER);
}

#[test]
#[should_panic(expected = "nothing is ahead at a worker that has nothing")]
fn what_is_counted_ahead_at_a_worker_and_is_not_there_is_caught() {
    let mut schedule = coming();
    the_worker(&mut schedule).ahead_bytes += 1;
    schedule.worker_lost(WORKER);
}

#[test]
#[should_panic(expected = "what no longer arrives was counted")]
fn what_is_in_flight_and_not_counted_is_caught() {
    let mut schedule = coming();
    schedule.storages.values_mut().for_each(|storage| storage.bytes = 0);
    schedule.arrived(range(0), WORKER);
}

#[test]
#[should_panic(expected = "what was urgent was counted as urgent")]
fn a_range_that_became_urgent_on_its_way_is_caught() {
    let mut schedule = coming();
    schedule.ranges[0].urgent = true;
    schedule.arrived(range(0), WORKER);
}

#[test]
#[should_panic(expected = "the slot that is given back was taken")]
fn a_slot_that_is_given_back_twice_is_caught() {
    let (mut schedule, started) = running();
    the_worker(&mut schedule).free += 1;
    finish((schedule, started));
}

#[test]
#[should_panic(expected = "no more is waited for than 0 bytes")]
fn bytes_that_are_waited_for_and_not_counted_are_caught() {
    let mut schedule = coming();
    the_worker(&mut schedule).waiting_bytes = 0;
    schedule.next_task(WORKER);
}

#[test]
#[should_panic(expected = "each worker is filed once by its load")]
fn a_worker_that_is_filed_under_another_load_is_caught() {
    let (mut schedule, started) = running();
    the_worker(&mut schedule).running_bytes += 1 << 30;
    finish((schedule, started));
}

#[test]
#[should_panic(expected = "a task uses what it reads")]
fn a_range_without_its_users_is_caught() {
    let (mut schedule, started) = running();
    schedule.ranges.iter_mut().for_each(|range| range.users = 0);
    finish((schedule, started));
}

#[test]
#[should_panic(expected = "is not brought again")]
fn a_range_that_is_missing_though_it_is_held_is_caught() {
    let mut schedule = cluster(1, 1, ScheduleSettings::default());
    job(&mut schedule, JOB.0, 0, vec![task(0, &[0], &[])]);
    schedule.ranges[0].holders.push(WORKER);
    schedule.transfers();
}

#[test]
#[should_panic(expected = "a task runs once")]
fn a_task_that_starts_twice_is_caught() {
    let mut schedule = coming();
    let tasks: Vec<_> = the_job(&mut schedule).tasks.keys().map(|task| (JOB, *task)).collect();
    the_worker(&mut schedule).running.extend(tasks);
    schedule.next_task(WORKER);
}
