//! What the schedule is told.

use std::collections::{BTreeMap, HashMap};

use forebay_types::{PageRun, PageSet, SegmentId, WorkerId};

use super::books::Schedule;
use super::entries::{Change, Job, RangeIx};
use super::model::{BlockRange, JobId, ScheduleSettings, TaskId, TaskSpec};

impl Schedule {
    /// New limits; what is on its way already goes on.
    pub fn set(&mut self, settings: ScheduleSettings) {
        self.settings = settings;
        for (id, job) in &mut self.jobs {
            self.orders.file(*id, job, settings.policy);
        }
    }

    /// A worker is there, with so many slots for tasks and so many bytes of room for what tasks that wait will read
    /// ([`room_bytes`](crate::room_bytes)). What is brought there ahead of tasks is a part of that
    /// ([`ahead_bytes_max`](crate::ahead_bytes_max)).
    pub fn worker_joined(&mut self, id: WorkerId, slots: u32, room_bytes: u64) {
        self.worker_lost(id);
        self.fleet.add(id, slots, room_bytes);
    }

    /// The slots beside a worker are others, or its room is: where there are no fewer, what runs and lies there is as before. Otherwise nobody
    /// knows which of its tasks are gone, and it joins anew.
    pub fn slots_changed(&mut self, id: WorkerId, slots: u32, room_bytes: u64) {
        match self.fleet.get(id) {
            Some(worker) if worker.slots <= slots => self.fleet.grow(id, slots, room_bytes),
            _ => self.worker_joined(id, slots, room_bytes),
        }
    }

    /// A worker is gone with all it held; its tasks wait again.
    pub fn worker_lost(&mut self, id: WorkerId) {
        let Some(worker) = self.fleet.get(id) else { return };
        let (running, holds, expects) = (worker.running.clone(), worker.holds.clone(), worker.expects.clone());
        for (job, task) in running {
            self.finished(job, task, false);
        }
        for ix in expects {
            self.end_arriving(ix, id);
        }
        for ix in holds {
            self.end_holding(ix, id);
        }
        self.fleet.remove(id);
    }

    /// A job of `priority` (the higher goes first) whose tasks read `io_rate` bytes a second. Its tasks follow.
    pub fn submit(&mut self, id: JobId, priority: i32, io_rate: u64) {
        // One of the same number that is over must be gone.
        while self.jobs.get(&id).is_some_and(|job| job.is_closed) {
            self.let_go();
        }
        self.submitted += 1;
        let arrival = self.submitted;
        self.jobs.entry(id).or_insert_with(|| Job::new(priority, arrival, io_rate));
    }

    /// Tasks of a job that can run from now on. A task that is known already is left as it is.
    ///
    /// The first are taken in at once, the others step by step by the calls that follow, so that no call takes long.
    pub fn add_tasks(&mut self, job: JobId, tasks: Vec<TaskSpec>) {
        if self.jobs.get(&job).is_some_and(|job| !job.is_closed) {
            self.with_job(job, |job| job.coming.extend(tasks));
            self.take_in();
        }
    }

    /// A job's priority has changed.
    pub fn set_priority(&mut self, id: JobId, priority: i32) {
        self.with_job(id, |job| job.priority = priority);
    }

