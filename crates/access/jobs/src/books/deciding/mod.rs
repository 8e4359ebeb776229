//! Decisions that fail by a defect: what they left half-made is made anew, who they were of is named and has no say any more, and
//! others go on.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use forebay_scheduling::{IO_RATE, JobId, Schedule};
use tracing::error;

use super::Books;

/// What a job ends with of which a decision failed.
pub const DEFECT: &str = "the job failed by a defect of the scheduler, whose log has more";
/// Jobs and executors that are remembered for it, each.
const REFUSED_MAX: usize = 1_024;
/// After a decision that failed for nobody's sake, so many others keep what they began from, to find out whose it is.
const CAREFUL: u32 = 1_000;

/// Whose word a decision takes in.
#[derive(Clone, Copy, Debug)]
pub enum Sender<'a> {
    /// A job, by its id.
    Job(&'a str),
    /// An executor, by its id.
    Executor(&'a str),
    /// Time, or workers.
    Nobody,
}

impl fmt::Display for Sender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => write!(f, "job {id}"),
            Self::Executor(id) => write!(f, "executor {id}"),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}

/// Who is not heard any more.
#[derive(Default)]
pub(super) struct Refused {
    jobs: HashSet<String>,
    executors: HashSet<String>,
    /// Decisions that are still taken with care.
    careful: u32,
}

impl Books {
    /// Takes in what somebody says. None when it failed, or something of the same sender has failed before.
    pub fn decide<T>(&mut self, what: &'static str, sender: Sender<'_>, decision: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.refuses(sender) {
            return None;
        }
        let decided = caught(|| decision(self));
        if decided.is_none() {
            self.failed(what, sender);
        }
        decided
    }

    /// What somebody says failed by a defect, here or on its way here.
    pub fn failed(&mut self, what: &'static str, sender: Sender<'_>) {
        error!(what, %sender, "a decision failed by a defect: whose word it took in is not heard any more");
        match sender {
            Sender::Job(id) => self.refuse_job(id),
            Sender::Executor(id) => {
                self.executors.remove(id);
                remember(&mut self.refused.executors, id);
            }
            Sender::Nobody => {}
        }
        self.begin_anew();
    }

    /// Asks the schedule what is next. None when that failed: once it has, it is found out without which job it would not have.
    pub(crate) fn ask<T>(&mut self, what: &'static str, ask: impl Fn(&mut Schedule) -> T) -> Option<T> {
        let before = (self.refused.careful > 0).then(|| self.schedule.clone());
        let said = caught(|| ask(&mut self.schedule));
        if said.is_some() {
            self.refused.careful = self.refused.careful.saturating_sub(1);
            return said;
        }
        let job = before.and_then(|before| self.without_whom(&before, &ask));
        error!(what, job, "a decision failed by a defect: the schedule is made anew");
        if let Some(job) = job {
            self.refuse_job(&job);
        }
        self.refused.careful = CAREFUL;
        self.begin_anew();
        None
    }

    /// Whether a job was ended by a defect.
    pub(crate) fn is_refused(&self, job: &str) -> bool {
        self.refused.jobs.contains(job)
    }

    /// The jobs that were ended by a defect.
    pub(crate) fn refused_jobs(&self) -> HashSet<String> {
        self.refused.jobs.clone()
    }

    /// Ends a job here, of which nothing is taken in any more.
    fn refuse_job(&mut self, id: &str) {
        remember(&mut self.refused.jobs, id);
        if let Some(mut job) = self.jobs.remove(id) {
            self.numbers.remove(job.number);
            self.attempts.forget(id);
            job.running.iter_mut().for_each(|(key, running)| self.copies.give_up(id, *key, running));
            self.note_over(job.shown(id, "failed", DEFECT.to_string()));
        }
    }

    fn refuses(&self, sender: Sender<'_>) -> bool {
        match sender {
            Sender::Job(id) => self.refused.jobs.contains(id),
            Sender::Executor(id) => self.refused.executors.contains(id),
            Sender::Nobody => false,
        }
    }

    /// The job, the last one first, without which the schedule answers.
    fn without_whom<T>(&self, before: &Schedule, ask: &impl Fn(&mut Schedule) -> T) -> Option<String> {
        let mut numbers: Vec<JobId> = self.numbers.jobs.keys().copied().collect();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        let answers = |number: &JobId| {
            let mut without = before.clone();
            caught(|| {
                without.close(*number);
                ask(&mut without)
            })
            .is_some()
        };
        numbers.into_iter().find(answers).and_then(|number| self.numbers.job(number).cloned())
    }

    /// The schedule as it follows from the jobs and executors that are known. What waits is offered again when it is looked at next,
    /// and what is on its way is planned again; slots of tasks that run count as free, which who asks for tasks knows better.
    fn begin_anew(&mut self) {
        self.schedule = Schedule::new(self.schedule.settings());
        let workers: HashSet<_> = self.executors.values().map(|entry| entry.worker).collect();
        workers.into_iter().for_each(|worker| self.beside_changed(worker));
        let mut jobs: Vec<_> = self.jobs.values_mut().collect();
        jobs.sort_unstable_by_key(|job| job.number);
        for job in jobs {
            self.schedule.submit(job.number, job.ticket.priority, IO_RATE);
            let running: HashSet<(usize, u32)> = job.running.iter().map(|((stage, _), task)| (*stage, task.task)).collect();
            for (id, stage) in &mut job.stages {
                stage.offered.retain(|task| running.contains(&(*id, *task)));
                stage.mark = None;
            }
        }
        self.check();
    }
}

/// None when it panicked, which is reported where it happened.
pub fn caught<T>(decision: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(decision)).ok()
}

fn remember(all: &mut HashSet<String>, id: &str) {
    if all.len() < REFUSED_MAX {
        all.insert(id.to_string());
    }
    assert!(all.len() <= REFUSED_MAX, "what is remembered has a limit");
}

#[cfg(test)]
pub(crate) use failpoints::{fail_at, failpoint};

#[cfg(not(test))]
pub(crate) fn failpoint(_: fmt::Arguments<'_>) {}

#[cfg(test)]
mod failpoints {
    use std::cell::RefCell;
    use std::fmt;

    thread_local! {
        static POINT: RefCell<Option<String>> = const { RefCell::new(None) };
    }

    /// Decisions of this thread panic where they come to a point of this name.
    pub(crate) fn fail_at(name: Option<&str>) {
        POINT.with(|point| *point.borrow_mut() = name.map(ToString::to_string));
    }

    /// A place in the middle of a decision.
    pub(crate) fn failpoint(name: fmt::Arguments<'_>) {
        let fails = POINT.with(|point| point.borrow().as_ref().is_some_and(|point| *point == name.to_string()));
        assert!(!fails, "the failpoint {name}");
    }
}

#[cfg(test)]
mod tests;
