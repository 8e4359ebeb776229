use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use forebay_types::WorkerId;

use super::model::{BlockRange, JobId, ScheduleSettings, TaskId};

/// Who needs what, who holds what, and what is on its way.
///
/// Told of every event ([`Schedule::submit`], [`Schedule::arrived`], [`Schedule::finished`], ...), it answers
/// [`Schedule::transfers`] and [`Schedule::next_task`]. A function of the events alone: same in, same out. An event costs
/// O(log n) for each task that it touches.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) settings: ScheduleSettings,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    /// Workers by what waits and runs there, in bytes a slot.
    pub(super) by_load: BTreeSet<(u64, WorkerId)>,
    /// Workers with a free slot.
    pub(super) free: BTreeSet<WorkerId>,
    /// Of these, those beside input of a task that waits.
    pub(super) free_beside: BTreeSet<WorkerId>,
    pub(super) slots: u64,
    pub(super) jobs: BTreeMap<JobId, Job>,
    pub(super) submitted: u64,
    pub(super) ranges: Vec<Range>,
    range_at: HashMap<BlockRange, RangeIx>,
    unused: Vec<RangeIx>,
    /// Bytes on their way from shared storage.
    pub(super) arriving_bytes: u64,
}

/// A place in `Schedule::ranges`.
pub(super) type RangeIx = u32;

#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub slots: u32,
    pub free: u32,
    pub room_bytes: u64,
    /// Pending tasks that have input here or arriving here, a job at a time, largest share first.
    pub near: BTreeMap<JobId, BTreeSet<(Reverse<u32>, TaskId)>>,
    /// Bytes here or arriving here that pending tasks will read.
    pub waiting_bytes: u64,
    pub running_bytes: u64,
    pub running: BTreeSet<(JobId, TaskId)>,
    pub holds: BTreeSet<RangeIx>,
    pub expects: BTreeSet<RangeIx>,
}

impl Worker {
    pub fn load(&self) -> u64 {
        (self.waiting_bytes + self.running_bytes) / u64::from(self.slots.max(1))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub priority: i32,
    pub arrival: u64,
    pub io_rate: u64,
    pub tasks: BTreeMap<TaskId, Task>,
    pub pending: usize,
    pub running: usize,
    /// Pending tasks without input.
    pub anywhere: BTreeSet<TaskId>,
    /// Pending tasks with some input at, or on its way to, some worker.
    pub near: BTreeSet<TaskId>,
    /// Ranges that pending tasks need and nobody has, most wanted first.
    pub missing: BTreeSet<(Reverse<u32>, RangeIx)>,
    /// Inputs that are cached or on their way and not analysed yet.
    pub ready: usize,
    /// Bytes brought for this job's tasks that have not started.
    pub ahead_bytes: u64,
    pub passed_over: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub inputs: Vec<RangeIx>,
    pub bytes: u64,
    /// Bytes of the input at, or on their way to, each worker that has some; of a pending task only.
    pub near: Vec<(WorkerId, u64)>,
    pub on: Option<WorkerId>,
}

impl Task {
    /// The share of the input, in millionths, that `bytes` of it are.
    fn share(&self, bytes: u64) -> u32 {
        (u128::from(bytes) * 1_000_000 / u128::from(self.bytes.max(1))) as u32
    }
}

#[derive(Clone, Debug)]
pub(super) struct Range {
    pub key: BlockRange,
    pub bytes: u64,
    pub holders: Vec<WorkerId>,
    /// To whom it is on its way from shared storage.
    pub arriving: Option<WorkerId>,
    /// For which job it was brought ahead; none once a task has started to read it.
    pub ahead_of: Option<JobId>,
    /// Pending tasks that read it.
    pub readers: BTreeSet<(JobId, TaskId)>,
    /// How many of them each job has.
    pub jobs: BTreeMap<JobId, u32>,
    /// The demand under which it stands in the jobs' `missing`.
    filed: u32,
    /// Tasks, pending or running, that read it.
    pub users: u32,
}

impl Range {
    pub fn is_missing(&self) -> bool {
        self.holders.is_empty() && self.arriving.is_none()
    }

