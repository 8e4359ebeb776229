use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use forebay_scheduling::{
    Assignment, BlockRange, JobId, Schedule, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, Transfer,
};
use forebay_types::{PAGE_BYTES, PageRun, SegmentId, WorkerId};

use super::bins;
use super::outcome::MixApartOutcome;
use super::settings::MixApartSettings;
use crate::random::Random;
use crate::workload::Micros;

/// What happens next, in the order of time and, at one time, of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    JobArrives,
    Arrived { range: u64, to: WorkerId },
    Done { job: u64, task: u64 },
}

/// A job that is not done. Its tasks read one range each, numbered from `first_range` on.
struct Job {
    arrived: Micros,
    left: u64,
    first_range: u64,
}

/// Workers with slots, one link to shared storage that serves transfers in the order in which they were started, jobs
/// that arrive by a Poisson process, and tasks that compute for their time once their input is there. Workers copy
/// from each other in no time: their links are taken to be far wider than that of shared storage.
pub(super) struct Engine<'a> {
    settings: &'a MixApartSettings,
    schedule: Schedule,
    events: BinaryHeap<Reverse<(Micros, u64, Event)>>,
    events_made: u64,
    now: Micros,
    random: Random,
    link_free: Micros,
    jobs: BTreeMap<u64, Job>,
    jobs_made: u64,
    ranges_made: u64,
    /// Ranges on their way, with the tasks that hold a slot and wait for them.
    arriving: BTreeMap<u64, Vec<(u64, u64)>>,
    computing: u64,
    holding: u64,
    measures: Measures,
}

#[derive(Default)]
struct Measures {
    arrived: u64,
    done: u64,
    computing: f64,
    holding: f64,
    link: Micros,
    near: u64,
    started: u64,
    jobs: u64,
    job_time: Micros,
}

impl<'a> Engine<'a> {
    pub(super) fn new(settings: &'a MixApartSettings) -> Self {
        let mut schedule = Schedule::new(ScheduleSettings {
            policy: settings.policy,
            in_flight_bytes: (settings.bandwidth_bytes_per_sec as u64).max(2 * settings.task_bytes),
            ..ScheduleSettings::default()
        });
        for worker in 0..u64::from(settings.workers) {
            schedule.worker_joined(WorkerId(worker), settings.slots, u64::MAX / 2);
        }
        Self {
            settings,
            schedule,
            events: BinaryHeap::new(),
            events_made: 0,
            now: 0,
            random: Random::new(settings.seed, 1),
            link_free: 0,
            jobs: BTreeMap::new(),
            jobs_made: 0,
            ranges_made: 0,
            arriving: BTreeMap::new(),
            computing: 0,
            holding: 0,
            measures: Measures::default(),
        }
    }

    pub(super) fn run(mut self) -> MixApartOutcome {
        let end = (self.settings.secs * 1e6) as Micros;
        self.at(0, Event::JobArrives);
        while let Some(Reverse((time, _, event))) = self.events.pop()
            && time <= end
        {
            self.pass(time);
            match event {
                Event::JobArrives => self.job_arrives(),
                Event::Arrived { range, to } => self.arrived(range, to),
                Event::Done { job, task } => self.done(job, task),
            }
            if self.settings.brings_ahead {
                self.schedule.transfers().into_iter().for_each(|transfer| self.bring(transfer));
            }
            for (_, assignment) in self.schedule.next_tasks() {
                self.start(assignment);
            }
        }
        self.pass(end);
        self.outcome(end)
    }

    fn at(&mut self, time: Micros, event: Event) {
        self.events_made += 1;
        self.events.push(Reverse((time, self.events_made, event)));
    }

    /// From when on figures are taken.
    fn warm(&self) -> Micros {
        (self.settings.secs * 1e6 / 4.0) as Micros
    }

    fn counts(&self) -> bool {
        self.now >= self.warm()
    }

    fn pass(&mut self, until: Micros) {
        let time = until.saturating_sub(self.now.max(self.warm())) as f64;
        self.measures.computing += time * self.computing as f64;
        self.measures.holding += time * self.holding as f64;
        self.now = until;
    }

    fn range(&self, number: u64) -> BlockRange {
        let pages = self.settings.task_bytes.div_ceil(PAGE_BYTES) as u32;
        BlockRange { segment: SegmentId(u128::from(number)), pages: PageRun::new(0, pages) }
    }

