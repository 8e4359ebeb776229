//! Decides what Ballista hears of tasks that lost their input, so that no row counts twice: a stage again, or the whole job.

use std::collections::{HashMap, HashSet, VecDeque};

use ballista_core::serde::protobuf::failed_task::FailedReason;
use ballista_core::serde::protobuf::{ExecutionError, ResultLost, TaskStatus, task_status};

use crate::broken_off::is_broken_off;
use crate::shuffle::is_in_nodes;

/// Begins the error of a job that has to run again as a whole.
pub(crate) const RUN_AGAIN: &str = "run it again: what its stages had passed on was lost";

/// So many attempts of a stage may lose what they read. What is lost after that is not made again by running the stage that it is
/// from: Ballista remembers outputs that nobody has any more.
const LOST_MAX: usize = 4;
/// Jobs that are over of which it is known how many rows they have: who asked for one is told of its end at about that time.
const OVER_MAX: usize = 1024;

/// What has been heard of the attempts of running jobs' stages.
///
/// A stage that reads what is lost runs again with all its tasks, and Ballista 55 keeps what those that were done had told of
/// their outputs, so that their rows would come twice. So either an attempt loses what it reads before any task of its stage
/// was done, in this attempt or in an earlier one, and those that are done later don't count, or its job ends and is run again.
/// So does a job that loses an executor with outputs of a stage that is done in its files, since Ballista would roll the stages that read
/// these back in the same way, or with results. What it has passed on in nodes is not lost with it.
#[derive(Default)]
pub(super) struct Attempts {
    running: HashMap<String, Told>,
    /// Jobs that are over, the last ones, with the rows of their stages.
    over: VecDeque<(String, HashMap<u32, u64>)>,
}

#[derive(Default)]
struct Told {
    /// By stage and attempt.
    heard: HashMap<(u32, u32), Heard>,
    /// Which executor has done a task of which stage, and whether it has outputs of that in files.
    done_by: HashMap<(String, u32), bool>,
    /// Of how many operators the first task of a stage told what they took.
    operators: HashMap<u32, usize>,
    /// Rows of each stage, as its tasks told.
    rows: HashMap<u32, u64>,
    /// Stages of which a task lost the connection that it read from.
    broken_off: HashSet<u32>,
    runs_again: bool,
}

/// What a job loses with an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    /// Outputs that others read: it has to run again as a whole.
    PassedOn,
    /// Outputs of stages that still pass on, and what runs: that is given to others.
    Outputs,
    /// What runs.
    Running,
}

#[derive(Clone, Copy, PartialEq)]
enum Heard {
    Done,
    Lost,
}

impl Attempts {
    /// What Ballista is to hear of what an executor said.
    pub(super) fn sift(&mut self, executor: &str, mut status: TaskStatus) -> Option<TaskStatus> {
        let Told { heard: attempts, done_by, operators, rows, broken_off, .. } =
            self.running.entry(status.job_id.clone()).or_default();
        let attempt = (status.stage_id, status.stage_attempt_num);
        match &status.status {
            Some(task_status::Status::Successful(task)) => {
                let in_files = task.partitions.iter().any(|place| !is_in_nodes(place.file_id));
                let told: u64 = task.partitions.iter().map(|place| place.num_rows).sum();
                // Ballista 55 wants one number of operators of all tasks of a stage, and takes a task with another for one that
                // runs for ever. A part of a union that a task does not read has metrics, where it had none.
                if !status.metrics.is_empty()
                    && *operators.entry(attempt.0).or_insert(status.metrics.len()) != status.metrics.len()
                {
                    status.metrics.clear();
                }
                let heard = *attempts.entry(attempt).or_insert(Heard::Done);
                if heard == Heard::Done {
                    *done_by.entry((executor.to_string(), status.stage_id)).or_default() |= in_files;
                    *rows.entry(status.stage_id).or_default() += told;
                }
                (heard == Heard::Done).then_some(status)
            }
            Some(task_status::Status::Failed(failed))
                if matches!(failed.failed_reason, Some(FailedReason::FetchPartitionError(_))) =>
            {
                attempts.entry(attempt).or_insert(Heard::Lost);
                let so_far = attempts.iter().filter(|((stage, number), _)| *stage == attempt.0 && *number <= attempt.1);
                // An attempt may be of a few tasks only, the others' outputs being those of the attempts before it.
                if so_far.clone().all(|(_, heard)| *heard == Heard::Lost) && so_far.count() <= LOST_MAX {
                    return Some(status);
                }
                Some(running_again(status))
            }
            // What it read from is gone, which nobody has heard of yet, or the connection alone is: then one task of the stage has lost it.
            Some(task_status::Status::Failed(failed)) if is_broken_off(&failed.error) => {
                Some(if broken_off.insert(attempt.0) { waiting_again(status) } else { running_again(status) })
            }
            _ => Some(status),
        }
    }

