//! After any events the books hold what a look at everything finds.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::{MountId, PageRun, WorkerId};
use proptest::prelude::*;

use super::super::STEP_TASKS;
use super::super::entries::{Job, Near};
use super::super::fleet::LONGEST_FILED;
use super::super::model::{Policy, ahead_bytes_max};
use super::super::{BlockRange, JobId, Schedule, ScheduleSettings, TaskId, Transfer};
use super::{BYTES, job, range, stepping, storage, task};

#[derive(Clone, Debug)]
enum Event {
    Submit { priority: i32, tasks: Vec<Vec<u64>>, holder: Option<u64> },
    Close(usize),
    Arrive(usize),
    Fail(usize),
    Evict { range: u64, worker: u64 },
    Depart { ranges: Vec<u64>, worker: u64 },
    Cache { range: u64, worker: u64 },
    Finish { which: usize, done: bool },
    Lose(u64),
    Join(u64),
    Work(u64),
    WorkAll,
    Transfer,
}

/// Ranges up to a number, every other one of a second storage.
fn ranges(end: u64) -> impl Strategy<Value = u64> {
    (0..end).prop_map(|number| ((number % 2) << 40) | number)
}

/// A worker's room: for more than there is, for some ranges ahead, and for one at a time.
fn room() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_u64 << 40), (1..16u64).prop_map(|ranges| ranges * BYTES)]
}

/// The workers there are come again, with so much room.
fn set_room(schedule: &mut Schedule, room: u64) {
    let workers: Vec<_> = schedule.fleet.iter().map(|(id, worker)| (id, worker.slots)).collect();
    workers.into_iter().for_each(|(id, slots)| schedule.worker_joined(id, slots, room));
}

fn event() -> impl Strategy<Value = Event> {
    let input = prop::collection::vec(ranges(12), 0..4);
    prop_oneof![
        3 => (0..3i32, prop::collection::vec(input, 1..6), prop::option::of(0..4u64))
            .prop_map(|(priority, tasks, holder)| Event::Submit { priority, tasks, holder }),
        1 => any::<usize>().prop_map(Event::Close),
        4 => any::<usize>().prop_map(Event::Arrive),
        1 => any::<usize>().prop_map(Event::Fail),
        1 => (ranges(12), 0..4u64).prop_map(|(range, worker)| Event::Evict { range, worker }),
        1 => (prop::collection::vec(ranges(14), 0..4), 0..4u64).prop_map(|(ranges, worker)| Event::Depart { ranges, worker }),
        1 => (ranges(12), 0..4u64).prop_map(|(range, worker)| Event::Cache { range, worker }),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(which, done)| Event::Finish { which, done }),
        1 => (0..4u64).prop_map(Event::Lose),
        1 => (0..4u64).prop_map(Event::Join),
        4 => (0..4u64).prop_map(Event::Work),
        2 => Just(Event::WorkAll),
        4 => Just(Event::Transfer),
    ]
}

