//! How long the schedule takes for an event at ten thousand workers: a bar in time, measured as CPU time of the thread.

use std::collections::{BTreeMap, VecDeque};

use cpu_time::ThreadTime;
use forebay_scheduling::{BlockRange, JobId, Policy, Schedule, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, Transfer};
use forebay_types::{MountId, PageRun, SegmentId, WorkerId};

use super::MixApartBar;
use crate::random::Random;

const WORKERS: u64 = 10_000;
const SLOTS: u32 = 2;
const QUEUED: u64 = 100_000;
const EVENTS: usize = 20_000;
/// Runs of the same events; of each step the middle CPU time counts: what the machine does to one run is left out, what a step takes
/// mostly is not.
const RUNS: usize = 3;
/// A segment of 64 MB.
const PAGES: u32 = 15_625;
/// Segments that tasks of many jobs read.
const POPULAR: usize = 1_000;
const ROOM_BYTES: u64 = 64 << 30;
const LIMIT_MS: f64 = 5.0;

/// What the schedule is told.
enum Event {
    Submit {
        job: JobId,
        priority: i32,
        tasks: Vec<TaskSpec>,
    },
    Arrived(Transfer),
    Finished {
        job: JobId,
        task: TaskId,
        is_last: bool,
    },
    Priority(JobId, i32),
    /// A job is over before its tasks are done.
    Cancelled(JobId),
    /// A worker is lost and comes back empty.
    Replaced(WorkerId),
}

/// Jobs of one size and one policy over the whole cluster, with a queue that is kept full.
struct World {
    schedule: Schedule,
    random: Random,
    job_tasks: u64,
    jobs_made: u64,
    ranges_made: u64,
    /// What each of the jobs that are not done has left.
    left: BTreeMap<u64, u64>,
    queued: u64,
    on_the_way: VecDeque<Transfer>,
    running: Vec<(WorkerId, JobId, TaskId)>,
}

impl World {
    fn new(policy: Policy, job_tasks: u64) -> Self {
        // 100 Gbit/s for a second.
        let settings = ScheduleSettings {
            policy,
            in_flight_bytes: 12_500_000_000,
            look_ahead_bytes: 64 << 30,
            ..ScheduleSettings::default()
        };
        let mut schedule = Schedule::new(settings);
        (0..WORKERS).for_each(|worker| schedule.worker_joined(WorkerId(worker), SLOTS, ROOM_BYTES));
        let mut world = Self {
            schedule,
            random: Random::new(1, 1),
            job_tasks,
            jobs_made: 0,
            ranges_made: POPULAR as u64,
            left: BTreeMap::new(),
            queued: 0,
            on_the_way: VecDeque::new(),
            running: Vec::new(),
        };
        // Every slot is taken, and the queue is full.
        while world.queued < QUEUED {
            let job = world.job();
            world.tell(job);
        }
        world
    }

    fn input(&mut self) -> TaskInput {
        // A popular one has the same holder for all tasks; of the others 80 % are somewhere.
        let (number, is_cached) = match self.random.unit() < 0.1 {
            true => (self.random.below(POPULAR) as u64, true),
            false => {
                self.ranges_made += 1;
                (self.ranges_made, self.random.unit() < 0.8)
            }
        };
        let holder = WorkerId(if number < POPULAR as u64 { number } else { self.random.below(WORKERS as usize) as u64 });
        let range = BlockRange { segment: SegmentId(u128::from(number)), pages: PageRun::new(0, PAGES) };
        let holders = if is_cached { vec![holder] } else { Vec::new() };
        TaskInput { range, storage: MountId(1), holders, routed: Vec::new() }
    }

    /// A job whose tasks read one to three segments each.
    fn job(&mut self) -> Event {
        let job = self.jobs_made;
        self.jobs_made += 1;
        let priority = self.random.below(3) as i32;
        let mut tasks = Vec::new();
        for task in 0..self.job_tasks {
            let inputs = (0..1 + self.random.below(3)).map(|_| self.input()).collect();
            tasks.push(TaskSpec { id: TaskId(task), inputs });
        }
        self.left.insert(job, self.job_tasks);
        self.queued += self.job_tasks;
        Event::Submit { job: JobId(job), priority, tasks }
    }