    /// An executor is lost, with what it has in files; with what it has in nodes as well where these do not stay.
    pub(super) fn miss(&mut self, job: &str, executor: &str, passing_on: &[usize], nodes_stay: bool) -> Missed {
        let Some(told) = self.running.get_mut(job) else { return Missed::Running };
        let done = told.done_by.iter().filter(|((by, _), _)| by == executor);
        let is_passed_on = done.clone().any(|((_, stage), _)| !passing_on.contains(&(*stage as usize)));
        let is_lost = done.clone().any(|(_, in_files)| *in_files || !nodes_stay);
        // Ballista takes all that an executor has done back, or nothing.
        told.runs_again |= is_passed_on && is_lost;
        match (told.runs_again, is_lost) {
            (true, _) => Missed::PassedOn,
            (false, true) => {
                told.done_by.retain(|(by, _), _| by != executor);
                Missed::Outputs
            }
            (false, false) => Missed::Running,
        }
    }

    /// Whether jobs have something of an executor.
    pub(super) fn has_done(&self, executor: &str) -> bool {
        self.running.values().any(|told| told.done_by.keys().any(|(by, _)| by == executor))
    }

    /// Ballista has taken back what an executor had done, which is there: jobs that have some of it run again.
    pub(super) fn taken_back(&mut self, executor: &str) {
        for told in self.running.values_mut() {
            told.runs_again |= told.done_by.keys().any(|(by, _)| by == executor);
        }
    }

    /// What a job's stages pass on is not what its books say: it has to run again.
    pub(super) fn spoil(&mut self, job: &str) {
        self.running.entry(job.to_string()).or_default().runs_again = true;
    }

    /// Whether an attempt of a stage lost what it reads: Ballista runs none of its tasks any more.
    pub(super) fn is_lost(&self, job: &str, stage: usize, attempt: usize) -> bool {
        let heard = self.running.get(job).and_then(|told| told.heard.get(&(stage as u32, attempt as u32)));
        heard == Some(&Heard::Lost)
    }

    /// Whether a job has to run again because of an executor that was lost.
    pub(super) fn runs_again(&self, job: &str) -> bool {
        self.running.get(job).is_some_and(|told| told.runs_again)
    }

    /// Whether so many rows of a job's last stage are fewer than its tasks told: an answer of them would lack some without a word. Where
    /// nothing is there of which the stage could be told, it is the last one that any was heard of.
    pub(super) fn lacks_results(&self, job: &str, stage: Option<u32>, rows: u64) -> bool {
        let over = || self.over.iter().rev().find(|(id, _)| id == job).map(|(_, rows)| rows);
        let Some(told) = self.running.get(job).map(|told| &told.rows).or_else(over) else { return false };
        stage.or(told.keys().max().copied()).and_then(|stage| told.get(&stage)).is_some_and(|told| rows < *told)
    }

    /// A job is over.
    pub(super) fn forget(&mut self, job: &str) {
        let Some(Told { rows, .. }) = self.running.remove(job).filter(|told| !told.rows.is_empty()) else { return };
        if self.over.len() == OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back((job.to_string(), rows));
        assert!(self.over.len() <= OVER_MAX, "{} jobs that are over are remembered", self.over.len());
    }
}

/// The status of a task whose job ends, to be run again.
fn running_again(mut status: TaskStatus) -> TaskStatus {
    if let Some(task_status::Status::Failed(failed)) = &mut status.status {
        failed.error = format!("{RUN_AGAIN}: {}", failed.error);
        failed.failed_reason = Some(FailedReason::ExecutionError(ExecutionError {}));
        failed.retryable = false;
    }
    status
}

/// The status of a task that is run once more, by itself. Of what it has written nobody was told.
fn waiting_again(mut status: TaskStatus) -> TaskStatus {
    assert!(matches!(status.status, Some(task_status::Status::Failed(_))), "a task that failed waits again");
    if let Some(task_status::Status::Failed(failed)) = &mut status.status {
        failed.failed_reason = Some(FailedReason::ResultLost(ResultLost {}));
        (failed.retryable, failed.count_to_failures) = (true, true);
    }
    status
}