/// The books, counted again from tasks, holders and arrivals alone.
fn check(schedule: &Schedule) {
    let mut readers: BTreeMap<u32, BTreeSet<(JobId, TaskId)>> = BTreeMap::new();
    let mut waiting: BTreeMap<WorkerId, u64> = BTreeMap::new();
    let (mut in_flight, mut users) = (BTreeMap::<MountId, (u64, u64)>::new(), BTreeMap::<u32, u32>::new());
    for (job_id, job) in &schedule.jobs {
        let (mut ready, mut pending, mut running) = (0, 0, 0);
        for (task_id, task) in &job.tasks {
            task.inputs.iter().for_each(|ix| *users.entry(*ix).or_default() += 1);
            if task.on.is_some() {
                (running, ready) = (running + 1, ready + task.inputs.len());
                continue;
            }
            pending += 1;
            let mut near: BTreeMap<WorkerId, Near> = BTreeMap::new();
            for ix in &task.inputs {
                readers.entry(*ix).or_default().insert((*job_id, *task_id));
                let range = &schedule.ranges[*ix as usize];
                ready += usize::from(!range.is_missing());
                let places: BTreeSet<_> = range.holders.iter().copied().chain(range.arriving).collect();
                for place in places {
                    let near = near.entry(place).or_default();
                    near.bytes += range.bytes;
                    near.arriving += if range.holders.contains(&place) { 0 } else { range.bytes };
                    *waiting.entry(place).or_default() += range.bytes;
                }
                assert_eq!(job.pending.missing.iter().any(|(_, missing)| missing == ix), range.is_missing());
            }
            assert_eq!(task.near.iter().copied().collect::<BTreeMap<_, _>>(), near);
            assert_eq!(job.pending.near.contains(task_id), !near.is_empty());
            assert_eq!(job.pending.anywhere.contains(task_id), task.inputs.is_empty());
            for (id, worker) in schedule.fleet.iter() {
                let listed = worker.near.get(job_id).into_iter().flatten().find(|(_, listed)| listed == task_id);
                assert_eq!(listed.map(|(rank, _)| *rank), near.get(&id).map(|near| near.rank(task.bytes)));
            }
        }
        assert_eq!((job.ready, job.pending.count, job.running), (ready, pending, running));
    }
    check_ahead(schedule);
    check_orders(schedule);
    for (ix, range) in schedule.ranges.iter().enumerate() {
        let ix = ix as u32;
        assert_eq!(range.readers, readers.remove(&ix).unwrap_or_default());
        assert_eq!(range.users, users.remove(&ix).unwrap_or_default());
        let (arriving, urgent) = in_flight.entry(range.storage).or_default();
        *arriving += range.arriving.map_or(0, |_| range.bytes);
        *urgent += if range.urgent { range.bytes } else { 0 };
    }
    assert_eq!(schedule.arriving_bytes(), in_flight.values().map(|(arriving, _)| arriving).sum::<u64>());
    for (mount, storage) in &schedule.storages {
        assert_eq!((storage.bytes, storage.urgent_bytes), in_flight.remove(mount).unwrap_or_default());
    }
    assert!(in_flight.is_empty(), "each storage is known: {in_flight:?}");
    for (id, worker) in schedule.fleet.iter() {
        assert_eq!(worker.waiting_bytes, waiting.remove(&id).unwrap_or_default());
        assert_eq!(worker.free as usize + worker.running.len(), worker.slots as usize);
        assert_eq!(schedule.fleet.free.contains(&id), worker.free > 0);
        assert_eq!(schedule.fleet.free_beside.contains(&id), worker.free > 0 && !worker.near.is_empty());
        assert!(schedule.fleet.by_load.contains(&(worker.load(), id)));
    }
    assert_eq!(schedule.fleet.by_load.len(), schedule.fleet.iter().count());
}

/// What is ahead of each job and at each worker, counted again from the ranges alone.
fn check_ahead(schedule: &Schedule) {
    let (mut of, mut at) = (BTreeMap::<(JobId, u64), u64>::new(), BTreeMap::<WorkerId, u64>::new());
    for range in &schedule.ranges {
        let Some(ahead) = range.ahead_of else { continue };
        assert!(range.places().any(|(place, _)| place == ahead.at), "what is ahead at a worker is there, or on its way");
        *of.entry((ahead.job, ahead.arrival)).or_default() += range.bytes;
        *at.entry(ahead.at).or_default() += range.bytes;
    }
    for (id, job) in &schedule.jobs {
        assert_eq!(job.ahead_bytes, of.remove(&(*id, job.arrival)).unwrap_or_default());
    }
    for (id, worker) in schedule.fleet.iter() {
        assert_eq!(worker.ahead_bytes, at.remove(&id).unwrap_or_default());
        assert!(worker.ahead_bytes <= ahead_bytes_max(worker.room_bytes).max(BYTES), "one range, or what is held");
        assert!(schedule.fleet.by_longest_ahead.contains(&(worker.longest_ahead().min(LONGEST_FILED), id)));
    }
    assert!(at.is_empty(), "nothing is ahead at a worker that is not there: {at:?}");
    assert_eq!(schedule.fleet.by_longest_ahead.len(), schedule.fleet.iter().count());
}

