//! The schedule of `core/scheduling` kept in step with the engine's jobs, stages and tasks, and what people are shown of them.
//!
//! Owns: jobs, executors, what runs where, whose word counts (`words`, `copies`), which executor gets what (`giving`), which stages are to be
//! looked at again (`marks`), what an engine does by all of that (`steps`). Never does: speak with anybody. Start with [`Books`]; `weather` tries it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::JobState;
use forebay_scheduling::{BlockRange, IO_RATE, IoRates, Pace, Schedule, ScheduleSettings, TaskInput, TaskSpec};
use forebay_types::{ObjectVersion, OperationId, SEGMENT_BYTES, SegmentId, Standing};
use tokio::sync::Notify;

use copies::Copies;
pub use deciding::{DEFECT, Sender, caught};
use deciding::{Refused, failpoint};
pub use executors::ExecutorEntry;
pub use giving::Chosen;
use numbers::Numbers;
pub use steps::{Begins, Outcome, Question, TakenIn, held};

use crate::attempts::{Attempts, RUN_AGAIN};
use crate::job::{Cut, Inputs, Job, Running, Stage, Sums, task_id};
use crate::tasks::TasksOver;
use crate::ticket::Ticket;
use crate::word::TaskName;

mod copies;
mod counts;
pub(crate) mod deciding;
mod executors;
mod giving;
mod marks;
mod numbers;
mod shown;
mod steps;
#[cfg(test)]
mod weather;
mod words;

/// Jobs that are over and still shown.
const OVER_MAX: usize = 200;

/// Who needs what, who runs what: the schedule with the engine's names.
pub struct Books {
    pub(crate) schedule: Schedule,
    /// Jobs that are not over.
    pub jobs: HashMap<String, Job>,
    numbers: Numbers,
    /// Those that asked for tasks and were not silent for long since.
    pub executors: HashMap<String, ExecutorEntry>,
    rates: IoRates,
    over: Over,
    pub(crate) brought_bytes: u64,
    /// What was heard of attempts of stages.
    pub attempts: Attempts,
    refused: Refused,
    /// What is kept of copies.
    pub copies: Copies,
    /// Tells whose questions are held that a task may be for them.
    pub news: Arc<Notify>,
    /// A job that takes so long, or longer, is told to the log; none for no job.
    pub slow_query: Option<Duration>,
}

/// The version of a range, who reads it, and where the range lies: (start, length).
pub(crate) type Located = (Arc<ObjectVersion>, (OperationId, Standing), (u64, u32));

/// What is kept of what is over.
#[derive(Default)]
struct Over {
    jobs: VecDeque<JobState>,
    /// Jobs so far, those that are not shown any more too.
    done: u64,
    failed: u64,
    tasks: TasksOver,
}

/// How a task ended.
pub(crate) struct Ended<'a> {
    pub(crate) job: &'a str,
    pub(crate) stage: usize,
    pub(crate) attempt: usize,
    pub(crate) task: usize,
    pub(crate) done: bool,
    /// Without what it waited for.
    pub(crate) took: Duration,
    /// What it has for other stages, or as its results.
    pub(crate) bytes_passed: u64,
}

impl Books {
    /// Nobody is there yet.
    pub fn new(settings: ScheduleSettings) -> Self {
        Self {
            schedule: Schedule::new(settings),
            jobs: HashMap::new(),
            numbers: Numbers::default(),
            executors: HashMap::new(),
            rates: IoRates::default(),
            over: Over::default(),
            brought_bytes: 0,
            attempts: Attempts::default(),
            refused: Refused::default(),
            copies: Copies::default(),
            news: Arc::default(),
            slow_query: None,
        }
    }

    /// Whether an executor has a task, as far as is known here.
    pub(crate) fn runs(&self, name: &TaskName) -> bool {
        let running = self.jobs.get(&name.job).and_then(|job| job.running.get(&(name.stage, name.task)));
        running.is_some_and(|running| running.attempt == name.attempt)
    }

    /// A job is there. Nothing when it is known, or was: who says so may have looked before it was over.
    pub(crate) fn job_seen(&mut self, id: &str, ticket: impl FnOnce() -> Ticket) {
        if self.jobs.contains_key(id) || self.over.jobs.iter().any(|over| over.id == id) {
            return;
        }
        let number = self.numbers.fresh();
        let ticket = Arc::new(ticket());
        self.schedule.submit(number, ticket.priority, IO_RATE);
        self.numbers.insert(number, id);
        self.jobs.insert(id.to_string(), Job::new(number, ticket));
        self.check();
    }

    /// Whether what a stage's partitions read must be found out first; it is noted that this is done now.
    pub fn is_new_stage(&mut self, job: &str, stage: usize, attempt: usize) -> bool {
        self.jobs.get(job).is_some_and(|job| job.stages.get(&stage).is_none_or(|known| known.attempt != attempt))
    }