#[cfg(test)]
mod tests {
    use ballista_core::error::BallistaError;
    use ballista_core::serde::protobuf::{FailedTask, ShuffleWritePartition, SuccessfulTask};

    use super::*;

    fn told(attempt: u32, status: task_status::Status) -> TaskStatus {
        TaskStatus { job_id: "j".into(), stage_id: 3, stage_attempt_num: attempt, status: Some(status), ..Default::default() }
    }

    #[test]
    fn no_row_of_an_attempt_counts_that_lost_what_it_reads() {
        let done = |attempt| told(attempt, task_status::Status::Successful(SuccessfulTask::default()));
        let lost = |attempt| {
            let error = BallistaError::FetchFailed("e".into(), 1, 0, "gone".into());
            told(attempt, task_status::Status::Failed(FailedTask::from(error)))
        };
        let mut attempts = Attempts::default();
        assert_eq!(attempts.sift("e", lost(0)), Some(lost(0)));
        assert_eq!(attempts.sift("e", done(0)), None, "too late");
        assert_eq!(attempts.sift("e", lost(0)), Some(lost(0)));
        assert!(attempts.is_lost("j", 3, 0) && !attempts.is_lost("j", 3, 1));
        assert_eq!(attempts.sift("e", done(1)), Some(done(1)));
        let Some(task_status::Status::Failed(failed)) = attempts.sift("e", lost(1)).unwrap().status else { panic!("it failed") };
        assert!(failed.error.starts_with(RUN_AGAIN) && failed.error.ends_with("gone"), "{}", failed.error);
        assert!(matches!(failed.failed_reason, Some(FailedReason::ExecutionError(_))), "the job ends");
        assert_ne!(attempts.sift("e", lost(2)), Some(lost(2)), "outputs of the attempt before it are still read");
        attempts.forget("j");
        for attempt in 1..5 {
            assert_eq!(attempts.sift("e", lost(attempt)), Some(lost(attempt)));
        }
        assert_ne!(attempts.sift("e", lost(5)), Some(lost(5)), "too often");
    }

    #[test]
    fn tasks_of_a_stage_tell_of_one_number_of_operators_or_of_none() {
        let done = |stage_id, operators| TaskStatus {
            stage_id,
            metrics: vec![Default::default(); operators],
            ..told(0, task_status::Status::Successful(SuccessfulTask::default()))
        };
        let mut attempts = Attempts::default();
        let mut heard = |stage, operators| attempts.sift("e", done(stage, operators)).unwrap().metrics.len();
        assert_eq!([heard(1, 0), heard(1, 11), heard(1, 10), heard(1, 11), heard(2, 10)], [0, 11, 0, 11, 10]);
    }

    #[test]
    fn a_connection_that_broke_costs_a_task_and_an_executor_that_went_away_the_job() {
        let failed = |error: &str| {
            let reason = Some(FailedReason::ExecutionError(ExecutionError {}));
            let failed = FailedTask { error: error.into(), failed_reason: reason, ..FailedTask::default() };
            told(0, task_status::Status::Failed(failed))
        };
        let mut attempts = Attempts::default();
        let mut broken = |stage_id| {
            let broken = failed("h2 protocol error: error reading a body from connection");
            match attempts.sift("e", TaskStatus { stage_id, ..broken }).unwrap().status {
                Some(task_status::Status::Failed(told)) => told,
                other => panic!("{other:?}"),
            }
        };
        for stage in [3, 4] {
            let told = broken(stage);
            assert!(matches!(told.failed_reason, Some(FailedReason::ResultLost(_))), "it waits again: {told:?}");
            assert!(told.retryable && told.count_to_failures && !told.error.contains(RUN_AGAIN), "{told:?}");
        }
        let told = broken(3);
        assert!(told.error.starts_with(RUN_AGAIN) && !told.retryable, "{told:?}");
        let own = failed("Divide by zero error");
        assert_eq!(attempts.sift("e", own.clone()), Some(own), "what it says itself it says again");
    }

    /// A task is done with outputs of these numbers.
    fn done(files: &[u64]) -> TaskStatus {
        let place = |file: &u64| ShuffleWritePartition { file_id: Some(*file), ..ShuffleWritePartition::default() };
        let partitions = files.iter().map(place).collect();
        told(0, task_status::Status::Successful(SuccessfulTask { partitions, ..SuccessfulTask::default() }))
    }