/// The orders of jobs, sorted again from the jobs alone.
fn check_orders(schedule: &Schedule) {
    let fair = schedule.settings.policy == Policy::Fair;
    let sorted = |takes_part: &dyn Fn(&Job) -> bool, count: &dyn Fn(&Job) -> usize| {
        let jobs = schedule.jobs.iter().filter(|(_, job)| !job.is_closed && takes_part(job));
        let turn = |(id, job): (&JobId, &Job)| (-i64::from(job.priority), if fair { count(job) } else { 0 }, job.arrival, *id);
        jobs.map(turn).collect::<BTreeSet<_>>()
    };
    let running = |job: &Job| job.running;
    let orders = &schedule.orders;
    assert_eq!(orders.waiting, sorted(&|job| job.pending.count > 0, &running));
    assert_eq!(orders.coming, sorted(&|job| !job.coming.is_empty(), &running));
    assert_eq!(orders.anywhere, sorted(&|job| !job.pending.anywhere.is_empty(), &running));
    assert_eq!(orders.cold, sorted(&|job| !job.pending.missing.is_empty(), &running));
    assert_eq!(orders.near, sorted(&|job| !job.pending.near.is_empty(), &running));
    let brings = |job: &Job| job.pending.count > 0 && (!job.pending.missing.is_empty() || job.ahead_bytes > 0);
    assert_eq!(orders.transfers, sorted(&brings, &|job| job.ready));
}

fn arriving(schedule: &Schedule) -> Vec<(u64, WorkerId)> {
    let pick = |range: &super::super::entries::Range| range.arriving.map(|to| (range.key.segment.0 as u64, to));
    schedule.ranges.iter().filter_map(pick).collect()
}

fn running(schedule: &Schedule) -> Vec<(JobId, TaskId)> {
    schedule.fleet.iter().flat_map(|(_, worker)| worker.running.iter().copied()).collect()
}

