//! What an engine does by the books, step by step: takes a question in, holds it, looks at jobs and stages, gives tasks, loses an executor,
//! and says how a job ended.
//!
//! The gate and the policy around Ballista take these steps, and so do the stand-ins of `testing/universe`: what is in them is found wanting there.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use forebay_protocol::WorkerInfo;
use forebay_runtime::time::timeout;
use forebay_scheduling::room_bytes;
use forebay_types::WorkerId;
use tokio::sync::Notify;

use super::{Books, Chosen, DEFECT, Sender};
use crate::attempts::{Missed, RUN_AGAIN};
use crate::job::{Cut, Inputs, Mark};
use crate::ticket::{Ticket, worker_of};
use crate::word::{Heard, TaskName, Word};

/// So long a question of an executor that has nothing to do is held, unless there is a task for it.
const HELD: Duration = Duration::from_millis(500);
/// An executor that was silent for so long is lost. A busy one asks every five seconds.
const SILENT: Duration = Duration::from_secs(12);

/// An executor's question.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Who asks.
    pub executor: &'a str,
    /// Tasks that it runs at once.
    pub slots: u32,
    /// How many more it would begin with now.
    pub free: u32,
    /// Live workers, one of which may be beside it.
    pub workers: &'a [WorkerInfo],
}

impl Question<'_> {
    /// Whether it has nothing to do.
    fn is_idle(&self) -> bool {
        self.free >= self.slots
    }

    /// For what waiting tasks will read at the worker beside it; none where there is no such worker.
    fn room(&self) -> Option<u64> {
        let beside = worker_of(self.executor)?;
        self.workers.iter().find(|worker| worker.id == beside).map(|worker| room_bytes(worker.dram_bytes))
    }
}

/// What comes of a question's words.
pub struct TakenIn<T> {
    /// Those that the engine is to hear, and how.
    pub heard: Vec<(T, Heard)>,
    /// Tasks that nobody runs any more: they wait again.
    pub waits: Vec<TaskName>,
}

/// A stage that can run from now on.
pub struct Begins {
    /// Which of its partitions are one task.
    pub cut: Cut,
    /// By which the rate is known at which such a stage reads.
    pub kind: String,
    /// What it reads; none where that must be found out.
    pub inputs: Option<Inputs>,
    /// Two of its tasks may run at the same time for one.
    pub may_be_copied: bool,
}

/// How a job ended, as the engine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not well.
    Failed,
    /// With so many rows of its last stage, where it is known which one that is.
    Done {
        /// That stage.
        stage: Option<u32>,
        /// Those that its client is told of.
        rows: u64,
    },
}

/// Asks until there is something, where a question is held: once more as soon as there is news of a task, and after each `look`, since of some tasks
/// nobody tells, as of one whose input has come.
///
/// # Errors
///
/// What `ask` says.
pub async fn held<T, E, F>(
    news: &Notify,
    is_held: bool,
    look: Duration,
    mut ask: impl FnMut() -> F,
    has_nothing: impl Fn(&T) -> bool,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    assert!(look < HELD, "what is held is looked at meanwhile");
    let until = forebay_runtime::now() + HELD;
    loop {
        // From before it is looked what there is.
        let mut told = pin!(news.notified());
        told.as_mut().enable();
        let answer = ask().await?;
        if !is_held || !has_nothing(&answer) || forebay_runtime::now() >= until {
            return Ok(answer);
        }
        // Who hangs up meanwhile is given nothing.
        let _ = timeout(look, told).await;
    }
}

impl Books {
    /// Takes in who asks, what they say of their tasks, each with its job, and what they say nothing of though they should.
    pub fn takes_in<T>(
        &mut self,
        question: &Question<'_>,
        told: impl IntoIterator<Item = (String, T)>,
        word: impl Fn(&T) -> Word,
    ) -> TakenIn<T> {
        let (id, room, is_idle) = (question.executor, question.room(), question.is_idle());
        let sender = Sender::Executor(id);
        self.decide("a question", sender, |books| books.executor_asks(id, question.slots, room));
        let mut heard = Vec::new();
        for (job, of) in told {
            let said = self.decide("the end of a task", Sender::Job(&job), |books| books.hears(id, &word(&of)));
            heard.extend(said.flatten().map(|said| (of, said)));
        }
        let waits = self.decide("what is lost", sender, |books| books.hears_nothing(id, is_idle)).unwrap_or_default();
        debug_assert!(waits.is_sorted(), "they wait again in an order that is the same each time");
        TakenIn { heard, waits }
    }

