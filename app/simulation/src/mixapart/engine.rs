//! Time, slots, tiers and one link around the schedule as it is: what it says is done, and it hears what happened.

use std::collections::{BTreeMap, BTreeSet};

use forebay_scheduling::{
    Assignment, BlockRange, IoRates, JobId, Schedule, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, room_bytes,
};
use forebay_types::{MountId, OperationId, PageRun, SegmentId, WorkerId};

use super::cache::{Cache, Gone};
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
    /// Of a segment, for a task that waits or ahead of one of a job.
    Arrived {
        segment: u64,
        to: WorkerId,
        ahead_for: Option<u64>,
    },
    /// A task has read its input from a disk.
    Begins {
        job: u64,
        task: u64,
    },
    Done {
        job: u64,
        task: u64,
        took: Micros,
    },
}

/// A job that is not done. Its tasks read one segment each, numbered from `first` on, within the working set if there is one.
struct Job {
    number: usize,
    arrived: Micros,
    task_secs: f64,
    /// What its tasks are like, to who learns their rates.
    kind: String,
    left: u64,
    first: u64,
    set: Option<u64>,
}

impl Job {
    fn segment(&self, task: u64) -> u64 {
        let segment = self.first + task;
        self.set.map_or(segment, |set| segment % set)
    }
}

/// Workers with slots and tiers, one link to shared storage that serves transfers in the order in which they were started, and tasks
/// that compute for their time once their input is there. Workers copy from each other in no time: their links are taken
/// to be far wider than that of shared storage.
pub(super) struct Engine<'a, Jobs> {
    settings: &'a MixApartSettings,
    coming: Coming<Jobs>,
    schedule: Schedule,
    /// What the kinds of jobs read a second, as far as tasks that are done have shown.
    rates: IoRates,
    /// None where tiers have room for everything.
    cache: Option<Cache>,
    clock: Clock,
    chance: Chance,
    link: Link,
    jobs: BTreeMap<u64, Job>,
    /// Segments of the working set, with the jobs of which a task waits to read them.
    readers: BTreeMap<u64, BTreeSet<u64>>,
    slots: Slots,
    measures: Measures,
}

/// Jobs to come, and what has come of them.
struct Coming<Jobs> {
    /// In the order of their arrival.
    jobs: Jobs,
    next: Option<MixApartJob>,
    made: u64,
    segments_made: u64,
}

/// Time, and what is to happen.
struct Clock {
    now: Micros,
    events: Events<Event>,
}

/// What is drawn at random.
struct Chance {
    /// What of a job's input is held, and where.
    inputs: Random,
    /// How long tasks compute.
    times: Random,
}

/// The link to shared storage.
#[derive(Default)]
struct Link {
    free_at: Micros,
    /// Segments on their way, with the tasks that hold a slot and wait for them.
    arriving: BTreeMap<(u64, WorkerId), Vec<(u64, u64)>>,
}

/// Tasks that hold a slot, and those of them that compute.
#[derive(Default)]
struct Slots {
    holding: u64,
    computing: u64,
}

impl<'a, Jobs: Iterator<Item = MixApartJob>> Engine<'a, Jobs> {
    /// Figures are taken from `warm` on.
    pub(super) fn new(settings: &'a MixApartSettings, to_come: Jobs, warm: Micros) -> Self {
        let mut schedule = Schedule::new(ScheduleSettings {
            policy: settings.policy,
            in_flight_bytes: (settings.bandwidth_bytes_per_sec as u64).max(2 * settings.task_bytes),
            ..ScheduleSettings::default()
        });
        let room = settings.worker_bytes().map_or(u64::MAX / 2, |(dram, _)| room_bytes(dram));
        for worker in 0..u64::from(settings.workers) {
            schedule.worker_joined(WorkerId(worker), settings.slots, room);
        }
        Self {
            settings,
            // Segments below are of the working set.
            coming: Coming { jobs: to_come, next: None, made: 0, segments_made: u64::from(settings.working_set) },
            schedule,
            rates: IoRates::default(),
            cache: Cache::new(settings),
            clock: Clock { now: 0, events: Events::new() },
            chance: Chance { inputs: Random::new(settings.seed, 2), times: Random::new(settings.seed, 3) },
            link: Link::default(),
            jobs: BTreeMap::new(),
            readers: BTreeMap::new(),
            slots: Slots::default(),
            measures: Measures { warm, ..Measures::default() },
        }
    }