/// Applies an event; what it answered, as text.
fn apply(schedule: &mut Schedule, event: &Event, jobs: &mut u64) -> String {
    let at = |which: usize, len: usize| (len > 0).then(|| which % len.max(1));
    match event.clone() {
        Event::Submit { priority, tasks, holder } => {
            let holders: Vec<u64> = holder.into_iter().collect();
            let tasks = (0..).zip(tasks).map(|(id, ranges)| task(id, &ranges, &holders)).collect();
            job(schedule, *jobs, priority, tasks);
            *jobs += 1;
        }
        Event::Close(which) => {
            let ids: Vec<_> = schedule.jobs().map(|(id, ..)| id).collect();
            at(which, ids.len()).into_iter().for_each(|at| schedule.close(ids[at]));
        }
        Event::Arrive(which) => {
            let on_their_way = arriving(schedule);
            at(which, on_their_way.len())
                .into_iter()
                .for_each(|at| schedule.arrived(range(on_their_way[at].0), on_their_way[at].1));
        }
        Event::Fail(which) => {
            let on_their_way = arriving(schedule);
            at(which, on_their_way.len())
                .into_iter()
                .for_each(|at| schedule.failed(range(on_their_way[at].0), on_their_way[at].1));
        }
        Event::Evict { range: number, worker } => schedule.evicted(range(number), WorkerId(worker)),
        Event::Depart { ranges, worker } => {
            // The last page of each; others than the schedule knows leave too.
            let last = |number: &u64| {
                let BlockRange { segment, pages } = range(*number);
                (segment, PageRun::new(pages.end() - 1, pages.end()))
            };
            schedule.departed(WorkerId(worker), &ranges.iter().map(last).collect::<Vec<_>>());
            let held = schedule.held_by(WorkerId(worker));
            assert!(ranges.iter().all(|number| !held.contains(&range(*number))), "what has left is not there");
        }
        Event::Cache { range: number, worker } => schedule.arrived(range(number), WorkerId(worker)),
        Event::Finish { which, done } => {
            let tasks = running(schedule);
            at(which, tasks.len()).into_iter().for_each(|at| schedule.finished(tasks[at].0, tasks[at].1, done));
        }
        Event::Lose(id) => schedule.worker_lost(WorkerId(id)),
        Event::Join(id) => schedule.worker_joined(WorkerId(id), 2, 6 * BYTES),
        Event::Work(id) => return format!("{:?}", schedule.next_task(WorkerId(id))),
        Event::WorkAll => {
            let mut started = Vec::new();
            loop {
                let some = schedule.next_tasks();
                if some.is_empty() {
                    break;
                }
                started.extend(some);
            }
            let waits = schedule.jobs().any(|(_, waiting, _)| waiting > 0);
            let free = schedule.fleet.iter().any(|(_, worker)| worker.free > 0);
            assert!(!(waits && free), "no slot waits while any task waits");
            return format!("{started:?}");
        }
        Event::Transfer => {
            let before = schedule.storages.clone();
            let started = schedule.transfers();
            let limit = schedule.settings.in_flight_bytes;
            for (mount, after) in &schedule.storages {
                let before = before.get(mount).map_or(0, |before| before.bytes);
                let is_urgent = |transfer: &&Transfer| transfer.urgent && storage(transfer.range.segment.0 as u64) == *mount;
                let urgent = started.iter().filter(is_urgent).count() as u64 * BYTES;
                assert!(after.bytes - urgent <= before.max(limit + BYTES - 1), "transfers keep to the budget");
                assert!(after.urgent_bytes < limit + BYTES, "and so do urgent ones");
            }
            return format!("{started:?}");
        }
    }
    String::new()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_books_are_what_brute_force_counts(
        events in prop::collection::vec(event(), 1..60), fair in any::<bool>(), step in prop_oneof![Just(STEP_TASKS), 1..4usize],
        room in room(),
    ) {
        let policy = if fair { Policy::Fair } else { Policy::Fifo };
        let settings = ScheduleSettings { policy, in_flight_bytes: 3 * BYTES, look_ahead_bytes: 8 * BYTES, ..ScheduleSettings::default() };
        let (mut schedule, mut again) = (stepping(3, settings, step), stepping(3, settings, step));
        set_room(&mut schedule, room);
        set_room(&mut again, room);
        let (mut jobs, mut jobs_again) = (0, 0);
        for event in &events {
            let answer = apply(&mut schedule, event, &mut jobs);
            check(&schedule);
            prop_assert_eq!(answer, apply(&mut again, event, &mut jobs_again), "same in, same out");
        }
    }

    #[test]
    fn every_task_runs_and_every_range_is_brought(
        jobs in prop::collection::vec((0..3i32, prop::collection::vec(prop::collection::vec(ranges(30), 0..4), 1..8)), 1..6),
        seed in any::<u64>(), fair in any::<bool>(), workers in 1..5u64, step in prop_oneof![Just(STEP_TASKS), 1..4usize],
        room in room(),
    ) {
        let policy = if fair { Policy::Fair } else { Policy::Fifo };
        let settings = ScheduleSettings { policy, in_flight_bytes: 2 * BYTES, look_ahead_bytes: 4 * BYTES, ..ScheduleSettings::default() };
        let mut schedule = stepping(workers, settings, step);
        set_room(&mut schedule, room);
        let (mut waiting, mut needed) = (0, BTreeSet::new());
        for (id, (priority, tasks)) in (0..).zip(&jobs) {
            waiting += tasks.len();
            needed.extend(tasks.iter().flatten().copied());
            job(&mut schedule, id, *priority, (0..).zip(tasks).map(|(id, ranges)| task(id, ranges, &[])).collect());
        }
        let mut seed = seed;
        for _ in 0..10_000 {
            if waiting == 0 {
                break;
            }
            schedule.transfers();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let worker = WorkerId((seed >> 33) % workers);
            schedule.next_task(worker);
            // Data first: a task ends when its input is there.
            for (number, to) in arriving(&schedule) {
                schedule.arrived(range(number), to);
                needed.remove(&number);
            }
            for (job, task) in running(&schedule) {
                schedule.finished(job, task, true);
                waiting -= 1;
            }
        }
        prop_assert_eq!(waiting, 0);
        prop_assert_eq!(needed.len(), 0);
        prop_assert!(schedule.fleet.iter().all(|(_, worker)| worker.ahead_bytes == 0), "no task is left to be ahead of");
        check(&schedule);
    }
}