    #[test]
    fn an_answer_has_the_rows_that_the_tasks_of_the_last_stage_told() {
        let done = |job: &str, stage_id, task_id, rows| {
            let places = [rows, 1].map(|num_rows| ShuffleWritePartition { num_rows, ..ShuffleWritePartition::default() });
            let done = SuccessfulTask { partitions: places.to_vec(), ..SuccessfulTask::default() };
            TaskStatus { job_id: job.into(), stage_id, task_id, ..told(0, task_status::Status::Successful(done)) }
        };
        let mut attempts = Attempts::default();
        assert!(!attempts.lacks_results("j", None, 0), "nothing is known of it");
        for status in [done("j", 1, 0, 70), done("j", 2, 1, 4), done("j", 2, 2, 2), done("k", 1, 3, 100)] {
            attempts.sift("e", status);
        }
        // Of the task of a copy that was done later nothing is heard, and a job that is over may still be asked about.
        for _ in 0..2 {
            for stage in [None, Some(2)] {
                let lacks = |rows| attempts.lacks_results("j", stage, rows);
                assert!(lacks(0) && lacks(7) && !lacks(8) && !lacks(9), "{stage:?}");
            }
            assert!(!attempts.lacks_results("j", Some(3), 0), "its tasks were not heard of, and those before it tell other rows");
            attempts.forget("j");
        }
        assert!(attempts.lacks_results("k", Some(1), 100) && !attempts.lacks_results("k", Some(1), 101));
        for job in 0..OVER_MAX {
            attempts.sift("e", done(&job.to_string(), 1, 0, 1));
            attempts.forget(&job.to_string());
        }
        assert!(attempts.over.len() == OVER_MAX && !attempts.lacks_results("j", None, 0), "it was long ago");
    }

    #[test]
    fn what_lies_in_nodes_is_not_lost_with_its_executor() {
        const IN_NODES: u64 = 1 << 63 | 7;
        let mut attempts = Attempts::default();
        attempts.sift("e", done(&[IN_NODES]));
        assert!(attempts.has_done("e") && !attempts.has_done("f"));
        for passing_on in [3, 4] {
            assert_eq!(attempts.miss("j", "e", &[passing_on], true), Missed::Running);
        }
        assert_eq!(attempts.miss("j", "e", &[3], false), Missed::Outputs, "nobody is there to go on");
        assert!(!attempts.runs_again("j") && !attempts.has_done("e"), "it is made again by others");
        attempts.sift("e", done(&[IN_NODES]));
        // One output of another task found no room in nodes.
        attempts.sift("e", done(&[IN_NODES, 7]));
        assert_eq!(attempts.miss("j", "e", &[3], true), Missed::Outputs);
        attempts.sift("e", done(&[IN_NODES, 7]));
        assert_eq!(attempts.miss("j", "e", &[4], true), Missed::PassedOn);
        attempts.forget("j");
        assert!(!attempts.has_done("e"));
        attempts.sift("e", done(&[IN_NODES]));
        attempts.taken_back("f");
        assert!(!attempts.runs_again("j"));
        attempts.taken_back("e");
        assert!(attempts.runs_again("j"), "Ballista missed it all the same");
        attempts.forget("j");
        attempts.sift("e", done(&[IN_NODES]));
        assert_eq!(attempts.miss("j", "e", &[4], false), Missed::PassedOn);
    }

    #[test]
    fn an_executor_is_missed_where_a_stage_that_is_done_has_outputs_of_it() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.miss("j", "e", &[], true), Missed::Running);
        attempts.sift("e", done(&[7]));
        assert_eq!(attempts.miss("j", "e", &[3], true), Missed::Outputs, "its task is given to another one");
        for (job, executor) in [("j", "f"), ("k", "e")] {
            assert_eq!(attempts.miss(job, executor, &[4], true), Missed::Running);
        }
        assert_eq!(attempts.miss("j", "e", &[4], true), Missed::Running, "nothing of it is left");
        attempts.sift("e", done(&[7]));
        assert!(!attempts.runs_again("j"));
        assert_eq!(attempts.miss("j", "e", &[4], true), Missed::PassedOn);
        assert!(attempts.runs_again("j"));
        attempts.forget("j");
        assert!(!attempts.runs_again("j"));
        attempts.spoil("j");
        assert!(attempts.runs_again("j") && !attempts.runs_again("k"));
    }
}