    /// Whether a question may be held: who asks has nothing to do, and tells with none that comes after it how a task ended.
    pub fn may_be_held(&self, question: &Question<'_>) -> bool {
        question.free > 0 && question.is_idle() && self.rests(question.executor)
    }

    /// A job is there: who runs those of its tasks that its engine may take for others'. None of one that is not to be looked at any more.
    pub fn sees_job(&mut self, id: &str, ticket: impl FnOnce() -> Ticket) -> Option<Vec<(TaskName, String)>> {
        let seen = self.decide("a job that is there", Sender::Job(id), |books| {
            books.job_seen(id, ticket);
            (!books.runs_again(id)).then(|| books.moved(id))
        });
        seen.flatten()
    }

    /// A stage that runs has come on, or is new, with the partitions that wait. Whether it must be found out now what it reads.
    pub fn sees_stage(
        &mut self,
        (job, stage): (&str, usize),
        mark: Mark,
        pending: impl FnOnce() -> Vec<usize>,
        begins: impl FnOnce() -> Begins,
    ) -> bool {
        let seen = self.decide("a look at a stage", Sender::Job(job), |books| {
            if books.is_new_stage(job, stage, mark.attempt) {
                let Begins { cut, kind, inputs, may_be_copied } = begins();
                let is_known = inputs.is_some();
                books.stage_begins(job, stage, mark.attempt, cut, kind, inputs);
                if may_be_copied {
                    books.may_be_copied(job, stage);
                }
                if !is_known {
                    return true;
                }
            }
            books.sees(job, stage, mark, &pending());
            false
        });
        seen.unwrap_or(false)
    }

    /// Workers beside executors, where what is read may be brought.
    pub fn workers_beside(&self) -> Vec<WorkerId> {
        let beside: Vec<WorkerId> =
            self.executors.values().filter(|entry| entry.has_worker()).map(|entry| entry.worker).collect();
        debug_assert!(beside.len() <= self.executors.len(), "an executor is beside one worker");
        beside
    }

    /// The task that was chosen runs, by its attempt and number; how far its stage was before, and is now.
    pub fn begins(&mut self, chosen: &Chosen, (attempt, task): (usize, usize), (before, after): (Mark, Mark)) {
        debug_assert_eq!(before.attempt, attempt, "a task is of the attempt that was looked at");
        self.decide("a task that begins", Sender::Job(&chosen.job), |books| {
            books.began(chosen, attempt, task);
            books.comes_on(&chosen.job, chosen.stage, before, after);
        });
    }

    /// The task that was chosen does not wait any more.
    pub fn is_gone(&mut self, chosen: &Chosen) {
        self.decide("a task that is gone", Sender::Job(&chosen.job), |books| books.not_there(chosen));
    }

    /// A copy of a late task begins; whether it does.
    pub fn begins_copy(&mut self, name: &TaskName, executor: &str) -> bool {
        let begins = self.decide("a copy that begins", Sender::Job(&name.job), |books| books.copy_begins(name, executor));
        begins == Some(true)
    }

    /// Finds out which tasks are late. Runs that nobody waits for, with their executors: of a task and its copy the one that was not done first, and
    /// copies of tasks that are over otherwise.
    pub fn unwanted(&mut self) -> Vec<(TaskName, String)> {
        self.decide("late tasks", Sender::Nobody, Self::look_for_late);
        self.take_unwanted()
    }

    /// Executors that were silent for too long, which are forgotten: each is lost.
    pub fn misses(&mut self) -> Vec<String> {
        let missed = self.decide("silence", Sender::Nobody, |books| books.forget_silent(SILENT)).unwrap_or_default();
        debug_assert!(missed.iter().all(|id| !self.executors.contains_key(id)), "who is missed is known no more");
        missed
    }

