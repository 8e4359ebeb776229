//! Decides what the engine's scheduler hears of tasks that lost their input, so that no row counts twice: a stage again, or the whole job.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::word::{Heard, Said, Word};

/// Begins the error of a job that has to run again as a whole.
pub const RUN_AGAIN: &str = "run it again: what its stages had passed on was lost";

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
pub struct Attempts {
    running: HashMap<String, Told>,
    /// Jobs that are over, the last ones, with the rows of their stages.
    over: VecDeque<(String, HashMap<u32, u64>)>,
}

#[derive(Default)]
struct Told {
    /// By stage and attempt.
    heard: HashMap<(u32, u32), Came>,
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
pub enum Missed {
    /// Outputs that others read: it has to run again as a whole.
    PassedOn,
    /// Outputs of stages that still pass on, and what runs: that is given to others.
    Outputs,
    /// What runs.
    Running,
}

/// What came first of an attempt.
#[derive(Clone, Copy, PartialEq)]
enum Came {
    Done,
    Lost,
}

impl Attempts {
    /// What the engine's scheduler is to hear of what an executor said.
    pub(crate) fn sift(&mut self, executor: &str, word: &Word) -> Option<Heard> {
        let Told { heard: attempts, done_by, operators, rows, broken_off, .. } =
            self.running.entry(word.name.job.clone()).or_default();
        let attempt = (word.name.stage as u32, word.name.attempt as u32);
        match &word.said {
            Said::Done(done) => {
                // Ballista 55 wants one number of operators of all tasks of a stage, and takes a task with another for one that
                // runs for ever. A part of a union that a task does not read has metrics, where it had none.
                let is_another = done.operators > 0 && *operators.entry(attempt.0).or_insert(done.operators) != done.operators;
                if *attempts.entry(attempt).or_insert(Came::Done) == Came::Lost {
                    return None;
                }
                *done_by.entry((executor.to_string(), attempt.0)).or_default() |= done.in_files;
                *rows.entry(attempt.0).or_default() += done.rows;
                Some(if is_another { Heard::WithoutOperators } else { Heard::AsSaid })
            }
            Said::LostInput => {
                attempts.entry(attempt).or_insert(Came::Lost);
                let so_far = attempts.iter().filter(|((stage, number), _)| *stage == attempt.0 && *number <= attempt.1);
                // An attempt may be of a few tasks only, the others' outputs being those of the attempts before it.
                let is_first = so_far.clone().all(|(_, came)| *came == Came::Lost) && so_far.count() <= LOST_MAX;
                Some(if is_first { Heard::AsSaid } else { Heard::JobRunsAgain })
            }
            // Where it is the other end that is gone, not the connection alone, it breaks once more.
            Said::BrokenOff => Some(if broken_off.insert(attempt.0) { Heard::WaitsAgain } else { Heard::JobRunsAgain }),
            Said::Failed | Said::Goes => Some(Heard::AsSaid),
        }
    }

