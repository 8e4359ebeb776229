//! Which task a free slot gets.

use forebay_types::WorkerId;

use super::books::Schedule;
use super::model::{Assignment, JobId, Source, TaskId, Transfer};
use super::{LOOK_MAX, STEP_STARTS};

impl Schedule {
    /// The task that a free slot of `worker` gets, which starts with that (MixApart, section 3.1); none when the worker
    /// has no free slot, when no task waits, or when each waits for a free slot beside its input.
    ///
    /// Jobs are asked in order, and of a job the task with the largest share of its input here or on its way here, of equal ones
    /// the one that has to wait for less of it. When
    /// no job has one, something else runs rather than nothing: a task whose input nobody has, if shared storage's
    /// bandwidth has room; a task whose input is at workers without a free slot; any task whose input nobody has. The
    /// first job in line, once it was passed over too often, takes the slot whatever is near.
    pub fn next_task(&mut self, worker: WorkerId) -> Option<Assignment> {
        self.step();
        self.next_known(worker)
    }

    /// Tasks for free slots, as [`Self::next_task`] gives them, slot by slot, those first that are beside a task's input.
    /// As long as it gives any there may be more: no slot stays free while a task waits.
    pub fn next_tasks(&mut self) -> Vec<(WorkerId, Assignment)> {
        self.step();
        let mut started = Vec::new();
        while started.len() < STEP_STARTS {
            let worker = self.next_free();
            match worker.and_then(|worker| Some((worker, self.next_known(worker)?))) {
                Some(task) => started.push(task),
                // A job that is over may still have the slot that others wait for.
                None if worker.is_none() && !self.orders.waiting.is_empty() && self.may_free_slots() => self.let_go(),
                None => break,
            }
        }
        started
    }

    /// The free worker to serve next: one beside input of a task that waits, else any.
    fn next_free(&self) -> Option<WorkerId> {
        // Tasks of jobs that are over may stand beside it too.
        let is_beside = |id: &&WorkerId| {
            let jobs = self.fleet.get(**id).into_iter().flat_map(|worker| worker.near.keys());
            jobs.into_iter().any(|job| self.jobs[job].turn().is_some())
        };
        self.fleet.free_beside.iter().find(is_beside).or(self.fleet.free.first()).copied()
    }

    /// The next of the tasks that are taken in.
    fn next_known(&mut self, worker: WorkerId) -> Option<Assignment> {
        if self.fleet.get(worker).is_none_or(|worker| worker.free == 0) {
            return None;
        }
        let first = self.orders.waiting.first().map(|(.., job)| *job);
        let chosen = self.choose(worker);
        match chosen {
            Some((job, _)) if Some(job) == first => self.with_job(job, |job| job.passed_over = 0),
            _ => first.into_iter().for_each(|job| self.with_job(job, |job| job.passed_over += 1)),
        }
        let (job, task) = chosen?;
        Some(self.start(worker, job, task))
    }

    fn choose(&self, worker: WorkerId) -> Option<(JobId, TaskId)> {
        let (.., first) = self.orders.waiting.first()?;
        if self.jobs[first].passed_over >= self.settings.patience {
            let job = &self.jobs[first];
            let far = || self.far_task(*first).or_else(|| job.pending.near.first().copied());
            return self.near_task(worker, *first).or_else(|| self.cold_task(*first)).or_else(far).map(|task| (*first, task));
        }
        let cold = || {
            let (.., job) = self.orders.cold.first()?;
            self.cold_task(*job).map(|task| (*job, task))
        };
        let far = || {
            let jobs = self.orders.near.iter().take(LOOK_MAX);
            jobs.map(|(.., job)| *job).find_map(|job| self.far_task(job).map(|task| (job, task)))
        };
        let has_bandwidth = |(job, _): &(JobId, TaskId)| {
            let first = self.jobs[job].pending.missing.first();
            first.is_some_and(|(_, ix)| self.has_room(self.ranges[*ix as usize].storage, false))
        };
        let near = || {
            let near = self.fleet.get(worker).into_iter().flat_map(|worker| worker.near.keys());
            let jobs = near.filter_map(|job| self.jobs[job].turn());
            let (.., job) = jobs.chain(self.orders.anywhere.first().copied()).min()?;
            self.near_task(worker, job).map(|task| (job, task))
        };
        near().or_else(|| cold().filter(has_bandwidth)).or_else(far).or_else(cold)
    }

    /// The task of a job that a worker takes first of those beside it; one without input is at home anywhere.
    fn near_task(&self, worker: WorkerId, job: JobId) -> Option<TaskId> {
        let near = self.fleet.get(worker).and_then(|worker| worker.near.get(&job)?.first());
        near.map(|(_, task)| *task).or_else(|| self.jobs[&job].pending.anywhere.first().copied())
    }

    /// The task of a job that reads what is most wanted and nobody has.
    fn cold_task(&self, job: JobId) -> Option<TaskId> {
        let (_, ix) = self.jobs[&job].pending.missing.first()?;
        self.ranges[*ix as usize].reader(job)
    }

    /// A task of a job whose input is at workers without a free slot, preferably at one with the most to do.
    fn far_task(&self, job_id: JobId) -> Option<TaskId> {
        let job = &self.jobs[&job_id];
        let is_busy = |id: &WorkerId| !self.fleet.free.contains(id);
        let busiest = self.fleet.by_load.iter().rev().take(LOOK_MAX).map(|(_, id)| id).filter(|id| is_busy(id));
        let of_busiest = busiest.filter_map(|id| self.fleet.get(*id)?.near.get(&job_id)?.last()).map(|(_, task)| *task);
        of_busiest
            .chain(job.pending.near.iter().take(LOOK_MAX).copied())
            .find(|task| job.tasks[task].near.iter().all(|(id, _)| is_busy(id)))
    }

    /// A task starts on a worker: what it still needs is brought as it reads.
    fn start(&mut self, worker_id: WorkerId, job_id: JobId, task_id: TaskId) -> Assignment {
        let task = &self.jobs[&job_id].tasks[&task_id];
        let (inputs, input_bytes) = (task.inputs.clone(), task.bytes);
        self.end_pending(job_id, task_id);
        self.file_rewanted();
        let (mut bring, mut local_bytes) = (Vec::new(), input_bytes);
        for ix in inputs.iter().copied() {
            self.release_ahead(ix);
            let range = &self.ranges[ix as usize];
            let (key, arriving) = (range.key, range.arriving);
            if range.holders.contains(&worker_id) || arriving == Some(worker_id) {
                continue;
            }
            let from = match range.holders.first().copied().or(arriving) {
                Some(peer) => {
                    local_bytes -= range.bytes;
                    Source::Peer(peer)
                }
                None => {
                    self.expect(ix, worker_id);
                    Source::Storage
                }
            };
            bring.push(Transfer { range: key, from, to: worker_id, urgent: false });
        }
        self.with_job(job_id, |job| {
            job.running += 1;
            job.ready += inputs.len();
            job.tasks.get_mut(&task_id).expect("it was chosen").on = Some(worker_id);
        });
        self.fleet.with(worker_id, |worker| {
            assert!(worker.free > 0, "a task starts in a free slot");
            worker.free -= 1;
            worker.running_bytes += input_bytes;
            let is_new = worker.running.insert((job_id, task_id));
            assert!(is_new, "a task runs once");
        });
        assert!(local_bytes <= input_bytes, "{local_bytes} bytes of {input_bytes} are here");
        Assignment { job: job_id, task: task_id, local_bytes, input_bytes, bring }
    }
}
