//! Long work, a step a call.

use super::books::Schedule;
use super::entries::{RangeIx, Task};
use super::model::{JobId, TaskId, TaskSpec};

/// Long work in steps, a step a call, so that others are answered in between.
impl Schedule {
    /// What every call for transfers or tasks does first.
    pub(super) fn step(&mut self) {
        self.let_go();
        self.take_in();
        // Tasks that were known already may be all that was taken in.
        while self.orders.waiting.is_empty() && !self.orders.coming.is_empty() {
            self.take_in();
        }
    }

    /// Takes in tasks that are still to come, those of the first job in line first.
    pub(super) fn take_in(&mut self) {
        let mut room = self.step_tasks;
        while room > 0
            && let Some((.., id)) = self.orders.coming.first().copied()
        {
            let Some(job) = self.jobs.get_mut(&id) else { break };
            let some: Vec<TaskSpec> = job.coming.drain(..room.min(job.coming.len())).collect();
            room -= some.len();
            some.into_iter().for_each(|spec| self.take_in_task(id, spec));
            self.file_rewanted();
            self.file(id);
        }
    }

    fn take_in_task(&mut self, job_id: JobId, spec: TaskSpec) {
        if self.jobs.get(&job_id).is_none_or(|job| job.tasks.contains_key(&spec.id)) {
            return;
        }
        let mut inputs: Vec<RangeIx> = Vec::with_capacity(spec.inputs.len());
        for input in spec.inputs {
            self.storages.entry(input.storage).or_default();
            let ix = self.range_or_new(input.range, input.storage);
            self.ranges[ix as usize].routed = input.routed;
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

    /// Lets go of tasks whose jobs are over, those that run first, and of a job with its last task.
    pub(super) fn let_go(&mut self) {
        for _ in 0..self.step_tasks {
            let Some((job, task)) = self.closing.pop_front() else { break };
            match self.is_running(job, task) {
                Some(true) => self.end_running(job, task),
                Some(false) => self.end_pending(job, task),
                // It has ended meanwhile.
                None => continue,
            }
            self.drop_task(job, task);
        }
        self.file_rewanted();
    }

    /// Whether tasks of jobs that are over still have slots.
    pub(super) fn may_free_slots(&self) -> bool {
        self.closing.front().is_some_and(|(job, task)| self.is_running(*job, *task) != Some(false))
    }

    /// Of a task that is to be let go; a later job may have the number of one that is gone.
    fn is_running(&self, job: JobId, task: TaskId) -> Option<bool> {
        let job = self.jobs.get(&job).filter(|job| job.is_closed)?;
        Some(job.tasks.get(&task)?.on.is_some())
    }

    /// A task that runs gives its slot back.
    pub(super) fn end_running(&mut self, job_id: JobId, task_id: TaskId) {
        let job = self.jobs.get_mut(&job_id).expect("the job of a task that runs is there");
        let task = job.tasks.get_mut(&task_id).expect("a task that runs is there");
        let (running, ready) = (job.running, job.ready);
        assert!(running > 0 && ready >= task.inputs.len(), "{running} tasks run, and {ready} inputs are ready");
        job.running -= 1;
        job.ready -= task.inputs.len();
        let bytes = task.bytes;
        let on = task.on.take().expect("a task that runs has a slot");
        self.fleet.with(on, |worker| {
            assert!(worker.free < worker.slots && worker.running_bytes >= bytes, "the slot that is given back was taken");
            worker.free += 1;
            worker.running_bytes -= bytes;
            worker.running.remove(&(job_id, task_id));
        });
    }

    pub(super) fn drop_task(&mut self, job_id: JobId, task_id: TaskId) {
        let Some(job) = self.jobs.get_mut(&job_id) else { return };
        let task = job.tasks.remove(&task_id);
        if job.is_closed && job.tasks.is_empty() {
            self.jobs.remove(&job_id);
        }
        for ix in task.into_iter().flat_map(|task| task.inputs) {
            assert!(self.ranges[ix as usize].users > 0, "a task uses what it reads");
            self.ranges[ix as usize].users -= 1;
            self.forget_unused(ix);
        }
    }
}
