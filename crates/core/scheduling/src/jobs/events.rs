use std::collections::{BTreeMap, BTreeSet};

use forebay_types::WorkerId;

use super::books::Schedule;
use super::entries::{Job, RangeIx, Task, Worker};
use super::model::{BlockRange, JobId, ScheduleSettings, TaskId, TaskSpec};
use super::order::Places;

impl Schedule {
    /// New limits; what is on its way already goes on.
    pub fn set(&mut self, settings: ScheduleSettings) {
        self.settings = settings;
        for (id, job) in &mut self.jobs {
            self.orders.file(*id, job, settings.policy);
        }
    }

    /// A worker is there, with so many slots for tasks and so many bytes of room for what is brought ahead.
    pub fn worker_joined(&mut self, id: WorkerId, slots: u32, room_bytes: u64) {
        self.worker_lost(id);
        self.workers.insert(
            id,
            Worker {
                slots,
                free: slots,
                room_bytes,
                near: BTreeMap::new(),
                waiting_bytes: 0,
                running_bytes: 0,
                running: BTreeSet::new(),
                holds: BTreeSet::new(),
                expects: BTreeSet::new(),
            },
        );
        self.by_load.insert((0, id));
        if slots > 0 {
            self.free.insert(id);
        }
        self.slots += u64::from(slots);
    }

    /// A worker is gone with all it held; its tasks wait again.
    pub fn worker_lost(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.get(&id) else { return };
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
        let worker = self.workers.remove(&id).expect("looked up above");
        self.by_load.remove(&(worker.load(), id));
        self.free.remove(&id);
        self.free_beside.remove(&id);
        self.slots -= u64::from(worker.slots);
    }

    /// A job of `priority` (the higher goes first) whose tasks read `io_rate` bytes a second. Its tasks follow.
    pub fn submit(&mut self, id: JobId, priority: i32, io_rate: u64) {
        self.submitted += 1;
        let arrival = self.submitted;
        self.jobs.entry(id).or_insert_with(|| Job {
            priority,
            arrival,
            io_rate,
            tasks: BTreeMap::new(),
            pending: 0,
            running: 0,
            anywhere: BTreeSet::new(),
            near: BTreeSet::new(),
            missing: BTreeSet::new(),
            ready: 0,
            ahead_bytes: 0,
            passed_over: 0,
            places: Places::default(),
        });
    }

    /// Tasks of a job that can run from now on. A task that is known already is left as it is.
    pub fn add_tasks(&mut self, job_id: JobId, tasks: Vec<TaskSpec>) {
        for spec in tasks {
            let Some(job) = self.jobs.get(&job_id) else { break };
            if job.tasks.contains_key(&spec.id) {
                continue;
            }
            let mut inputs: Vec<RangeIx> = Vec::with_capacity(spec.inputs.len());
            for input in spec.inputs {
                let ix = self.range_or_new(input.range);
                if !inputs.contains(&ix) {
                    inputs.push(ix);
                    self.ranges[ix as usize].users += 1;
                }
                for holder in input.holders {
                    self.hold(ix, holder);
                }
            }
            let bytes = inputs.iter().map(|ix| self.ranges[*ix as usize].bytes).sum();
            let job = self.jobs.get_mut(&job_id).expect("looked up above");
            job.tasks.insert(spec.id, Task { inputs, bytes, near: Vec::new(), on: None });
            self.make_pending(job_id, spec.id);
        }
        self.file_rewanted();
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

    /// A job is over, done or not. Tasks that still run give their slots back.
    pub fn close(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        for task in job.tasks.keys().copied().collect::<Vec<_>>() {
            let running = self.jobs[&id].tasks[&task].on.is_some();
            if running {
                self.finished(id, task, true);
            } else {
                self.end_pending(id, task);
                self.drop_task(id, task);
            }
        }
        self.file_rewanted();
        if let Some(job) = self.jobs.remove(&id) {
            self.orders.remove(&job);
        }
    }

    /// A task has ended and its slot is free; one that was not done waits again.
    pub fn finished(&mut self, job_id: JobId, task_id: TaskId, done: bool) {
        let Some(job) = self.jobs.get_mut(&job_id) else { return };
        let Some(task) = job.tasks.get_mut(&task_id) else { return };
        let Some(worker_id) = task.on.take() else { return };
        let (inputs, bytes) = (task.inputs.len(), task.bytes);
        self.with_job(job_id, |job| {
            job.running -= 1;
            job.ready -= inputs;
        });
        self.with_worker(worker_id, |worker| {
            worker.free += 1;
            worker.running_bytes -= bytes;
            worker.running.remove(&(job_id, task_id));
        });
        if done {
            self.drop_task(job_id, task_id);
        } else {
            self.make_pending(job_id, task_id);
            self.file_rewanted();
        }
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

    /// Jobs that are known, with their pending and running tasks.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, usize, usize)> {
        self.jobs.iter().map(|(id, job)| (*id, job.pending, job.running))
    }

    /// Bytes on their way from shared storage.
    pub fn arriving_bytes(&self) -> u64 {
        self.arriving_bytes
    }

    fn drop_task(&mut self, job_id: JobId, task_id: TaskId) {
        let task = self.jobs.get_mut(&job_id).and_then(|job| job.tasks.remove(&task_id));
        for ix in task.into_iter().flat_map(|task| task.inputs) {
            self.ranges[ix as usize].users -= 1;
            self.forget_unused(ix);
        }
    }

    fn hold(&mut self, ix: RangeIx, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if !worker.holds.insert(ix) {
            return;
        }
        let was_expected = worker.expects.remove(&ix);
        let range = &mut self.ranges[ix as usize];
        let was_missing = range.is_missing();
        range.holders.push(id);
        if was_expected {
            range.arriving = None;
            self.arriving_bytes -= range.bytes;
        } else {
            self.count_range(ix, id, true);
        }
        if was_missing {
            self.count_ready(ix, true);
        }
    }

    fn end_arriving(&mut self, ix: RangeIx, id: WorkerId) {
        let range = &mut self.ranges[ix as usize];
        if range.arriving != Some(id) {
            return;
        }
        range.arriving = None;
        self.arriving_bytes -= range.bytes;
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.expects.remove(&ix);
        }
        self.count_range(ix, id, false);
        self.end_place(ix);
    }

    fn end_holding(&mut self, ix: RangeIx, id: WorkerId) {
        let range = &mut self.ranges[ix as usize];
        let Some(at) = range.holders.iter().position(|holder| *holder == id) else { return };
        range.holders.swap_remove(at);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.holds.remove(&ix);
        }
        self.count_range(ix, id, false);
        self.end_place(ix);
    }

    /// A range has lost a place, perhaps its last.
    fn end_place(&mut self, ix: RangeIx) {
        if self.ranges[ix as usize].is_missing() {
            self.release_ahead(ix);
            self.count_ready(ix, false);
        }
        self.forget_unused(ix);
    }
}
