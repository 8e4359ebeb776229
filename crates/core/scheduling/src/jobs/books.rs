use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use forebay_types::WorkerId;

use super::entries::{Job, Range, RangeIx, Worker};
use super::model::{BlockRange, JobId, ScheduleSettings, TaskId};
use super::order::Orders;

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
    pub(super) orders: Orders,
    pub(super) submitted: u64,
    pub(super) ranges: Vec<Range>,
    range_at: HashMap<BlockRange, RangeIx>,
    unused: Vec<RangeIx>,
    /// Ranges that are wanted more or less than they are filed by; none between two events.
    rewanted: Vec<RangeIx>,
    /// Bytes on their way from shared storage.
    pub(super) arriving_bytes: u64,
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
            orders: Orders::default(),
            submitted: 0,
            ranges: Vec::new(),
            range_at: HashMap::new(),
            unused: Vec::new(),
            rewanted: Vec::new(),
            arriving_bytes: 0,
        }
    }

    /// Changes a worker and files it under its new load and its free slots.
    pub(super) fn with_worker(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let before = worker.filed_under();
        change(worker);
        let after = worker.filed_under();
        if before.load != after.load {
            self.by_load.remove(&(before.load, id));
            self.by_load.insert((after.load, id));
        }
        for (set, was, is) in [(&mut self.free, before.free, after.free), (&mut self.free_beside, before.beside, after.beside)] {
            match is {
                _ if was == is => false,
                true => set.insert(id),
                false => set.remove(&id),
            };
        }
    }

    /// Changes a job and files it where it then belongs in the orders.
    pub(super) fn with_job(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        change(job);
        self.orders.file(id, job, self.settings.policy);
    }

    /// Files a job that was changed.
    fn file(&mut self, id: JobId) {
        self.with_job(id, |_| {});
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
            filed: None,
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
            self.rewanted.push(ix);
        }
        self.file(job_id);
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
            if let (true, Some(wanted)) = (last_of_job, filed) {
                job.missing.remove(&(Reverse(wanted), ix));
            }
            if !places.is_empty() {
                job.ready -= 1;
            }
            for worker in places {
                self.count_near(job_id, task_id, worker, -(bytes as i64));
            }
            self.rewanted.push(ix);
        }
        self.file(job_id);
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
        let is_near = !task.near.is_empty();
        if is_near != job.near.contains(&task_id) {
            match is_near {
                true => job.near.insert(task_id),
                false => job.near.remove(&task_id),
            };
            self.orders.file(job_id, job, self.settings.policy);
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

    /// Files what tasks of this event want, or no longer want: once a range, however many of them read it.
    pub(super) fn file_rewanted(&mut self) {
        let mut rewanted = std::mem::take(&mut self.rewanted);
        rewanted.sort_unstable();
        rewanted.dedup();
        rewanted.drain(..).for_each(|ix| self.refile(ix));
        self.rewanted = rewanted;
    }

    /// Puts a range where it belongs in its jobs' lists of what is missing.
    fn refile(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        let new = range.is_missing().then_some(range.readers.len() as u32);
        let old = std::mem::replace(&mut range.filed, new);
        if old.is_none() && new.is_none() {
            return;
        }
        for id in range.jobs.keys() {
            let job = self.jobs.get_mut(id).expect("a reader's job is there");
            old.map(|wanted| job.missing.remove(&(Reverse(wanted), ix)));
            new.map(|wanted| job.missing.insert((Reverse(wanted), ix)));
            self.orders.file(*id, job, self.settings.policy);
        }
    }

    /// A range is no longer ahead of its readers.
    pub(super) fn release_ahead(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        let bytes = range.bytes;
        if let Some(job) = range.ahead_of.take() {
            self.with_job(job, |job| job.ahead_bytes -= bytes);
        }
    }
}