    /// Workers that have it or will.
    fn places(&self) -> impl Iterator<Item = WorkerId> {
        let arriving = self.arriving.filter(|worker| !self.holders.contains(worker));
        self.holders.iter().copied().chain(arriving)
    }
}

impl Schedule {
    /// An empty cluster without jobs.
    pub fn new(settings: ScheduleSettings) -> Self {
        Self {
            settings,
            workers: BTreeMap::new(),
            by_load: BTreeSet::new(),
            free: BTreeSet::new(),
            free_beside: BTreeSet::new(),
            slots: 0,
            jobs: BTreeMap::new(),
            submitted: 0,
            ranges: Vec::new(),
            range_at: HashMap::new(),
            unused: Vec::new(),
            arriving_bytes: 0,
        }
    }

    /// Changes a worker and files it under its new load and its free slots.
    pub(super) fn with_worker(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let before = worker.load();
        change(worker);
        let after = worker.load();
        if before != after {
            self.by_load.remove(&(before, id));
            self.by_load.insert((after, id));
        }
        for (set, belongs) in
            [(&mut self.free, worker.free > 0), (&mut self.free_beside, worker.free > 0 && !worker.near.is_empty())]
        {
            match belongs {
                true => set.insert(id),
                false => set.remove(&id),
            };
        }
    }

    pub(super) fn range(&self, key: &BlockRange) -> Option<RangeIx> {
        self.range_at.get(key).copied()
    }

    /// The place of a range, a new one when no task has named it yet.
    pub(super) fn range_or_new(&mut self, key: BlockRange) -> RangeIx {
        if let Some(ix) = self.range(&key) {
            return ix;
        }
        let range = Range {
            key,
            bytes: key.len_bytes(),
            holders: Vec::new(),
            arriving: None,
            ahead_of: None,
            readers: BTreeSet::new(),
            jobs: BTreeMap::new(),
            filed: 0,
            users: 0,
        };
        let ix = match self.unused.pop() {
            Some(ix) => {
                self.ranges[ix as usize] = range;
                ix
            }
            None => {
                self.ranges.push(range);
                (self.ranges.len() - 1) as RangeIx
            }
        };
        self.range_at.insert(key, ix);
        ix
    }

    /// Forgets a range that no task reads and that is not on its way.
    pub(super) fn forget_unused(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        if range.users > 0 || range.arriving.is_some() {
            return;
        }
        let (key, holders) = (range.key, std::mem::take(&mut range.holders));
        // The place may be listed once only.
        if self.range_at.remove(&key).is_none() {
            return;
        }
        self.release_ahead(ix);
        for holder in holders {
            if let Some(worker) = self.workers.get_mut(&holder) {
                worker.holds.remove(&ix);
            }
        }
        self.unused.push(ix);
    }

    /// A task waits for a slot from now on.
    pub(super) fn make_pending(&mut self, job_id: JobId, task_id: TaskId) {
        let job = self.jobs.get_mut(&job_id).expect("the job of a task is there");
        let inputs = job.tasks[&task_id].inputs.clone();
        job.pending += 1;
        if inputs.is_empty() {
            job.anywhere.insert(task_id);
        }
        for ix in inputs {
            let range = &mut self.ranges[ix as usize];
            range.readers.insert((job_id, task_id));
            *range.jobs.entry(job_id).or_insert(0) += 1;
            let (bytes, places) = (range.bytes, range.places().collect::<Vec<_>>());
            if !places.is_empty() {
                self.jobs.get_mut(&job_id).expect("as above").ready += 1;
            }
            for worker in places {
                self.count_near(job_id, task_id, worker, bytes as i64);
            }
            self.refile(ix);
        }
    }

