//! The schedule against brute force, and its rules one by one.

mod books;
mod planted;
mod promises;
mod rules;

use forebay_types::{MountId, PageRun, SegmentId, WorkerId};

use super::{BlockRange, JobId, Schedule, ScheduleSettings, TaskId, TaskInput, TaskSpec};

/// Bytes of every range here.
const BYTES: u64 = 1 << 20;

fn range(number: u64) -> BlockRange {
    BlockRange { segment: SegmentId(u128::from(number)), pages: PageRun::new(0, (BYTES / 4096) as u32) }
}

/// The storage of a range: each has 2^40 of them.
fn storage(number: u64) -> MountId {
    MountId(number >> 40)
}

fn task(id: u64, ranges: &[u64], holders: &[u64]) -> TaskSpec {
    let holders: Vec<WorkerId> = holders.iter().map(|holder| WorkerId(*holder)).collect();
    let input = |number: &u64| TaskInput {
        range: range(*number),
        storage: storage(*number),
        holders: holders.clone(),
        routed: Vec::new(),
    };
    TaskSpec { id: TaskId(id), inputs: ranges.iter().map(input).collect() }
}

fn cluster(workers: u64, slots: u32, settings: ScheduleSettings) -> Schedule {
    let mut schedule = Schedule::new(settings);
    (0..workers).for_each(|id| schedule.worker_joined(WorkerId(id), slots, 1 << 40));
    schedule
}

/// A cluster that takes in and lets go so many tasks a step.
fn stepping(workers: u64, settings: ScheduleSettings, step_tasks: usize) -> Schedule {
    let mut schedule = cluster(workers, 2, settings);
    schedule.step_tasks = step_tasks;
    schedule
}

fn job(schedule: &mut Schedule, id: u64, priority: i32, tasks: Vec<TaskSpec>) {
    schedule.submit(JobId(id), priority, 100 << 20);
    schedule.add_tasks(JobId(id), tasks);
}
