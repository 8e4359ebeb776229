//! How far stages have come in the engine's books, as of when they were looked at: what has not changed since costs nothing to look at.

use super::Books;
use crate::job::Mark;

impl Books {
    /// Whether a look at a stage could tell something: it has come on since the last one, or the books have. Not where what it reads is still
    /// being found out: nothing of it is offered before.
    pub fn is_unseen(&self, job: &str, stage: usize, mark: Mark) -> bool {
        let known = self.jobs.get(job).and_then(|job| job.stages.get(&stage)).filter(|known| known.attempt == mark.attempt);
        known.is_none_or(|known| known.inputs.is_some() && known.mark != Some(mark))
    }

    /// A look at a stage: its partitions that wait, of which those that the schedule does not know are given to it, and how far it has come.
    pub(crate) fn sees(&mut self, job: &str, stage: usize, mark: Mark, pending: &[usize]) {
        debug_assert_eq!(mark.waiting, pending.len(), "the mark is of what waits");
        self.waiting(job, stage, pending);
        let known = self.jobs.get_mut(job).and_then(|job| job.stages.get_mut(&stage));
        if let Some(known) = known.filter(|known| known.attempt == mark.attempt && known.inputs.is_some()) {
            known.mark = Some(mark);
        }
    }

    /// A stage has come on by a task that the books chose and have noted ([`Books::began`]): there is nothing new in that, and what was not seen
    /// before is not now.
    pub(crate) fn comes_on(&mut self, job: &str, stage: usize, before: Mark, after: Mark) {
        debug_assert!(before.attempt == after.attempt && before.waiting > after.waiting, "a task has begun of what waited");
        let known = self.jobs.get_mut(job).and_then(|job| job.stages.get_mut(&stage));
        if let Some(known) = known.filter(|known| known.mark == Some(before)) {
            known.mark = Some(after);
        }
    }

