//! Copies of tasks that are late: who gets one, whose word counts of two that run the same task, and what is left to be ended.
//!
//! Ballista knows one run of a task, by one number. The copy has that number too, on another executor: of both the first word that it is done is
//! passed on, with the place of its outputs, and nothing of the other one. A copy that goes on alone is made Ballista's (`moved`).

use std::mem;

use forebay_scheduling::{CopyRules, Runs, late};

use super::Books;
use crate::job::{Copied, Running, task_id};
use crate::word::{Said, TaskName, Word};

/// What is kept of copies.
#[derive(Default)]
pub struct Copies {
    /// None where tasks get no copies.
    pub rules: Option<CopyRules>,
    /// Tasks that get one when somebody has nothing else to do, the latest first.
    late: Vec<TaskName>,
    /// Runs that nobody waits for any more, with their executors.
    unwanted: Vec<(TaskName, String)>,
    pub(super) made: u64,
    /// Of these, those that were done before the first run.
    pub(super) first: u64,
}

impl Copies {
    /// A task does not run any more, and so its copy shall not.
    pub(super) fn give_up(&mut self, job: &str, (stage, task): (usize, usize), running: &mut Running) {
        if let Some(copy) = running.copy.take() {
            let name = TaskName { job: job.to_string(), stage, attempt: running.attempt, task };
            self.unwanted.push((name, copy.executor));
        }
    }
}

impl Books {
    /// A task of a stage may run twice at the same time.
    pub(crate) fn may_be_copied(&mut self, job: &str, stage: usize) {
        if let Some(stage) = self.jobs.get_mut(job).and_then(|job| job.stages.get_mut(&stage)) {
            stage.may_be_copied = true;
        }
    }

    /// Finds out which tasks are late.
    pub(crate) fn look_for_late(&mut self) {
        let Some(rules) = self.copies.rules else { return };
        let running =
            || self.jobs.iter().flat_map(|(id, job)| job.running.iter().map(move |(key, running)| (id, job, key, running)));
        let copies = running().filter(|(.., running)| running.copy.is_some()).count();
        let without = running().filter_map(|(id, job, (stage, task), running)| {
            let known = job.stages.get(stage).filter(|known| known.may_be_copied && known.attempt == running.attempt)?;
            let may_run = known.pace.may_run(&rules, known.counted.len(), running.bytes)?;
            let has_none = !job.copied.contains(&(*stage, running.attempt, *task));
            let name = (id, *stage, running.attempt, *task);
            has_none.then(|| Runs { task: name, for_so_long: running.began.elapsed(), may_run })
        });
        let slots = self.executors.values().map(|entry| entry.slots).fold(0, u32::saturating_add);
        let late = late(&rules, slots, copies, without).into_iter();
        let late = late.map(|(job, stage, attempt, task)| TaskName { job: job.clone(), stage, attempt, task }).collect();
        self.copies.late = late;
    }

    /// The late task that an executor with nothing else to do gets a copy of; none for who has one of them himself.
    pub fn choose_late(&mut self, executor: &str) -> Option<TaskName> {
        let first_run = |name: &TaskName| {
            let job = self.jobs.get(&name.job)?;
            let running = job.running.get(&(name.stage, name.task)).filter(|running| running.attempt == name.attempt)?;
            (!job.copied.contains(&(name.stage, name.attempt, name.task))).then_some(running)
        };
        let of_all: Vec<Option<&Running>> = self.copies.late.iter().map(first_run).collect();
        if of_all.iter().flatten().any(|running| running.executor == executor) {
            return None;
        }
        let at = of_all.iter().position(Option::is_some)?;
        Some(self.copies.late.remove(at))
    }

    /// A copy of a task begins. Whether it does: the task may be over.
    pub(crate) fn copy_begins(&mut self, name: &TaskName, executor: &str) -> bool {
        let Some(worker) = self.executors.get(executor).map(|entry| entry.worker) else { return false };
        let Some(job) = self.jobs.get_mut(&name.job) else { return false };
        let Some(running) = job.running.get_mut(&(name.stage, name.task)) else { return false };
        let is_it = running.attempt == name.attempt && !running.is_on(executor);
        if !is_it || !job.copied.insert((name.stage, name.attempt, name.task)) {
            return false;
        }
        debug_assert!(running.copy.is_none(), "a task has one copy at a time");
        running.copy = Some(Copied { worker, executor: executor.to_string(), began: forebay_runtime::now() });
        job.sums.tasks_copied += 1;
        self.gives(executor, name.clone());
        self.copies.made += 1;
        assert!(self.copies.first < self.copies.made, "a copy that begins is not done yet");
        true
    }