    /// What a job's tasks read a second was measured.
    pub fn set_io_rate(&mut self, id: JobId, io_rate: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.io_rate = io_rate;
        }
    }

    /// A job is over, done or not. Tasks that still run give their slots back, in a large job step by step.
    pub fn close(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id).filter(|job| !job.is_closed) else { return };
        if job.tasks.is_empty() {
            self.with_job(id, |job| job.is_closed = true);
            self.jobs.remove(&id);
            return;
        }
        // Slots are given back first.
        for (task, entry) in &job.tasks {
            if entry.on.is_some() { self.closing.push_front((id, *task)) } else { self.closing.push_back((id, *task)) }
        }
        self.with_job(id, |job| {
            job.is_closed = true;
            job.coming.clear();
        });
        self.let_go();
    }

    /// A task has ended and its slot is free; one that was not done waits again.
    pub fn finished(&mut self, job_id: JobId, task_id: TaskId, done: bool) {
        let task = self.jobs.get(&job_id).and_then(|job| job.tasks.get(&task_id));
        if task.is_none_or(|task| task.on.is_none()) {
            return;
        }
        self.end_running(job_id, task_id);
        match done {
            true => self.drop_task(job_id, task_id),
            false => self.make_pending(job_id, task_id),
        }
        self.file_rewanted();
        self.file(job_id);
    }

    /// A range is in a worker's tier: a transfer has ended, or it was read on demand.
    pub fn arrived(&mut self, range: BlockRange, worker: WorkerId) {
        if let Some(ix) = self.range(&range) {
            self.hold(ix, worker);
            self.forget_unused(ix);
        }
    }

    /// A transfer from shared storage has failed; it is planned again.
    pub fn failed(&mut self, range: BlockRange, worker: WorkerId) {
        if let Some(ix) = self.range(&range) {
            self.end_arriving(ix, worker);
        }
    }

    /// A range is no longer in a worker's tier.
    pub fn evicted(&mut self, range: BlockRange, worker: WorkerId) {
        if let Some(ix) = self.range(&range) {
            self.end_holding(ix, worker);
        }
    }

    /// Pages have left a worker's tier: no range that has some of them is there as a whole.
    pub fn departed(&mut self, worker: WorkerId, runs: &[(SegmentId, PageRun)]) {
        let mut by_segment: HashMap<SegmentId, Vec<PageRun>> = HashMap::new();
        for (segment, pages) in runs {
            by_segment.entry(*segment).or_default().push(*pages);
        }
        for range in self.held_by(worker) {
            let left = by_segment.get(&range.segment).into_iter().flatten();
            if left.clone().any(|left| left.start < range.pages.end() && range.pages.start < left.end()) {
                self.evicted(range, worker);
            }
        }
    }

    /// Pages have come into a worker's tier past this schedule, read by somebody or brought by another plan: the ranges with some of them that
    /// tasks wait to read and that are not taken to be there. Those that are there as a whole have [`Self::arrived`].
    pub fn wanted_at(&self, worker: WorkerId, runs: &[(SegmentId, PageRun)]) -> Vec<BlockRange> {
        let mut by_segment: BTreeMap<SegmentId, PageSet> = BTreeMap::new();
        for (segment, pages) in runs {
            by_segment.entry(*segment).or_default().insert(*pages);
        }
        let mut wanted = Vec::new();
        for (segment, pages) in by_segment.into_iter().filter(|_| self.fleet.get(worker).is_some()) {
            let pages = pages.runs();
            let is_touched = |range: &PageRun| pages.iter().any(|came| came.start < range.end() && range.start < came.end());
            let awaited = self
                .of_segment(segment)
                .filter(|range| !range.readers.is_empty() && range.arriving != Some(worker) && !range.holders.contains(&worker));
            wanted.extend(awaited.map(|range| range.key).filter(|key| is_touched(&key.pages)));
        }
        debug_assert!(wanted.is_sorted_by(|one, next| one < next), "each range is told once");
        wanted
    }

    /// The ranges that are taken to be in a worker's tier.
    pub fn held_by(&self, worker: WorkerId) -> Vec<BlockRange> {
        let holds = self.fleet.get(worker).into_iter().flat_map(|worker| &worker.holds);
        holds.map(|ix| self.ranges[*ix as usize].key).collect()
    }

    /// Jobs that are known, with the tasks that wait and those that run.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, usize, usize)> {
        let open = self.jobs.iter().filter(|(_, job)| !job.is_closed);
        open.map(|(id, job)| (*id, job.coming.len() + job.pending.count, job.running))
    }

    pub(super) fn hold(&mut self, ix: RangeIx, id: WorkerId) {
        let Some(worker) = self.fleet.get_mut(id) else { return };
        if !worker.holds.insert(ix) {
            return;
        }
        let was_expected = worker.expects.remove(&ix);
        let range = &mut self.ranges[ix as usize];
        let was_missing = range.is_missing();
        assert!(!range.holders.contains(&id), "a range is held once by a worker");
        range.holders.push(id);
        if was_expected {
            self.no_longer_arriving(ix);
        }
        self.count_range(ix, id, if was_expected { Change::Arrived } else { Change::Held });
        if was_missing {
            self.count_ready(ix, true);
        }
    }

    fn no_longer_arriving(&mut self, ix: RangeIx) {
        let range = &mut self.ranges[ix as usize];
        range.arriving = None;
        let (bytes, storage, was_urgent) = (range.bytes, range.storage, std::mem::take(&mut range.urgent));
        let in_flight = self.in_flight(storage);
        assert!(in_flight.bytes >= bytes, "what no longer arrives was counted when it began to");
        in_flight.bytes -= bytes;
        if was_urgent {
            assert!(in_flight.urgent_bytes >= bytes, "what was urgent was counted as urgent");
            in_flight.urgent_bytes -= bytes;
        }
    }

    fn end_arriving(&mut self, ix: RangeIx, id: WorkerId) {
        let range = &self.ranges[ix as usize];
        if range.arriving != Some(id) {
            return;
        }
        self.no_longer_arriving(ix);
        if let Some(worker) = self.fleet.get_mut(id) {
            worker.expects.remove(&ix);
        }
        self.count_range(ix, id, Change::NotExpected);
        self.end_place(ix, id);
    }

    fn end_holding(&mut self, ix: RangeIx, id: WorkerId) {
        let range = &mut self.ranges[ix as usize];
        let Some(at) = range.holders.iter().position(|holder| *holder == id) else { return };
        range.holders.swap_remove(at);
        if let Some(worker) = self.fleet.get_mut(id) {
            worker.holds.remove(&ix);
        }
        self.count_range(ix, id, Change::NotHeld);
        self.end_place(ix, id);
    }

    /// A range has lost its place at a worker, perhaps its last: what was brought there ahead is there no more.
    fn end_place(&mut self, ix: RangeIx, id: WorkerId) {
        if self.ranges[ix as usize].ahead_of.is_some_and(|ahead| ahead.at == id) {
            self.release_ahead(ix);
        }
        let range = &self.ranges[ix as usize];
        if range.is_missing() {
            assert!(range.ahead_of.is_none(), "what nobody has is ahead of nobody");
            self.count_ready(ix, false);
        }
        self.forget_unused(ix);
    }
}