    fn job_arrives(&mut self) {
        let settings = self.settings;
        let tasks = u64::from(bins::draw(&mut self.random, settings.job_tasks_max));
        let (job, first_range) = (self.jobs_made, self.ranges_made);
        (self.jobs_made, self.ranges_made) = (job + 1, first_range + tasks);
        let specs: Vec<TaskSpec> = (0..tasks)
            .map(|task| {
                let is_cached = self.random.unit() < settings.reuse;
                let holder = WorkerId(self.random.below(settings.workers as usize) as u64);
                let holders = if is_cached { vec![holder] } else { Vec::new() };
                TaskSpec { id: TaskId(task), inputs: vec![TaskInput { range: self.range(first_range + task), holders }] }
            })
            .collect();
        if self.counts() {
            self.measures.arrived += tasks;
        }
        self.jobs.insert(job, Job { arrived: self.now, left: tasks, first_range });
        self.schedule.submit(JobId(job), 0, (settings.task_bytes as f64 / settings.task_secs) as u64);
        self.schedule.add_tasks(JobId(job), specs);
        let mean_secs = bins::mean_tasks(settings.job_tasks_max) * settings.task_secs / settings.offered_tasks;
        let next = self.now + (self.random.exponential(mean_secs) * 1e6) as Micros;
        self.at(next, Event::JobArrives);
    }

    /// A transfer is put at the end of the link's queue.
    fn bring(&mut self, transfer: Transfer) {
        let range = transfer.range.segment.0 as u64;
        let time = (self.settings.task_bytes as f64 / self.settings.bandwidth_bytes_per_sec * 1e6) as Micros;
        self.link_free = self.link_free.max(self.now) + time;
        if self.counts() {
            self.measures.link += time;
        }
        self.arriving.insert(range, Vec::new());
        self.at(self.link_free, Event::Arrived { range, to: transfer.to });
    }

    fn arrived(&mut self, range: u64, to: WorkerId) {
        self.schedule.arrived(self.range(range), to);
        for (job, task) in self.arriving.remove(&range).unwrap_or_default() {
            self.compute(job, task);
        }
    }

    fn start(&mut self, assignment: Assignment) {
        let (job, task) = (assignment.job.0, assignment.task.0);
        self.holding += 1;
        if self.counts() {
            self.measures.started += 1;
            self.measures.near += u64::from(2 * assignment.local_bytes >= assignment.input_bytes);
        }
        let from_storage = assignment.bring.into_iter().filter(|transfer| transfer.from == Source::Storage);
        from_storage.for_each(|transfer| self.bring(transfer));
        let range = self.jobs[&job].first_range + task;
        match self.arriving.get_mut(&range) {
            Some(waiting) => waiting.push((job, task)),
            None => self.compute(job, task),
        }
    }

    fn compute(&mut self, job: u64, task: u64) {
        self.computing += 1;
        self.at(self.now + (self.settings.task_secs * 1e6) as Micros, Event::Done { job, task });
    }

    fn done(&mut self, job_id: u64, task: u64) {
        self.computing -= 1;
        self.holding -= 1;
        self.schedule.finished(JobId(job_id), TaskId(task), true);
        let counts = self.counts();
        let job = self.jobs.get_mut(&job_id).expect("its tasks are not all done");
        job.left -= 1;
        let is_over = job.left == 0;
        if counts {
            self.measures.done += 1;
            self.measures.jobs += u64::from(is_over);
            self.measures.job_time += if is_over { self.now - job.arrived } else { 0 };
        }
        if is_over {
            self.jobs.remove(&job_id);
            self.schedule.close(JobId(job_id));
        }
    }

    fn outcome(self, end: Micros) -> MixApartOutcome {
        let (settings, measures) = (self.settings, &self.measures);
        let time = (end - self.warm()) as f64;
        let slots = f64::from(settings.workers * settings.slots);
        MixApartOutcome {
            arrived: measures.arrived,
            done: measures.done,
            computing: measures.computing / time,
            waiting: (measures.holding - measures.computing) / time / slots,
            link: measures.link as f64 / time,
            local: measures.near as f64 / measures.started.max(1) as f64,
            job_secs: measures.job_time as f64 / 1e6 / measures.jobs.max(1) as f64,
        }
    }
}