    /// Until `end`, or until every job is done.
    pub(super) fn run(mut self, end: Micros) -> Measures {
        self.look_out();
        while let Some((time, event)) = self.clock.events.pop()
            && time <= end
        {
            self.pass(time);
            match event {
                Event::JobArrives => self.job_arrives(),
                Event::Arrived { segment, to, ahead_for } => self.arrived(segment, to, ahead_for),
                Event::Begins { job, task } => self.compute(job, task),
                Event::Done { job, task, took } => self.done(job, task, took),
            }
            if self.settings.brings_ahead {
                for transfer in self.schedule.transfers() {
                    let segment = transfer.range.segment.0 as u64;
                    let ahead_for = self.readers.get(&segment).and_then(BTreeSet::first).copied();
                    self.bring(segment, transfer.to, ahead_for);
                }
            }
            self.start_tasks();
        }
        if end < Micros::MAX {
            self.pass(end);
        }
        self.measures.came(self.cache.as_ref().map(Cache::counts));
        self.measures.copies = self.cache.as_ref().map_or(0, Cache::copies);
        self.measures
    }

    /// The next job is waited for.
    fn look_out(&mut self) {
        self.coming.next = self.coming.jobs.next();
        if let Some(job) = &self.coming.next {
            self.clock.events.push((job.at_secs * 1e6) as Micros, Event::JobArrives);
        }
    }

    fn pass(&mut self, until: Micros) {
        if self.clock.now < self.measures.warm && until >= self.measures.warm {
            self.measures.came_before = self.cache.as_ref().map(Cache::counts).unwrap_or_default();
        }
        self.measures.pass(self.clock.now, until, self.slots.computing, self.slots.holding);
        self.clock.now = until;
    }

    fn range(&self, segment: u64) -> BlockRange {
        BlockRange { segment: SegmentId(u128::from(segment)), pages: PageRun::new(0, self.settings.pages()) }
    }

    fn job_arrives(&mut self) {
        let Some(new) = self.coming.next.take() else { return };
        let (tasks, id) = (u64::from(new.tasks), self.coming.made);
        self.coming.made += 1;
        let set = new.first.map(|_| u64::from(self.settings.working_set).max(1));
        let first = new.first.unwrap_or(self.coming.segments_made);
        if new.first.is_none() {
            self.coming.segments_made += tasks;
        }
        let (kind, task_secs) = (format!("tasks of {} s", new.task_secs), new.task_secs);
        let job = Job { number: id as usize, arrived: self.clock.now, task_secs, kind, left: tasks, first, set };
        let specs = self.specs(&new, &job, id);
        let rate = self.rates.estimate(&job.kind);
        let held = specs.iter().filter(|spec| spec.inputs.iter().all(|input| !input.holders.is_empty())).count() as u64;
        self.measures.arrived(self.clock.now, tasks, held);
        self.measures.rate(self.clock.now, rate, self.settings.task_bytes as f64 / task_secs);
        self.jobs.insert(id, job);
        self.schedule.submit(JobId(id), new.priority, rate);
        self.schedule.add_tasks(JobId(id), specs);
        self.look_out();
    }

    /// A job's tasks, with who holds what they read: of a working set those whose tiers have kept it, else as many as the ratio says,
    /// the odd one by chance, at places by chance.
    fn specs(&mut self, new: &MixApartJob, job: &Job, id: u64) -> Vec<TaskSpec> {
        let tasks = u64::from(new.tasks);
        let mut cached = (tasks as f64 * new.reuse + self.chance.inputs.unit()) as u64;
        let mut specs = Vec::with_capacity(tasks as usize);
        for task in 0..tasks {
            let segment = job.segment(task);
            let holders = match &self.cache {
                Some(cache) => {
                    self.readers.entry(segment).or_default().insert(id);
                    cache.holders(segment)
                }
                None => {
                    let is_cached = (self.chance.inputs.below((tasks - task) as usize) as u64) < cached;
                    cached -= u64::from(is_cached);
                    let holder = WorkerId(self.chance.inputs.below(self.settings.workers as usize) as u64);
                    if is_cached { vec![holder] } else { Vec::new() }
                }
            };
            let input = TaskInput { range: self.range(segment), storage: MountId(1), holders, routed: Vec::new() };
            specs.push(TaskSpec { id: TaskId(task), inputs: vec![input] });
        }
        specs
    }

    /// A transfer is put at the end of the link's queue.
    fn bring(&mut self, segment: u64, to: WorkerId, ahead_for: Option<u64>) {
        let bytes = self.cache.as_mut().map_or(self.settings.task_bytes, |cache| cache.begin(to, segment));
        let time = (bytes as f64 / self.settings.bandwidth_bytes_per_sec * 1e6) as Micros;
        self.link.free_at = self.link.free_at.max(self.clock.now) + time;
        self.measures.brought(self.clock.now, time);
        self.link.arriving.entry((segment, to)).or_default();
        self.clock.events.push(self.link.free_at, Event::Arrived { segment, to, ahead_for });
    }