    /// Whether the word of an executor that a task has ended counts. Of a task with a copy the first that is done does, and one that failed
    /// when the other one does not run. Of a task that was given up for lost none does.
    pub(crate) fn word_counts(&mut self, executor: &str, word: &Word) -> bool {
        let is_done = match &word.said {
            Said::Goes => return true,
            Said::Done(_) => true,
            Said::LostInput | Said::BrokenOff | Said::Failed => false,
        };
        let name = word.name.clone();
        let (stage, attempt, task) = (name.stage, name.attempt, name.task);
        let Some(job) = self.jobs.get_mut(&name.job) else { return true };
        if !job.copied.contains(&(stage, attempt, task)) {
            // An executor that could not begin with a task tells how often that was tried for the attempt of its stage.
            let of_stage = job.stages.get(&stage).map_or(attempt, |stage| stage.attempt);
            let runs = job.running.get(&(stage, task)).is_some_and(|running| running.attempt == attempt);
            return runs || !job.copied.contains(&(stage, of_stage, task));
        }
        // One of both was done, or the task waits again under another number.
        let Some(running) = job.running.get_mut(&(stage, task)).filter(|running| running.attempt == attempt) else {
            return false;
        };
        if !running.is_on(executor) {
            return false;
        }
        if running.copy.is_none() {
            return true;
        }
        match (running.copy_is_on(executor), is_done) {
            (true, true) => {
                self.copies.first += 1;
                debug_assert!(self.copies.first <= self.copies.made, "no more copies are done first than were made");
                let first = self.goes_on(&name);
                self.copies.unwanted.extend(first.map(|first| (name, first)));
            }
            (false, true) => self.copies.give_up(&name.job, (stage, task), running),
            (true, false) => running.copy = None,
            (false, false) => drop(self.goes_on(&name)),
        }
        is_done
    }

    /// An executor has lost a task that it should run. Whether nobody runs it now.
    pub(crate) fn run_is_lost(&mut self, name: &TaskName, executor: &str) -> bool {
        let running = self.jobs.get_mut(&name.job).and_then(|job| job.running.get_mut(&(name.stage, name.task)));
        let Some(running) = running.filter(|running| running.attempt == name.attempt) else { return false };
        if running.copy_is_on(executor) {
            running.copy = None;
            return false;
        }
        if running.executor != executor || self.goes_on(name).is_some() {
            return false;
        }
        // Its end may still come, by an older connection and past what is told now. After that Ballista would make its rows once more.
        if let Some(job) = self.jobs.get_mut(&name.job) {
            job.copied.insert((name.stage, name.attempt, name.task));
        }
        true
    }

    /// An executor is lost. What it ran of a job twice goes on elsewhere.
    pub(crate) fn copies_go_on(&mut self, job: &str, executor: &str) {
        let Some(known) = self.jobs.get(job) else { return };
        let on_it = known.running.iter().filter(|(_, running)| running.copy.is_some() && running.is_on(executor));
        let on_it = on_it.map(|((stage, task), running)| (*stage, running.attempt, *task));
        let on_it: Vec<TaskName> =
            on_it.map(|(stage, attempt, task)| TaskName { job: job.to_string(), stage, attempt, task }).collect();
        for name in &on_it {
            self.run_is_lost(name, executor);
        }
    }

    /// The copy of a task is the one that goes on: gives who had the first run. None where there is no copy.
    fn goes_on(&mut self, name: &TaskName) -> Option<String> {
        let job = self.jobs.get_mut(&name.job)?;
        let running = job.running.get_mut(&(name.stage, name.task))?;
        let copy = running.copy.take()?;
        // Whatever the first run had to bring for itself is not known to be there.
        for range in mem::take(&mut running.reads) {
            self.schedule.failed(range, running.worker);
        }
        // The slot of the first run is free. That of the copy was never the schedule's.
        self.schedule.finished(job.number, task_id(name.stage, running.task), true);
        debug_assert!(running.executor != copy.executor, "both runs of a task are on executors of their own");
        (running.worker, running.began, running.local_bytes) = (copy.worker, copy.began, 0);
        Some(mem::replace(&mut running.executor, copy.executor))
    }

    /// Who runs the tasks of a job that had copies, for Ballista to know: it must give these anew when that one is lost, and nobody else.
    pub fn moved(&self, job: &str) -> Vec<(TaskName, String)> {
        let Some(known) = self.jobs.get(job) else { return Vec::new() };
        let of = |(stage, attempt, task): &(usize, usize, usize)| {
            let running = known.running.get(&(*stage, *task)).filter(|running| running.attempt == *attempt)?;
            let name = TaskName { job: job.to_string(), stage: *stage, attempt: *attempt, task: *task };
            Some((name, running.executor.clone()))
        };
        known.copied.iter().filter_map(of).collect()
    }

