//! Who needs and who holds what.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use forebay_types::{MountId, PageRun, SegmentId, WorkerId};

use super::STEP_TASKS;
use super::entries::{Ahead, Change, InFlight, Job, Near, Range, RangeIx};
use super::fleet::Fleet;
use super::model::{BlockRange, JobId, ScheduleSettings, TaskId};
use super::order::Orders;

/// Who needs what, who holds what, and what is on its way.
///
/// Told of every event ([`Schedule::submit`], [`Schedule::arrived`], [`Schedule::finished`], ...), it answers
/// [`Schedule::transfers`] and [`Schedule::next_task`]. A function of the events alone: same in, same out. An event costs
/// O(log n) for each task that it touches; what touches many is done in steps, a bounded one a call.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) settings: ScheduleSettings,
    pub(super) fleet: Fleet,
    pub(super) jobs: BTreeMap<JobId, Job>,
    /// Tasks of jobs that are over, to be let go; those with a slot first.
    pub(super) closing: VecDeque<(JobId, TaskId)>,
    pub(super) orders: Orders,
    pub(super) step_tasks: usize,
    pub(super) submitted: u64,
    pub(super) ranges: Vec<Range>,
    /// Sorted, since a table of hashes takes long when it grows.
    range_at: BTreeMap<BlockRange, RangeIx>,
    unused: Vec<RangeIx>,
    /// Ranges that are wanted more or less than they are filed by; none between two events.
    rewanted: Vec<RangeIx>,
    /// Of all that ranges were read of.
    pub(super) storages: BTreeMap<MountId, InFlight>,
}

impl Schedule {
    /// An empty cluster without jobs.
    pub fn new(settings: ScheduleSettings) -> Self {
        Self {
            fleet: Fleet::default(),
            jobs: BTreeMap::new(),
            closing: VecDeque::new(),
            orders: Orders::default(),
            step_tasks: STEP_TASKS,
            submitted: 0,
            ranges: Vec::new(),
            range_at: BTreeMap::new(),
            unused: Vec::new(),
            rewanted: Vec::new(),
            storages: BTreeMap::new(),
            settings,
        }
    }

    /// Its limits.
    pub fn settings(&self) -> ScheduleSettings {
        self.settings
    }

    /// Changes a job and files it where it then belongs in the orders.
    pub(super) fn with_job(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        change(job);
        self.orders.file(id, job, self.settings.policy);
    }

    pub(super) fn range(&self, key: &BlockRange) -> Option<RangeIx> {
        self.range_at.get(key).copied()
    }

    pub(super) fn of_segment(&self, segment: SegmentId) -> impl Iterator<Item = &Range> {
        // The first that there can be.
        let first = BlockRange { segment, pages: PageRun { start: 0, len: 1 } };
        let of_it = self.range_at.range(first..).take_while(move |(key, _)| key.segment == segment);
        of_it.map(|(_, ix)| &self.ranges[*ix as usize])
    }