    fn arrived(&mut self, segment: u64, to: WorkerId, ahead_for: Option<u64>) {
        self.measures.last_arrival = self.clock.now;
        let (mut is_whole, mut gone) = (true, Gone::new());
        if let Some(cache) = &mut self.cache {
            gone = cache.arrive(to, segment, ahead_for.map(OperationId), self.clock.now);
            is_whole = cache.has(to, segment);
        }
        let range = self.range(segment);
        if is_whole {
            self.schedule.arrived(range, to)
        } else {
            self.schedule.failed(range, to)
        }
        self.departed(to, &gone);
        for (job, task) in self.link.arriving.remove(&(segment, to)).unwrap_or_default() {
            self.read(job, task, to);
        }
    }

    /// The schedule hears at once of what has left a worker's tiers.
    fn departed(&mut self, from: WorkerId, gone: &[(SegmentId, PageRun)]) {
        if !gone.is_empty() {
            self.schedule.departed(from, gone);
        }
    }

    /// Fills the slots, which takes several steps where many are free.
    fn start_tasks(&mut self) {
        loop {
            let started = self.schedule.next_tasks();
            if started.is_empty() {
                break;
            }
            started.into_iter().for_each(|(worker, assignment)| self.start(worker, assignment));
        }
    }

    /// A task has a slot. It reads beside itself, unless another worker has what it reads.
    fn start(&mut self, worker: WorkerId, assignment: Assignment) {
        let (job, task) = (assignment.job.0, assignment.task.0);
        self.slots.holding += 1;
        self.measures.started(self.clock.now, 2 * assignment.local_bytes >= assignment.input_bytes);
        let segment = self.jobs[&job].segment(task);
        if let Some(readers) = self.readers.get_mut(&segment) {
            readers.remove(&job);
        }
        let mut at = worker;
        for transfer in assignment.bring {
            match transfer.from {
                Source::Storage => self.bring(segment, transfer.to, None),
                Source::Peer(peer) => at = peer,
            }
        }
        let has = |cache: &Cache| cache.has(at, segment);
        if self.cache.as_ref().is_some_and(has) {
            self.read(job, task, at);
        } else if let Some(waiting) = self.link.arriving.get_mut(&(segment, at)) {
            waiting.push((job, task));
        } else if self.cache.is_none() {
            self.read(job, task, at);
        } else {
            // It has gone since the job told who holds it.
            self.measures.misrouted(self.clock.now);
            self.schedule.evicted(self.range(segment), at);
            self.bring(segment, at, None);
            self.link.arriving.entry((segment, at)).or_default().push((job, task));
        }
    }

    /// A task's input is at a worker: it computes on it, once a disk has read what is on disk only.
    fn read(&mut self, job: u64, task: u64, at: WorkerId) {
        let segment = self.jobs[&job].segment(task);
        let mut begins = self.clock.now;
        if let Some(cache) = &mut self.cache {
            let (bytes, ready, gone) = cache.read(at, segment, OperationId(job), self.clock.now);
            self.measures.read(self.clock.now, self.settings.task_bytes, bytes);
            begins = ready;
            self.departed(at, &gone);
        }
        if begins > self.clock.now {
            self.clock.events.push(begins, Event::Begins { job, task })
        } else {
            self.compute(job, task)
        }
    }

    fn compute(&mut self, job: u64, task: u64) {
        self.slots.computing += 1;
        let mut secs = self.jobs[&job].task_secs;
        if self.settings.spread > 0.0 {
            secs *= 1.0 + self.settings.spread * (2.0 * self.chance.times.unit() - 1.0);
        }
        let took = (secs * 1e6) as Micros;
        self.clock.events.push(self.clock.now + took, Event::Done { job, task, took });
    }

    fn done(&mut self, job_id: u64, task: u64, took: Micros) {
        self.slots.computing -= 1;
        self.slots.holding -= 1;
        self.schedule.finished(JobId(job_id), TaskId(task), true);
        let job = self.jobs.get_mut(&job_id).expect("its tasks are not all done");
        self.rates.observe(&job.kind, self.settings.task_bytes, took as f64 / 1e6);
        self.schedule.set_io_rate(JobId(job_id), self.rates.estimate(&job.kind));
        job.left -= 1;
        self.measures.done(self.clock.now);
        if job.left == 0 {
            self.measures.job_done(job.number, job.arrived, self.clock.now);
            self.jobs.remove(&job_id);
            self.schedule.close(JobId(job_id));
            if let Some(cache) = &mut self.cache {
                cache.ended(OperationId(job_id), self.clock.now);
            }
        }
    }
}