    /// Runs that are to be ended, each once.
    pub(crate) fn take_unwanted(&mut self) -> Vec<(TaskName, String)> {
        mem::take(&mut self.copies.unwanted)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_scheduling::ScheduleSettings;
    use forebay_types::OperationId;

    use super::*;
    use crate::job::Cut;
    use crate::ticket::Ticket;
    use crate::word::{Done, Heard};

    const FIRST: &str = "0000000000000007-0000000000000001";
    const SECOND: &str = "0000000000000008-0000000000000002";

    fn name(task: usize) -> TaskName {
        TaskName { job: "j".to_string(), stage: 1, attempt: 0, task }
    }

    fn done(task: usize) -> Word {
        Word { name: name(task), took: Duration::ZERO, said: Said::Done(Done::default()) }
    }

    fn failed(task: usize) -> Word {
        Word { said: Said::Failed, ..done(task) }
    }

    /// Four tasks of a stage: the first two are done, and the others run where the first two did.
    fn books() -> Books {
        let mut books = Books::new(ScheduleSettings::default());
        books.copies.rules = Some(CopyRules { least: Duration::ZERO, ..CopyRules::default() });
        [FIRST, SECOND].iter().for_each(|executor| books.executor_asks(executor, 4, Some(1 << 30)));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        books.stage_begins("j", 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        books.may_be_copied("j", 1);
        books.waiting("j", 1, &[0, 1, 2, 3]);
        for task in 0..4 {
            let chosen = books.choose(FIRST).expect("a task waits");
            books.began(&chosen, 0, task);
        }
        for task in 0..2 {
            assert_eq!(books.hears(FIRST, &done(task)), Some(Heard::AsSaid));
        }
        books
    }

    fn run_for_long(books: &mut Books) {
        let job = books.jobs.get_mut("j").unwrap();
        job.running.values_mut().for_each(|running| running.began -= Duration::from_secs(10));
    }

    /// The same, with a copy of the third task on the second executor.
    fn copied() -> Books {
        let mut books = books();
        assert!(books.copy_begins(&name(2), SECOND));
        books
    }

    #[test]
    fn a_late_task_gets_one_copy_on_an_executor_that_has_none_of_them() {
        let mut books = books();
        run_for_long(&mut books);
        books.look_for_late();
        assert_eq!(books.choose_late(FIRST), None, "it is late itself");
        let late = books.choose_late(SECOND).expect("both are");
        assert_eq!(books.choose_late(SECOND), None, "one copy for ten slots");
        assert!(!books.copy_begins(&late, FIRST) && books.copy_begins(&late, SECOND) && !books.copy_begins(&late, SECOND));
        books.look_for_late();
        assert_eq!(books.choose_late(SECOND), None);
        let job = &books.shown()[0];
        assert_eq!((job.tasks_copied, job.tasks_running, books.counts().tasks_copied), (1, 2, 1));
        let shown: Vec<_> = books.tasks_shown().into_iter().filter(|task| task.state == "copy").collect();
        assert_eq!((shown.len(), shown[0].worker.as_str()), (1, forebay_types::WorkerId(8).to_string().as_str()));
        assert!(!books.rests(SECOND));
    }

    #[test]
    fn no_task_is_copied_that_writes_or_where_that_is_off() {
        let mut writes = books();
        writes.jobs.get_mut("j").unwrap().stages.get_mut(&1).unwrap().may_be_copied = false;
        let mut off = books();
        off.copies.rules = None;
        for mut books in [writes, off] {
            run_for_long(&mut books);
            books.look_for_late();
            assert_eq!(books.choose_late(SECOND), None);
        }
    }

    #[test]
    fn executors_may_say_that_they_have_any_number_of_slots() {
        let mut books = books();
        books.executor_asks("0000000000000009-0000000000000003", u32::MAX, None);
        run_for_long(&mut books);
        books.look_for_late();
        assert!(books.choose_late(SECOND).is_some());
    }

    #[test]
    fn the_first_that_is_done_counts_and_the_other_one_is_ended() {
        let mut copy_first = copied();
        assert_eq!(copy_first.hears(SECOND, &done(2)), Some(Heard::AsSaid));
        assert_eq!(copy_first.hears(FIRST, &done(2)), None, "its rows are there already");
        assert_eq!(copy_first.hears(FIRST, &failed(2)), None, "it was ended");
        assert_eq!(copy_first.take_unwanted(), [(name(2), FIRST.to_string())]);
        assert!(copy_first.take_unwanted().is_empty());
        assert_eq!(copy_first.counts().tasks_copied_first, 1);
        let mut run_first = copied();
        assert_eq!(run_first.hears(FIRST, &done(2)), Some(Heard::AsSaid));
        assert_eq!(run_first.hears(SECOND, &done(2)), None);
        assert_eq!(run_first.take_unwanted(), [(name(2), SECOND.to_string())]);
        for books in [copy_first, run_first] {
            let job = &books.jobs["j"];
            assert_eq!((job.sums.tasks_done, job.sums.tasks_again, job.running.len()), (3, 0, 1));
        }
    }

    #[test]
    fn one_that_fails_is_not_heard_while_the_other_one_runs() {
        for (fails, goes_on) in [(FIRST, SECOND), (SECOND, FIRST)] {
            let mut books = copied();
            assert_eq!(books.hears(fails, &failed(2)), None);
            assert_eq!(books.hears(fails, &done(2)), None, "it has said that it failed");
            assert_eq!(books.moved("j"), [(name(2), goes_on.to_string())]);
            assert!(!books.copy_begins(&name(2), fails), "there is one copy of a task, ever");
            assert_eq!(books.hears(goes_on, &failed(2)), Some(Heard::AsSaid), "nobody runs it any more");
            assert_eq!((books.jobs["j"].sums.tasks_again, books.moved("j")), (1, Vec::new()));
        }
    }

    #[test]
    fn the_slot_of_a_run_that_failed_is_free_while_its_copy_goes_on() {
        let mut books = copied();
        assert_eq!(books.counts().tasks_running, 3, "two tasks, one of them twice");
        assert_eq!(books.hears(FIRST, &failed(2)), None);
        assert_eq!(books.counts().tasks_running, 2);
        books.stage_begins("j", 2, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        books.waiting("j", 2, &[0, 1, 2, 3]);
        assert_eq!(std::iter::from_fn(|| books.choose(FIRST)).count(), 3, "one of its four slots has a task");
        assert_eq!(books.hears(SECOND, &done(2)), Some(Heard::AsSaid));
    }

    #[test]
    fn a_copy_that_could_not_begin_is_not_heard_whichever_attempt_it_tells() {
        let mut books = copied();
        let no_beginning = Word { name: TaskName { attempt: 1, ..name(2) }, ..failed(2) };
        assert_eq!(books.hears(SECOND, &no_beginning), None, "the first run goes on");
        assert_eq!(books.hears(FIRST, &done(2)), Some(Heard::AsSaid));
        assert_eq!(books.hears(SECOND, &no_beginning), None, "it would be made once more, and its rows count twice");
    }

    #[test]
    fn the_end_of_a_task_that_was_given_up_for_lost_is_not_heard() {
        let mut books = books();
        books.hears_nothing(FIRST, true);
        assert_eq!(books.hears_nothing(FIRST, true), [name(2), name(3)]);
        for late in [done(2), failed(3)] {
            assert_eq!(books.hears(FIRST, &late), None, "Ballista might hear it before it hears that it was lost");
        }
    }

    #[test]
    fn a_lost_executor_costs_no_task_that_runs_twice() {
        for (gone, goes_on) in [(FIRST, SECOND), (SECOND, FIRST)] {
            let mut books = copied();
            books.copies_go_on("j", gone);
            assert_eq!(books.moved("j"), [(name(2), goes_on.to_string())]);
            assert_eq!(books.hears(gone, &done(2)), None, "it comes back");
            assert_eq!(books.hears(goes_on, &done(2)), Some(Heard::AsSaid));
        }
    }

    #[test]
    fn a_word_that_is_lost_costs_its_task_only() {
        let mut books = copied();
        assert!(books.hears_nothing(FIRST, true).is_empty(), "it may be on its way");
        assert_eq!(books.hears_nothing(FIRST, true), [name(3)], "the copy of the other one goes on");
        assert_eq!(books.moved("j"), [(name(2), SECOND.to_string())]);
        assert_eq!((books.jobs["j"].sums.tasks_again, books.jobs["j"].running.len()), (1, 1));
        assert!(!books.attempts.runs_again("j"), "what it has done is still there");
        assert!(books.hears_nothing(FIRST, true).is_empty());
    }

    #[test]
    fn copies_end_with_their_task_and_with_their_job() {
        let mut waits = copied();
        waits.waiting("j", 1, &[0, 1, 2, 3]);
        let mut over = copied();
        over.job_over("j", "failed", String::new());
        for mut books in [waits, over] {
            assert_eq!(books.take_unwanted(), [(name(2), SECOND.to_string())]);
        }
    }
}