    /// Whether a look at a stage would change something, whatever its mark.
    #[cfg(test)]
    pub(super) fn would_change(&self, job: &str, stage: usize, pending: &[usize]) -> bool {
        let Some(job) = self.jobs.get(job) else { return false };
        let Some(known) = job.stages.get(&stage).filter(|known| known.inputs.is_some()) else { return false };
        let waits = known.cut.tasks(pending);
        let runs = |task: &u32| job.running.iter().any(|((of, _), running)| *of == stage && running.task == *task);
        waits.iter().any(|task| !known.offered.contains(task) || runs(task))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_scheduling::ScheduleSettings;
    use forebay_types::OperationId;

    use super::super::{Ended, Sender};
    use super::*;
    use crate::job::Cut;
    use crate::ticket::Ticket;

    const EXECUTOR: &str = "0000000000000007-0000000000000001";

    fn at(attempt: usize, begun: usize, waiting: usize) -> Mark {
        Mark { attempt, begun, waiting }
    }

    /// A stage of four partitions that was looked at.
    fn books() -> Books {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(EXECUTOR, 4, Some(1 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        assert!(books.is_unseen("j", 1, at(0, 0, 4)), "nobody knows it");
        books.stage_begins("j", 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        assert!(books.is_unseen("j", 1, at(0, 0, 4)), "nobody has looked at it");
        books.sees("j", 1, at(0, 0, 4), &[0, 1, 2, 3]);
        assert!(!books.is_unseen("j", 1, at(0, 0, 4)));
        books
    }

    /// The same, of which a task was given: its partition.
    fn given() -> (Books, usize) {
        let mut books = books();
        let chosen = books.choose(EXECUTOR).expect("a task waits");
        books.began(&chosen, 0, 0);
        books.comes_on("j", 1, at(0, 0, 4), at(0, 1, 3));
        let partition = chosen.partitions.as_ref().expect("it is one of them")[0];
        (books, partition)
    }

    fn others(partition: usize) -> Vec<usize> {
        (0..4).filter(|other| *other != partition).collect()
    }

    fn ends(books: &mut Books, done: bool) {
        let took = Duration::from_millis(1);
        books.ended(&Ended { job: "j", stage: 1, attempt: 0, task: 0, done, took, bytes_passed: 0 });
    }

    #[test]
    fn what_the_books_have_given_and_heard_of_to_its_end_is_not_looked_at_again() {
        let (mut books, partition) = given();
        assert!(!books.is_unseen("j", 1, at(0, 1, 3)));
        ends(&mut books, true);
        assert!(!books.is_unseen("j", 1, at(0, 1, 3)) && !books.would_change("j", 1, &others(partition)));
    }

    #[test]
    fn partitions_that_come_back_are_seen() {
        // The engine knows of it first, as when it misses an executor by itself, or an executor does.
        let (mut books, _) = given();
        assert!(books.is_unseen("j", 1, at(0, 1, 4)) && books.would_change("j", 1, &[0, 1, 2, 3]));
        books.sees("j", 1, at(0, 1, 4), &[0, 1, 2, 3]);
        assert!(!books.is_unseen("j", 1, at(0, 1, 4)) && !books.would_change("j", 1, &[0, 1, 2, 3]));
        let (mut books, _) = given();
        ends(&mut books, false);
        assert!(books.is_unseen("j", 1, at(0, 1, 3)) && books.is_unseen("j", 1, at(0, 1, 4)));
    }

    #[test]
    fn what_came_back_before_another_task_began_is_seen_after_it() {
        let (mut books, _) = given();
        let chosen = books.choose(EXECUTOR).expect("three more wait");
        books.began(&chosen, 0, 1);
        // The first one waits again, which nobody has looked at.
        books.comes_on("j", 1, at(0, 1, 4), at(0, 2, 3));
        assert!(books.is_unseen("j", 1, at(0, 2, 3)), "as many wait as before, but not the same");
    }

    #[test]
    fn another_attempt_is_seen() {
        let (mut books, _) = given();
        assert!(books.is_unseen("j", 1, at(1, 1, 3)), "as far as the one before");
        books.stage_begins("j", 1, 1, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        assert!(books.is_unseen("j", 1, at(1, 1, 3)));
        books.sees("j", 1, at(0, 1, 3), &[1, 2, 3]);
        assert!(books.is_unseen("j", 1, at(1, 1, 3)), "who looked meant the one before");
    }

    #[test]
    fn what_a_stage_reads_is_looked_for_once_and_seen_when_it_is_known() {
        let mut books = books();
        books.stage_begins("j", 2, 0, Cut::Each, String::new(), None);
        assert!(!books.is_unseen("j", 2, at(0, 0, 2)), "nothing can be said of it yet");
        books.sees("j", 2, at(0, 0, 2), &[0, 1]);
        books.inputs_known("j", 2, 0, (Arc::new(vec![Vec::new(); 2]), Cut::Each), []);
        assert!(books.is_unseen("j", 2, at(0, 0, 2)) && books.would_change("j", 2, &[0, 1]));
        books.sees("j", 2, at(0, 0, 2), &[0, 1]);
        // Once more, as for a cut that is found out later.
        books.inputs_known("j", 2, 0, (Arc::new(vec![Vec::new(); 2]), Cut::Each), []);
        assert!(books.is_unseen("j", 2, at(0, 0, 2)));
    }

    #[test]
    fn a_task_that_was_not_there_is_looked_for_again() {
        let mut books = books();
        let chosen = books.choose(EXECUTOR).expect("a task waits");
        books.not_there(&chosen);
        assert!(books.is_unseen("j", 1, at(0, 0, 4)) && books.would_change("j", 1, &[0, 1, 2, 3]));
    }

    #[test]
    fn a_schedule_that_is_made_anew_is_told_of_all_that_waits() {
        let mut books = books();
        books.failed("a question", Sender::Executor("bad"));
        assert!(books.is_unseen("j", 1, at(0, 0, 4)) && books.would_change("j", 1, &[0, 1, 2, 3]));
    }
}