    /// The place of a range, a new one when no task has named it yet.
    pub(super) fn range_or_new(&mut self, key: BlockRange, storage: MountId) -> RangeIx {
        let place = match self.range_at.entry(key) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(place) => place,
        };
        let ix = match self.unused.pop() {
            Some(ix) => {
                self.ranges[ix as usize] = Range::new(key, storage);
                ix
            }
            None => {
                self.ranges.push(Range::new(key, storage));
                (self.ranges.len() - 1) as RangeIx
            }
        };
        *place.insert(ix)
    }

    /// Forgets a range that no task reads and that is not on its way.
    pub(super) fn forget_unused(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        if range.users > 0 || range.arriving.is_some() {
            return;
        }
        assert!(range.readers.is_empty(), "{} tasks read a range that nobody uses", range.readers.len());
        let (key, holders) = (range.key, std::mem::take(&mut range.holders));
        // The place may be listed once only.
        if self.range_at.remove(&key).is_none() {
            return;
        }
        self.release_ahead(ix);
        for holder in holders {
            if let Some(worker) = self.fleet.get_mut(holder) {
                worker.holds.remove(&ix);
            }
        }
        self.unused.push(ix);
    }

    /// A task waits for a slot from now on. Its job and what it wants are filed when the event is over.
    pub(super) fn make_pending(&mut self, job_id: JobId, task_id: TaskId) {
        let Self { jobs, ranges, fleet, rewanted, .. } = self;
        let job = jobs.get_mut(&job_id).expect("the job of a task is there");
        let task = job.tasks.get_mut(&task_id).expect("a task that is to wait is there");
        assert!(task.on.is_none() && task.near.is_empty(), "a task that is to wait has no slot, and nothing is filed of it");
        job.pending.count += 1;
        if task.inputs.is_empty() {
            job.pending.anywhere.insert(task_id);
        }
        for at in 0..task.inputs.len() {
            let ix = task.inputs[at];
            let range = &mut ranges[ix as usize];
            range.readers.insert((job_id, task_id));
            job.ready += usize::from(!range.is_missing());
            for (worker, change) in range.places() {
                task.count_near(worker, range.bytes, change);
            }
            rewanted.push(ix);
        }
        for (worker, near) in &task.near {
            fleet.near(*worker, (job_id, task_id), task.bytes, Near::default(), *near);
        }
        if !task.near.is_empty() {
            job.pending.near.insert(task_id);
        }
    }

    /// A task no longer waits: it starts, or its job is over. Its job and what it wanted are filed when the event is over.
    pub(super) fn end_pending(&mut self, job_id: JobId, task_id: TaskId) {
        let Self { jobs, ranges, fleet, rewanted, .. } = self;
        let job = jobs.get_mut(&job_id).expect("the job of a task is there");
        let task = job.tasks.get_mut(&task_id).expect("a task that waits is there");
        assert!(job.pending.count > 0 && task.on.is_none(), "{} tasks wait, this one of them, without a slot", job.pending.count);
        job.pending.count -= 1;
        if task.inputs.is_empty() {
            job.pending.anywhere.remove(&task_id);
        }
        for ix in &task.inputs {
            let range = &mut ranges[*ix as usize];
            range.readers.remove(&(job_id, task_id));
            job.ready -= usize::from(!range.is_missing());
            // What the job reads no more is not among its missing ranges when the others are filed anew.
            if let Some(wanted) = range.filed
                && range.reader(job_id).is_none()
            {
                job.pending.missing.remove(&(Reverse(wanted), *ix));
            }
            rewanted.push(*ix);
        }
        if !task.near.is_empty() {
            job.pending.near.remove(&task_id);
        }
        for (worker, near) in std::mem::take(&mut task.near) {
            fleet.near(worker, (job_id, task_id), task.bytes, near, Near::default());
        }
    }

    /// Something has happened to a range at a worker: the tasks that read it are filed anew there.
    pub(super) fn count_range(&mut self, ix: RangeIx, worker: WorkerId, change: Change) {
        let Self { jobs, ranges, fleet, orders, settings, .. } = self;
        let range = &ranges[ix as usize];
        for (job_id, task_id) in &range.readers {
            let job = jobs.get_mut(job_id).expect("a reader's job is there");
            let task = job.tasks.get_mut(task_id).expect("a reader is there");
            let was_near = !task.near.is_empty();
            let (before, after) = task.count_near(worker, range.bytes, change);
            fleet.near(worker, (*job_id, *task_id), task.bytes, before, after);
            let is_near = !task.near.is_empty();
            if is_near != was_near {
                match is_near {
                    true => job.pending.near.insert(*task_id),
                    false => job.pending.near.remove(task_id),
                };
                orders.file(*job_id, job, settings.policy);
            }
        }
    }

    /// Whether a range is there at all has changed: what its jobs have ready, and what they miss.
    pub(super) fn count_ready(&mut self, ix: RangeIx, is_there: bool) {
        for (job, _) in &self.ranges[ix as usize].readers {
            let job = self.jobs.get_mut(job).expect("a reader's job is there");
            assert!(is_there || job.ready > 0, "what is missing again was ready");
            job.ready = if is_there { job.ready + 1 } else { job.ready - 1 };
        }
        self.refile(ix);
    }

    /// Files a job that was changed.
    pub(super) fn file(&mut self, id: JobId) {
        self.with_job(id, |_| {});
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
        for id in range.jobs() {
            let job = self.jobs.get_mut(&id).expect("a reader's job is there");
            old.map(|wanted| job.pending.missing.remove(&(Reverse(wanted), ix)));
            new.map(|wanted| job.pending.missing.insert((Reverse(wanted), ix)));
            self.orders.file(id, job, self.settings.policy);
        }
    }

    /// A range is no longer ahead of its readers.
    pub(super) fn release_ahead(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        let bytes = range.bytes;
        let Some(Ahead { job, arrival, at }) = range.ahead_of.take() else { return };
        if self.jobs.get(&job).is_some_and(|job| job.arrival == arrival) {
            self.with_job(job, |job| {
                assert!(job.ahead_bytes >= bytes, "{bytes} bytes of {} were brought ahead", job.ahead_bytes);
                job.ahead_bytes -= bytes;
            });
        }
        self.fleet.with(at, |worker| {
            assert!(worker.ahead_bytes >= bytes, "{bytes} bytes of {} are ahead at a worker", worker.ahead_bytes);
            worker.ahead_bytes -= bytes;
        });
    }
}