    /// What happens next: mostly transfers and tasks that end, and a new job when the queue is no longer full.
    fn next(&mut self) -> Event {
        let roll = self.random.unit();
        if self.queued < QUEUED {
            return self.job();
        }
        if roll < 0.002 {
            let lost = WorkerId(self.random.below(WORKERS as usize) as u64);
            self.on_the_way.retain(|transfer| transfer.to != lost);
            let before = self.running.len();
            self.running.retain(|(worker, ..)| *worker != lost);
            self.queued += (before - self.running.len()) as u64;
            return Event::Replaced(lost);
        }
        if roll < 0.003 {
            let job = *self.left.keys().nth(self.random.below(self.left.len())).expect("jobs are queued");
            let before = self.running.len();
            self.running.retain(|(_, of, _)| of.0 != job);
            let was_running = (before - self.running.len()) as u64;
            self.queued -= self.left.remove(&job).unwrap_or_default() - was_running;
            return Event::Cancelled(JobId(job));
        }
        if roll < 0.01 {
            let job = JobId(self.random.below(self.jobs_made as usize) as u64);
            return Event::Priority(job, self.random.below(3) as i32);
        }
        if roll < 0.5
            && let Some(transfer) = self.on_the_way.pop_front()
        {
            return Event::Arrived(transfer);
        }
        let (_, job, task) = self.running.swap_remove(self.random.below(self.running.len()));
        let left = self.left.get_mut(&job.0).expect("its tasks are not all done");
        *left -= 1;
        let is_last = *left == 0;
        if is_last {
            self.left.remove(&job.0);
        }
        Event::Finished { job, task, is_last }
    }

    /// Tells the schedule, and does what it answers; the times of that without what this model does, in milliseconds. The
    /// first is the event with its answer. The others are of further slots that it freed, which the schedule fills in steps
    /// so that whatever else happens is heard in between.
    fn tell(&mut self, event: Event) -> Vec<f64> {
        let schedule = &mut self.schedule;
        let started = ThreadTime::now();
        match event {
            Event::Submit { job, priority, tasks } => {
                schedule.submit(job, priority, 3_200_000);
                schedule.add_tasks(job, tasks);
            }
            Event::Arrived(transfer) => schedule.arrived(transfer.range, transfer.to),
            Event::Finished { job, task, is_last } => {
                schedule.finished(job, task, true);
                if is_last {
                    schedule.close(job);
                }
            }
            Event::Cancelled(job) => schedule.close(job),
            Event::Priority(job, priority) => schedule.set_priority(job, priority),
            Event::Replaced(worker) => {
                schedule.worker_lost(worker);
                schedule.worker_joined(worker, SLOTS, ROOM_BYTES);
            }
        }
        let transfers = schedule.transfers();
        let mut tasks = schedule.next_tasks();
        let mut steps = vec![ms(started)];
        self.on_the_way.extend(transfers);
        while !tasks.is_empty() {
            for (worker, assignment) in tasks {
                self.queued -= 1;
                self.running.push((worker, assignment.job, assignment.task));
                self.on_the_way.extend(assignment.bring.into_iter().filter(|transfer| transfer.from == Source::Storage));
            }
            let started = ThreadTime::now();
            tasks = self.schedule.next_tasks();
            steps.push(ms(started));
        }
        steps
    }
}

fn ms(since: ThreadTime) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// The steps of each event, with the queue full at every one.
fn run(policy: Policy, job_tasks: u64) -> Vec<Vec<f64>> {
    let mut world = World::new(policy, job_tasks);
    (0..EVENTS)
        .map(|_| {
            let event = world.next();
            world.tell(event)
        })
        .collect()
}

/// Of each step of each event the middle time of some runs of the same events.
fn middle(policy: Policy, job_tasks: u64) -> Vec<Vec<f64>> {
    let runs: Vec<Vec<Vec<f64>>> = (0..RUNS).map(|_| run(policy, job_tasks)).collect();
    let step = |event: usize, step: usize| {
        let mut times: Vec<f64> = runs.iter().map(|events| events[event][step]).collect();
        times.sort_by(f64::total_cmp);
        times[RUNS / 2]
    };
    let events = runs[0].iter().enumerate();
    events.map(|(event, steps)| (0..steps.len()).map(|at| step(event, at)).collect()).collect()
}

pub(super) fn bars() -> Vec<MixApartBar> {
    let mut bars = Vec::new();
    for (name, policy) in [("FIFO", Policy::Fifo), ("Fair", Policy::Fair)] {
        for job_tasks in [10, 300, 1_000] {
            let events = middle(policy, job_tasks);
            let whole = events.iter().map(|steps| steps.iter().sum()).fold(0.0, f64::max);
            let mut times: Vec<f64> = events.into_iter().flatten().collect();
            times.sort_by(f64::total_cmp);
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
            let detail = format!(
                "p50 {:.4} ms, p99 {:.3} ms, {EVENTS} events in {} steps, slowest with all its steps {whole:.1} ms",
                at(0.5),
                at(0.99),
                times.len()
            );
            let what = format!("{name}, {} jobs of {job_tasks} tasks: slowest, ms", QUEUED / job_tasks);
            bars.push(MixApartBar::at_most(LIMIT_MS, at(1.0), what, detail));
        }
    }
    bars
}