    /// An executor is lost, with what it has in files; with what it has in nodes as well where these do not stay.
    pub(crate) fn miss(&mut self, job: &str, executor: &str, passing_on: &[usize], nodes_stay: bool) -> Missed {
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
    pub fn has_done(&self, executor: &str) -> bool {
        self.running.values().any(|told| told.done_by.keys().any(|(by, _)| by == executor))
    }

    /// Ballista has taken back what an executor had done, which is there: jobs that have some of it run again.
    pub fn taken_back(&mut self, executor: &str) {
        for told in self.running.values_mut() {
            told.runs_again |= told.done_by.keys().any(|(by, _)| by == executor);
        }
    }

    /// What a job's stages pass on is not what its books say: it has to run again.
    pub fn spoil(&mut self, job: &str) {
        self.running.entry(job.to_string()).or_default().runs_again = true;
    }

    /// Whether an attempt of a stage lost what it reads: Ballista runs none of its tasks any more.
    pub(crate) fn is_lost(&self, job: &str, stage: usize, attempt: usize) -> bool {
        let heard = self.running.get(job).and_then(|told| told.heard.get(&(stage as u32, attempt as u32)));
        heard == Some(&Came::Lost)
    }

    /// Whether a job has to run again because of an executor that was lost.
    pub fn runs_again(&self, job: &str) -> bool {
        self.running.get(job).is_some_and(|told| told.runs_again)
    }

    /// Whether so many rows of a job's last stage are fewer than its tasks told: an answer of them would lack some without a word. Where
    /// nothing is there of which the stage could be told, it is the last one that any was heard of.
    pub(crate) fn lacks_results(&self, job: &str, stage: Option<u32>, rows: u64) -> bool {
        let over = || self.over.iter().rev().find(|(id, _)| id == job).map(|(_, rows)| rows);
        let Some(told) = self.running.get(job).map(|told| &told.rows).or_else(over) else { return false };
        stage.or(told.keys().max().copied()).and_then(|stage| told.get(&stage)).is_some_and(|told| rows < *told)
    }

    /// A job is over.
    pub(crate) fn forget(&mut self, job: &str) {
        let Some(Told { rows, .. }) = self.running.remove(job).filter(|told| !told.rows.is_empty()) else { return };
        if self.over.len() == OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back((job.to_string(), rows));
        assert!(self.over.len() <= OVER_MAX, "{} jobs that are over are remembered", self.over.len());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::word::{Done, TaskName};

    fn told(job: &str, (stage, attempt, task): (usize, usize, usize), said: Said) -> Word {
        Word { name: TaskName { job: job.to_string(), stage, attempt, task }, took: Duration::ZERO, said }
    }

    fn done(job: &str, stage: usize, attempt: usize, done: Done) -> Word {
        told(job, (stage, attempt, 0), Said::Done(done))
    }

    #[test]
    fn no_row_of_an_attempt_counts_that_lost_what_it_reads() {
        let mut attempts = Attempts::default();
        let done = |attempt| done("j", 3, attempt, Done::default());
        let lost = |attempt| told("j", (3, attempt, 0), Said::LostInput);
        assert_eq!(attempts.sift("e", &lost(0)), Some(Heard::AsSaid));
        assert_eq!(attempts.sift("e", &done(0)), None, "too late");
        assert_eq!(attempts.sift("e", &lost(0)), Some(Heard::AsSaid));
        assert!(attempts.is_lost("j", 3, 0) && !attempts.is_lost("j", 3, 1));
        assert_eq!(attempts.sift("e", &done(1)), Some(Heard::AsSaid));
        assert_eq!(attempts.sift("e", &lost(1)), Some(Heard::JobRunsAgain));
        assert_eq!(attempts.sift("e", &lost(2)), Some(Heard::JobRunsAgain), "outputs of the attempt before it are still read");
        attempts.forget("j");
        for attempt in 1..5 {
            assert_eq!(attempts.sift("e", &lost(attempt)), Some(Heard::AsSaid));
        }
        assert_eq!(attempts.sift("e", &lost(5)), Some(Heard::JobRunsAgain), "too often");
    }

    #[test]
    fn tasks_of_a_stage_tell_of_one_number_of_operators_or_of_none() {
        let mut attempts = Attempts::default();
        let mut heard = |stage, operators| {
            let heard = attempts.sift("e", &done("j", stage, 0, Done { operators, ..Done::default() }));
            heard.expect("it counts") == Heard::AsSaid
        };
        assert_eq!([heard(1, 0), heard(1, 11), heard(1, 10), heard(1, 11), heard(2, 10)], [true, true, false, true, true]);
    }

    #[test]
    fn a_connection_that_broke_costs_a_task_and_an_executor_that_went_away_the_job() {
        let mut attempts = Attempts::default();
        let mut broken = |stage| attempts.sift("e", &told("j", (stage, 0, 0), Said::BrokenOff));
        assert_eq!([broken(3), broken(4)], [Some(Heard::WaitsAgain); 2]);
        assert_eq!(broken(3), Some(Heard::JobRunsAgain));
        let own = told("j", (3, 0, 0), Said::Failed);
        assert_eq!(attempts.sift("e", &own), Some(Heard::AsSaid), "what it says itself it says again");
    }

    #[test]
    fn an_answer_has_the_rows_that_the_tasks_of_the_last_stage_told() {
        let of = |job: &str, stage, rows| done(job, stage, 0, Done { rows, ..Done::default() });
        let mut attempts = Attempts::default();
        assert!(!attempts.lacks_results("j", None, 0), "nothing is known of it");
        for word in [of("j", 1, 71), of("j", 2, 5), of("j", 2, 3), of("k", 1, 101)] {
            attempts.sift("e", &word);
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
            attempts.sift("e", &of(&job.to_string(), 1, 1));
            attempts.forget(&job.to_string());
        }
        assert!(attempts.over.len() == OVER_MAX && !attempts.lacks_results("j", None, 0), "it was long ago");
    }

    #[test]
    fn what_lies_in_nodes_is_not_lost_with_its_executor() {
        let in_nodes = || done("j", 3, 0, Done::default());
        let in_files = || done("j", 3, 0, Done { in_files: true, ..Done::default() });
        let mut attempts = Attempts::default();
        attempts.sift("e", &in_nodes());
        assert!(attempts.has_done("e") && !attempts.has_done("f"));
        for passing_on in [3, 4] {
            assert_eq!(attempts.miss("j", "e", &[passing_on], true), Missed::Running);
        }
        assert_eq!(attempts.miss("j", "e", &[3], false), Missed::Outputs, "nobody is there to go on");
        assert!(!attempts.runs_again("j") && !attempts.has_done("e"), "it is made again by others");
        attempts.sift("e", &in_nodes());
        // Another task found no room in nodes.
        attempts.sift("e", &in_files());
        assert_eq!(attempts.miss("j", "e", &[3], true), Missed::Outputs);
        attempts.sift("e", &in_files());
        attempts.sift("e", &in_nodes());
        assert_eq!(attempts.miss("j", "e", &[4], true), Missed::PassedOn);
        attempts.forget("j");
        assert!(!attempts.has_done("e"));
        attempts.sift("e", &in_nodes());
        attempts.taken_back("f");
        assert!(!attempts.runs_again("j"));
        attempts.taken_back("e");
        assert!(attempts.runs_again("j"), "Ballista missed it all the same");
        attempts.forget("j");
        attempts.sift("e", &in_nodes());
        assert_eq!(attempts.miss("j", "e", &[4], false), Missed::PassedOn);
    }

    #[test]
    fn an_executor_is_missed_where_a_stage_that_is_done_has_outputs_of_it() {
        let in_files = || done("j", 3, 0, Done { in_files: true, ..Done::default() });
        let mut attempts = Attempts::default();
        assert_eq!(attempts.miss("j", "e", &[], true), Missed::Running);
        attempts.sift("e", &in_files());
        assert_eq!(attempts.miss("j", "e", &[3], true), Missed::Outputs, "its task is given to another one");
        for (job, executor) in [("j", "f"), ("k", "e")] {
            assert_eq!(attempts.miss(job, executor, &[4], true), Missed::Running);
        }
        assert_eq!(attempts.miss("j", "e", &[4], true), Missed::Running, "nothing of it is left");
        attempts.sift("e", &in_files());
        assert!(!attempts.runs_again("j"));
        assert_eq!(attempts.miss("j", "e", &[4], true), Missed::PassedOn);
        assert!(attempts.runs_again("j"));
        attempts.forget("j");
        assert!(!attempts.runs_again("j"));
        attempts.spoil("j");
        assert!(attempts.runs_again("j") && !attempts.runs_again("k"));
    }
}