    /// A task no longer waits: it starts, or its job is over.
    pub(super) fn end_pending(&mut self, job_id: JobId, task_id: TaskId) {
        let job = self.jobs.get_mut(&job_id).expect("the job of a task is there");
        job.pending -= 1;
        job.anywhere.remove(&task_id);
        let inputs = job.tasks[&task_id].inputs.clone();
        for ix in inputs {
            let range = &mut self.ranges[ix as usize];
            let (bytes, places) = (range.bytes, range.places().collect::<Vec<_>>());
            range.readers.remove(&(job_id, task_id));
            let filed = range.filed;
            let count = range.jobs.get_mut(&job_id).expect("a reader's job is counted");
            *count -= 1;
            let last_of_job = *count == 0;
            if last_of_job {
                range.jobs.remove(&job_id);
            }
            let job = self.jobs.get_mut(&job_id).expect("as above");
            if last_of_job {
                job.missing.remove(&(Reverse(filed), ix));
            }
            if !places.is_empty() {
                job.ready -= 1;
            }
            for worker in places {
                self.count_near(job_id, task_id, worker, -(bytes as i64));
            }
            self.refile(ix);
        }
    }

    /// Adds to what a pending task has at, or on its way to, a worker.
    fn count_near(&mut self, job_id: JobId, task_id: TaskId, worker_id: WorkerId, bytes: i64) {
        let Some(job) = self.jobs.get_mut(&job_id) else { return };
        let Some(task) = job.tasks.get_mut(&task_id) else { return };
        let at = task.near.iter().position(|(worker, _)| *worker == worker_id);
        let before = at.map_or(0, |at| task.near[at].1);
        let after = before.saturating_add_signed(bytes);
        match at {
            Some(at) if after == 0 => drop(task.near.swap_remove(at)),
            Some(at) => task.near[at].1 = after,
            None => task.near.push((worker_id, after)),
        }
        let (old, new) = (task.share(before), task.share(after));
        if task.near.is_empty() {
            job.near.remove(&task_id);
        } else {
            job.near.insert(task_id);
        }
        self.with_worker(worker_id, |worker| {
            worker.waiting_bytes = worker.waiting_bytes.saturating_add_signed(bytes);
            let tasks = worker.near.entry(job_id).or_default();
            if before > 0 {
                tasks.remove(&(Reverse(old), task_id));
            }
            if after > 0 {
                tasks.insert((Reverse(new), task_id));
            }
            if tasks.is_empty() {
                worker.near.remove(&job_id);
            }
        });
    }

    /// A range has come to be, or is no longer, at a worker or on its way there.
    pub(super) fn count_range(&mut self, ix: RangeIx, worker: WorkerId, is_there: bool) {
        let bytes = self.ranges[ix as usize].bytes as i64;
        for (job, task) in self.ranges[ix as usize].readers.clone() {
            self.count_near(job, task, worker, if is_there { bytes } else { -bytes });
        }
    }

    /// Whether a range is there at all has changed: what its jobs have ready, and what they miss.
    pub(super) fn count_ready(&mut self, ix: RangeIx, is_there: bool) {
        for (job, count) in self.ranges[ix as usize].jobs.clone() {
            let job = self.jobs.get_mut(&job).expect("a reader's job is there");
            job.ready = if is_there { job.ready + count as usize } else { job.ready - count as usize };
        }
        self.refile(ix);
    }

    /// Puts a range where it belongs in its jobs' lists of what is missing.
    fn refile(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        let (old, new) = (range.filed, range.readers.len() as u32);
        range.filed = new;
        let missing = range.is_missing();
        for id in range.jobs.keys() {
            let job = self.jobs.get_mut(id).expect("a reader's job is there");
            job.missing.remove(&(Reverse(old), ix));
            if missing {
                job.missing.insert((Reverse(new), ix));
            }
        }
    }

    /// A range is no longer ahead of its readers.
    pub(super) fn release_ahead(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        if let Some(job) = range.ahead_of.take().and_then(|job| self.jobs.get_mut(&job)) {
            job.ahead_bytes -= range.bytes;
        }
    }
}