    /// A stage can run from now on; `inputs` when what it reads is known already.
    pub(crate) fn stage_begins(
        &mut self,
        job_id: &str,
        stage: usize,
        attempt: usize,
        cut: Cut,
        kind: String,
        inputs: Option<Inputs>,
    ) {
        let Some(job) = self.jobs.get_mut(job_id) else { return };
        let (offered, counted, pace, cut) = match job.stages.remove(&stage) {
            // Tasks are offered by the earlier cut, until it is found out what they read.
            Some(earlier) if inputs.is_none() => (earlier.offered, earlier.counted, earlier.pace, earlier.cut),
            Some(earlier) => (earlier.offered, earlier.counted, earlier.pace, cut),
            None => (HashSet::new(), HashSet::new(), Pace::default(), cut),
        };
        job.stages.insert(stage, Stage { attempt, cut, kind, inputs, offered, counted, pace, may_be_copied: false, mark: None });
        // The engine's scheduler takes no word of earlier attempts, and numbers the tasks of this one anew.
        self.run_no_more(job_id, stage, |running| running.attempt < attempt);
    }

    /// What a stage's partitions read was found out, and how they are cut into tasks by that.
    pub fn inputs_known(
        &mut self,
        job_id: &str,
        stage: usize,
        attempt: usize,
        (inputs, cut): (Inputs, Cut),
        versions: impl IntoIterator<Item = (SegmentId, (Arc<ObjectVersion>, u32))>,
    ) {
        let Some(job) = self.jobs.get_mut(job_id) else { return };
        for (segment, (version, index)) in versions {
            job.mounts.insert(version.mount);
            job.versions.insert(segment, (version, index));
        }
        let Some(known) = job.stages.get_mut(&stage).filter(|known| known.attempt == attempt) else { return };
        known.inputs = Some(inputs);
        known.mark = None;
        if known.cut == Cut::Each {
            known.cut = cut;
        }
        let rate = self.rates.estimate(&known.kind);
        self.schedule.set_io_rate(job.number, rate);
    }

    /// The partitions of a stage that wait: those that the schedule does not know are given to it.
    pub(crate) fn waiting(&mut self, job_id: &str, stage_id: usize, pending: &[usize]) {
        let stage = self.jobs.get(job_id).and_then(|job| job.stages.get(&stage_id));
        let Some(stage) = stage.filter(|stage| stage.inputs.is_some()) else { return };
        // What waits in the engine's books does not run, whatever was said of it.
        let waits: HashSet<u32> = stage.cut.tasks(pending).into_iter().collect();
        self.run_no_more(job_id, stage_id, |running| waits.contains(&running.task));
        self.offer(job_id, stage_id, pending);
    }

    /// Tasks of a stage that were taken for some that run do not.
    fn run_no_more(&mut self, job_id: &str, stage_id: usize, which: impl Fn(&Running) -> bool) {
        let Some(job) = self.jobs.get_mut(job_id) else { return };
        let lost = job.running.extract_if(|(of, _), running| *of == stage_id && which(running));
        let lost: Vec<_> = lost.collect();
        lost.into_iter().for_each(|(key, running)| self.lost(job_id, key, running));
    }

    /// A task does not run any more. It is offered anew, by the cut of then, if it waits.
    fn lost(&mut self, job_id: &str, (stage_id, number): (usize, usize), running: Running) {
        let Some(job) = self.jobs.get_mut(job_id) else { return };
        if let Some(stage) = job.stages.get_mut(&stage_id) {
            stage.offered.remove(&running.task);
            stage.mark = None;
        }
        self.schedule.finished(job.number, task_id(stage_id, running.task), true);
        self.gives_up(job_id, (stage_id, number), running);
    }

    /// The same, where the schedule knows of it.
    fn gives_up(&mut self, job_id: &str, (stage_id, number): (usize, usize), mut running: Running) {
        self.copies.give_up(job_id, (stage_id, number), &mut running);
        if let Some(job) = self.jobs.get_mut(job_id) {
            job.sums.tasks_again += 1;
        }
        for range in &running.reads {
            self.schedule.failed(*range, running.worker);
        }
        self.over.tasks.note(job_id, stage_id, running, false);
    }

    /// Gives those of these partitions to the schedule that it does not know, also if some do not wait any more.
    pub fn offer(&mut self, job_id: &str, stage_id: usize, pending: &[usize]) {
        let Some(job) = self.jobs.get_mut(job_id) else { return };
        let Some(stage) = job.stages.get_mut(&stage_id) else { return };
        let Some(inputs) = stage.inputs.clone() else { return };
        let mut specs = Vec::new();
        for task in stage.cut.tasks(pending) {
            if !stage.offered.insert(task) {
                continue;
            }
            let partitions = stage.cut.partitions(task);
            let partitions = partitions.as_deref().unwrap_or(pending);
            let inputs: Vec<TaskInput> =
                partitions.iter().flat_map(|partition| inputs.get(*partition)).flatten().cloned().collect();
            if stage.counted.insert(task) {
                job.sums.tasks += 1;
                job.sums.bytes += inputs.iter().map(|input| input.range.len_bytes()).sum::<u64>();
            }
            specs.push(TaskSpec { id: task_id(stage_id, task), inputs });
        }
        debug_assert!(stage.offered.is_subset(&stage.counted), "what is offered was counted");
        failpoint(format_args!("waiting of {job_id}"));
        if !specs.is_empty() {
            // Each may be for somebody whose question is held.
            specs.iter().for_each(|_| self.news.notify_one());
            self.schedule.add_tasks(job.number, specs);
        }
    }