    /// What a job loses with an executor, and who runs its tasks by now. What that one ran twice goes on elsewhere.
    pub fn loses(&mut self, job: &str, executor: &str, passing_on: &[usize]) -> (Missed, Vec<(TaskName, String)>) {
        let missed = self.decide("an executor that is lost", Sender::Job(job), |books| {
            books.copies_go_on(job, executor);
            // Where no other one is, the engine is to end the job after a while, as it does when it misses the last one.
            let others = books.executors.keys().any(|other| other != executor);
            (books.attempts.miss(job, executor, passing_on, others), books.moved(job))
        });
        missed.unwrap_or((Missed::PassedOn, Vec::new()))
    }

    /// Jobs that can't go on: those that have to run again as a whole, and those of which a decision failed.
    pub fn spoilt(&self) -> HashSet<String> {
        let mut spoilt = self.refused_jobs();
        spoilt.extend(self.jobs.keys().filter(|id| self.attempts.runs_again(id)).cloned());
        spoilt
    }

    /// What the client of a job is told of its end in the place of what the engine says; none where that is the truth. It is to be run again where
    /// it was ended for that, or has fewer rows than its tasks told.
    pub fn truth(&mut self, job: &str, outcome: Outcome) -> Option<&'static str> {
        match outcome {
            Outcome::Failed if self.runs_again(job) => Some(RUN_AGAIN),
            Outcome::Failed => self.is_refused(job).then_some(DEFECT),
            Outcome::Done { stage, rows } => {
                self.has_rows(job, rows);
                let lacks = self.attempts.lacks_results(job, stage, rows);
                if lacks {
                    tracing::error!(%job, rows, "a job runs again: some of its results are forgotten");
                }
                lacks.then_some(RUN_AGAIN)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::sync::Arc;

    use forebay_scheduling::ScheduleSettings;
    use forebay_types::{HostId, OperationId};

    use super::*;
    use crate::word::{Done, Said};

    const EXECUTOR: &str = "0000000000000007-0000000000000001";
    const OTHER: &str = "0000000000000008-0000000000000002";

    fn asks(executor: &'static str, free: u32) -> Question<'static> {
        Question { executor, slots: 2, free, workers: &[] }
    }

    /// What an executor with nothing to do says.
    fn idle(books: &mut Books) -> Vec<TaskName> {
        let nothing = std::iter::empty::<(String, Word)>();
        books.takes_in(&asks(EXECUTOR, 2), nothing, Word::clone).waits
    }

    fn mark(begun: usize) -> Mark {
        Mark { attempt: 0, begun, waiting: 2 - begun }
    }

    /// A job of a stage of two partitions, one of which an executor runs; the task.
    fn begun() -> (Books, TaskName) {
        let mut books = Books::new(ScheduleSettings::default());
        assert!(idle(&mut books).is_empty());
        assert_eq!(books.sees_job("j", || Ticket::silent(OperationId(1))), Some(Vec::new()));
        let inputs = Some(Arc::new(vec![Vec::new(); 2]));
        let begins = || Begins { cut: Cut::Each, kind: String::new(), inputs, may_be_copied: false };
        assert!(!books.sees_stage(("j", 1), mark(0), || vec![0, 1], begins), "it is known what it reads");
        let chosen = books.choose(EXECUTOR).expect("a task waits");
        books.begins(&chosen, (0, 0), (mark(0), mark(1)));
        (books, TaskName { job: "j".to_owned(), stage: 1, attempt: 0, task: 0 })
    }

    fn done(name: &TaskName) -> (String, Word) {
        let said = Said::Done(Done { in_files: true, rows: 3, ..Done::default() });
        (name.job.clone(), Word { name: name.clone(), took: Duration::ZERO, said })
    }

    #[test]
    fn a_question_without_a_word_of_a_task_has_it_wait_again_and_one_with_it_does_not() {
        let (mut books, name) = begun();
        assert!(!books.may_be_held(&asks(EXECUTOR, 2)), "it has a task, and says with its next question how that ended");
        assert!(idle(&mut books).is_empty(), "word of it may be on its way");
        assert_eq!(idle(&mut books), [name]);
        assert!(books.may_be_held(&asks(EXECUTOR, 2)) && !books.may_be_held(&asks(EXECUTOR, 1)));
        let (mut books, name) = begun();
        let taken = books.takes_in(&asks(EXECUTOR, 2), [done(&name)], Word::clone);
        assert!(taken.waits.is_empty() && matches!(taken.heard[..], [(_, Heard::AsSaid)]));
        assert!(idle(&mut books).is_empty() && idle(&mut books).is_empty(), "it has told");
    }

    #[test]
    fn a_worker_beside_an_executor_has_room_for_it() {
        let beside = WorkerInfo { dram_bytes: 1 << 30, ..WorkerInfo::new(WorkerId(7), HostId("h".to_owned()), "w:1") };
        let asks = |executor| Question { executor, slots: 2, free: 2, workers: std::slice::from_ref(&beside) };
        assert_eq!((asks(EXECUTOR).room(), asks(OTHER).room(), asks("none").room()), (Some(room_bytes(1 << 30)), None, None));
        let mut books = Books::new(ScheduleSettings::default());
        for executor in [EXECUTOR, OTHER] {
            books.takes_in(&asks(executor), std::iter::empty::<(String, Word)>(), Word::clone);
        }
        assert_eq!(books.workers_beside(), [WorkerId(7)]);
    }

    #[test]
    fn a_job_that_lost_what_it_passed_on_is_spoilt_and_says_so() {
        let (mut books, name) = begun();
        books.takes_in(&asks(EXECUTOR, 2), [done(&name)], Word::clone);
        assert_eq!(books.truth("j", Outcome::Failed), None, "it failed by itself");
        assert_eq!(books.truth("j", Outcome::Done { stage: Some(1), rows: 3 }), None);
        assert_eq!(books.truth("j", Outcome::Done { stage: None, rows: 2 }), Some(RUN_AGAIN), "a row is missing");
        assert!(books.spoilt().is_empty());
        assert_eq!(books.loses("j", EXECUTOR, &[]).0, Missed::PassedOn);
        assert_eq!(books.spoilt(), HashSet::from(["j".to_owned()]));
        assert_eq!(books.sees_job("j", || unreachable!("it is known")), None, "it is not looked at any more");
        assert_eq!(books.truth("j", Outcome::Failed), Some(RUN_AGAIN));
        books.failed("anything", Sender::Job("k"));
        assert_eq!(books.truth("k", Outcome::Failed), Some(DEFECT));
        assert!(books.spoilt().contains("k"));
    }

    #[test]
    fn a_task_that_is_gone_is_offered_again() {
        let (mut books, _) = begun();
        let chosen = books.choose(EXECUTOR).expect("another task waits");
        books.is_gone(&chosen);
        assert!(books.choose(EXECUTOR).is_none());
        let waits = chosen.partitions.expect("it is one of them");
        books.sees_stage(("j", 1), mark(1), || waits, || unreachable!("it is known"));
        assert!(books.choose(EXECUTOR).is_some());
    }

    #[tokio::test]
    async fn a_question_is_asked_again_while_it_is_held_and_not_for_longer() {
        let news = Notify::new();
        let look = Duration::from_millis(50);
        for (is_held, has_at, expected) in [(true, 3, 3), (true, 1, 1), (false, 3, 1)] {
            let mut asked = 0;
            let ask = || {
                asked += 1;
                ready(Ok::<usize, Infallible>(asked))
            };
            let Ok(answer) = held(&news, is_held, look, ask, |answer: &usize| *answer < has_at).await;
            assert_eq!(answer, expected, "held: {is_held}");
        }
        let began = forebay_runtime::now();
        let Ok(()) = held(&news, true, look, || ready(Ok::<(), Infallible>(())), |_: &()| true).await;
        assert!(began.elapsed() >= HELD, "there may be something until then");
    }
}
