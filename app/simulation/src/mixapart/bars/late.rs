//! The bar on FIFO: how many transfers still go before those of an urgent job that comes late.

use forebay_scheduling::{BlockRange, JobId, Schedule, ScheduleSettings, TaskId, TaskInput, TaskSpec};
use forebay_types::{MountId, PageRun, SegmentId, WorkerId};

use super::MixApartBar;

const PAGES: u32 = 15_625;

fn range(number: u64) -> BlockRange {
    BlockRange { segment: SegmentId(u128::from(number)), pages: PageRun::new(0, PAGES) }
}

/// A job of tasks over ranges that nobody has.
fn submit(schedule: &mut Schedule, job: u64, priority: i32, tasks: u64) {
    let spec = |task| {
        let (range, holders, routed) = (range(job << 32 | task), Vec::new(), Vec::new());
        let input = TaskInput { range, storage: MountId(1), holders, routed };
        TaskSpec { id: TaskId(task), inputs: vec![input] }
    };
    schedule.submit(JobId(job), priority, 3_200_000);
    schedule.add_tasks(JobId(job), (0..tasks).map(spec).collect());
}

/// How many transfers go before the first of a late job's, once the link has room again.
pub(super) fn bars() -> Vec<MixApartBar> {
    [(0, "every slot waits for its input"), (4, "the look-ahead of earlier jobs is used up")]
        .into_iter()
        .map(|(rounds, when)| {
            let in_flight_bytes = 4 * range(0).len_bytes();
            let mut schedule = Schedule::new(ScheduleSettings { in_flight_bytes, ..ScheduleSettings::default() });
            (0..4).for_each(|worker| schedule.worker_joined(WorkerId(worker), 2, u64::MAX / 2));
            (0..20).for_each(|job| submit(&mut schedule, job, 0, 100));
            let mut on_the_way = schedule.transfers();
            for _ in 0..rounds * 20 {
                let transfer = on_the_way.remove(0);
                schedule.arrived(transfer.range, transfer.to);
                on_the_way.extend(schedule.transfers());
                if on_the_way.is_empty() {
                    break;
                }
            }
            submit(&mut schedule, 99, 1, 10);
            let mut started = schedule.transfers();
            if let (true, Some(first)) = (started.is_empty(), on_the_way.first()) {
                // The link is full: one event, the end of a transfer, makes room.
                schedule.arrived(first.range, first.to);
                started = schedule.transfers();
            }
            let is_late = |transfer: &forebay_scheduling::Transfer| transfer.range.segment.0 >> 32 == 99;
            let before = started.iter().position(is_late).map_or(f64::INFINITY, |at| at as f64);
            MixApartBar::at_most(0.0, before, format!("{when}: transfers before its first"), "20 jobs of 100 tasks are queued")
        })
        .collect()
}