    /// An executor says how a task ended.
    pub(crate) fn ended(&mut self, ended: &Ended<'_>) {
        let Some(job) = self.jobs.get_mut(ended.job) else { return };
        let key = (ended.stage, ended.task);
        if job.running.get(&key).is_none_or(|running| running.attempt != ended.attempt) {
            return;
        }
        let Some(running) = job.running.remove(&key) else { return };
        self.schedule.finished(job.number, task_id(ended.stage, running.task), ended.done);
        for range in &running.reads {
            if ended.done { self.schedule.arrived(*range, running.worker) } else { self.schedule.failed(*range, running.worker) }
        }
        if ended.done {
            job.sums.tasks_done += 1;
            job.sums.bytes_done += running.bytes;
            job.sums.bytes_passed += ended.bytes_passed;
            if running.bytes > 0 {
                job.sums.tasks_with_input += 1;
                job.sums.tasks_local += u64::from(running.local_bytes * 2 > running.bytes);
            }
            let Sums { tasks_local, tasks_with_input, tasks_done, .. } = job.sums;
            assert!(tasks_local <= tasks_with_input && tasks_with_input <= tasks_done, "{tasks_done} tasks are done, in all");
            if let Some(stage) = job.stages.get_mut(&ended.stage) {
                stage.offered.remove(&running.task);
                stage.pace.note(running.began.elapsed(), running.bytes);
                self.rates.observe(&stage.kind, running.bytes, ended.took.as_secs_f64());
                if running.bytes > 0 {
                    self.schedule.set_io_rate(job.number, self.rates.estimate(&stage.kind));
                }
            }
        } else {
            job.sums.tasks_again += 1;
            // A schedule that was made anew meanwhile does not know it.
            if let Some(stage) = job.stages.get_mut(&ended.stage) {
                stage.offered.remove(&running.task);
                stage.mark = None;
            }
        }
        self.over.tasks.note(ended.job, ended.stage, running, ended.done);
    }

    /// A job is over.
    pub fn job_over(&mut self, id: &str, state: &str, error: String) {
        let error = if self.attempts.runs_again(id) { RUN_AGAIN.to_string() } else { error };
        self.attempts.forget(id);
        let Some(job) = self.jobs.remove(id) else { return };
        self.numbers.remove(job.number);
        self.schedule.close(job.number);
        // What still runs of it is given up.
        let over = JobState { tasks_running: 0, ..job.shown(id, state, error) };
        for (key @ (stage, _), mut running) in job.running {
            self.copies.give_up(id, key, &mut running);
            for range in &running.reads {
                self.schedule.failed(*range, running.worker);
            }
            self.over.tasks.note(id, stage, running, false);
        }
        self.note_over(over);
        self.check();
    }

    fn note_over(&mut self, over: JobState) {
        match over.state.as_str() {
            "done" => self.over.done += 1,
            // Its client runs it again, and that one counts.
            _ if over.error.contains(RUN_AGAIN) => {}
            _ => self.over.failed += 1,
        }
        if self.over.jobs.len() == OVER_MAX {
            self.over.jobs.pop_front();
        }
        self.over.jobs.push_back(over);
        assert!(self.over.jobs.len() <= OVER_MAX, "{} jobs that are over are shown", self.over.jobs.len());
    }

    /// The version that a range is of, the job that reads it, and where the range lies in it: (start, length).
    pub(crate) fn locate(&self, range: &BlockRange) -> Option<Located> {
        let of_job = |job: &Job| {
            let (version, index) = job.versions.get(&range.segment)?;
            let pages = range.pages.bytes();
            let start = u64::from(*index) * SEGMENT_BYTES + pages.start;
            let end = (u64::from(*index) * SEGMENT_BYTES + pages.end).min(version.size);
            let reader = (job.ticket.operation, Standing { priority: job.ticket.priority, began_ms: job.began_ms });
            Some((Arc::clone(version), reader, (start, u32::try_from(end.checked_sub(start)?).ok()?)))
        };
        // For the first job that reads it.
        let in_turn = |(_, (operation, standing), _): &Located| standing.turn(*operation, 0);
        self.jobs.values().filter_map(of_job).min_by_key(in_turn)
    }

    /// Whether a job was ended to be run again because an executor was lost.
    pub fn runs_again(&self, job: &str) -> bool {
        self.attempts.runs_again(job) || self.over.jobs.iter().any(|over| over.id == job && over.error == RUN_AGAIN)
    }
}
