//! Time, slots and one link around the schedule as it is: what it says is done, and it hears what happened.

use std::collections::BTreeMap;

use forebay_scheduling::{
    Assignment, BlockRange, JobId, Schedule, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, Transfer,
};
use forebay_types::{MountId, PAGE_BYTES, PageRun, SegmentId, WorkerId};

use super::jobs::MixApartJob;
use super::measures::Measures;
use super::settings::MixApartSettings;
use crate::events::Events;
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
    number: usize,
    arrived: Micros,
    task_time: Micros,
    left: u64,
    first_range: u64,
}

/// Workers with slots, one link to shared storage that serves transfers in the order in which they were started, and tasks
/// that compute for their time once their input is there. Workers copy from each other in no time: their links are taken
/// to be far wider than that of shared storage.
pub(super) struct Engine<'a, Jobs> {
    settings: &'a MixApartSettings,
    /// Jobs to come, in the order of their arrival.
    to_come: Jobs,
    next: Option<MixApartJob>,
    schedule: Schedule,
    events: Events<Event>,
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

impl<'a, Jobs: Iterator<Item = MixApartJob>> Engine<'a, Jobs> {
    /// Figures are taken from `warm` on.
    pub(super) fn new(settings: &'a MixApartSettings, to_come: Jobs, warm: Micros) -> Self {
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
            to_come,
            next: None,
            schedule,
            events: Events::new(),
            now: 0,
            random: Random::new(settings.seed, 2),
            link_free: 0,
            jobs: BTreeMap::new(),
            jobs_made: 0,
            ranges_made: 0,
            arriving: BTreeMap::new(),
            computing: 0,
            holding: 0,
            measures: Measures { warm, ..Measures::default() },
        }
    }

    /// Until `end`, or until every job is done.
    pub(super) fn run(mut self, end: Micros) -> Measures {
        self.look_out();
        while let Some((time, event)) = self.events.pop()
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
            self.start_tasks();
        }
        if end < Micros::MAX {
            self.pass(end);
        }
        self.measures
    }

    /// The next job is waited for.
    fn look_out(&mut self) {
        self.next = self.to_come.next();
        if let Some(job) = &self.next {
            self.events.push((job.at_secs * 1e6) as Micros, Event::JobArrives);
        }
    }

    fn pass(&mut self, until: Micros) {
        self.measures.pass(self.now, until, self.computing, self.holding);
        self.now = until;
    }

    fn range(&self, number: u64) -> BlockRange {
        let pages = self.settings.task_bytes.div_ceil(PAGE_BYTES) as u32;
        BlockRange { segment: SegmentId(u128::from(number)), pages: PageRun::new(0, pages) }
    }

    fn job_arrives(&mut self) {
        let settings = self.settings;
        let Some(new) = self.next.take() else { return };
        let (tasks, job, first_range) = (u64::from(new.tasks), self.jobs_made, self.ranges_made);
        (self.jobs_made, self.ranges_made) = (job + 1, first_range + tasks);
        // As many as the ratio says, the odd one by chance, at places by chance.
        let mut cached = (tasks as f64 * new.reuse + self.random.unit()) as u64;
        let mut specs = Vec::with_capacity(tasks as usize);
        for task in 0..tasks {
            let is_cached = (self.random.below((tasks - task) as usize) as u64) < cached;
            cached -= u64::from(is_cached);
            let holder = WorkerId(self.random.below(settings.workers as usize) as u64);
            let holders = if is_cached { vec![holder] } else { Vec::new() };
            let input = TaskInput { range: self.range(first_range + task), storage: MountId(1), holders, routed: Vec::new() };
            specs.push(TaskSpec { id: TaskId(task), inputs: vec![input] });
        }
        self.measures.arrived(self.now, tasks);
        let task_time = (new.task_secs * 1e6) as Micros;
        self.jobs.insert(job, Job { number: job as usize, arrived: self.now, task_time, left: tasks, first_range });
        self.schedule.submit(JobId(job), new.priority, (settings.task_bytes as f64 / new.task_secs) as u64);
        self.schedule.add_tasks(JobId(job), specs);
        self.look_out();
    }

    /// A transfer is put at the end of the link's queue.
    fn bring(&mut self, transfer: Transfer) {
        let range = transfer.range.segment.0 as u64;
        let time = (self.settings.task_bytes as f64 / self.settings.bandwidth_bytes_per_sec * 1e6) as Micros;
        self.link_free = self.link_free.max(self.now) + time;
        self.measures.brought(self.now, time);
        self.arriving.insert(range, Vec::new());
        self.events.push(self.link_free, Event::Arrived { range, to: transfer.to });
    }

    fn arrived(&mut self, range: u64, to: WorkerId) {
        self.schedule.arrived(self.range(range), to);
        self.measures.last_arrival = self.now;
        for (job, task) in self.arriving.remove(&range).unwrap_or_default() {
            self.compute(job, task);
        }
    }

    /// Fills the slots, which takes several steps where many are free.
    fn start_tasks(&mut self) {
        loop {
            let started = self.schedule.next_tasks();
            if started.is_empty() {
                break;
            }
            started.into_iter().for_each(|(_, assignment)| self.start(assignment));
        }
    }

    fn start(&mut self, assignment: Assignment) {
        let (job, task) = (assignment.job.0, assignment.task.0);
        self.holding += 1;
        self.measures.started(self.now, 2 * assignment.local_bytes >= assignment.input_bytes);
        let from_storage = assignment.bring.into_iter().filter(|transfer| transfer.from == Source::Storage);
        from_storage.for_each(|transfer| self.bring(transfer));
        let range = self.jobs[&job].first_range + task;
        if let Some(waiting) = self.arriving.get_mut(&range) { waiting.push((job, task)) } else { self.compute(job, task) }
    }

    fn compute(&mut self, job: u64, task: u64) {
        self.computing += 1;
        self.events.push(self.now + self.jobs[&job].task_time, Event::Done { job, task });
    }

    fn done(&mut self, job_id: u64, task: u64) {
        self.computing -= 1;
        self.holding -= 1;
        self.schedule.finished(JobId(job_id), TaskId(task), true);
        let job = self.jobs.get_mut(&job_id).expect("its tasks are not all done");
        job.left -= 1;
        self.measures.done(self.now);
        if job.left == 0 {
            self.measures.job_done(job.number, job.arrived, self.now);
            self.jobs.remove(&job_id);
            self.schedule.close(JobId(job_id));
        }
    }
}
