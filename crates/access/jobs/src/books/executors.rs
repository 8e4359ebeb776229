//! What the books keep of executors.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use forebay_types::WorkerId;

use super::Books;
use super::deciding::failpoint;
use crate::job::{Job, Running};
use crate::ticket::worker_of;
use crate::word::TaskName;

/// An executor that asked for tasks.
pub struct ExecutorEntry {
    /// The one beside it.
    pub worker: WorkerId,
    pub(crate) slots: u32,
    seen: Instant,
    /// Room for what waiting tasks will read at the worker beside it; none when that takes no transfers.
    room: Option<u64>,
    /// Tasks that it should have and did not seem to when it last asked.
    unheard: HashSet<TaskName>,
    /// What it told when it last asked, until it is looked whether the engine has taken it in.
    told: Vec<TaskName>,
    /// Tasks that it was given, copies too: all that it has, and some that it has no more.
    given: Vec<TaskName>,
}

impl ExecutorEntry {
    /// Whether the worker beside it takes transfers.
    pub(crate) fn has_worker(&self) -> bool {
        self.room.is_some()
    }
}

impl Books {
    /// An executor has asked for tasks. `room` is for what waiting tasks will read at the worker beside it; none without a worker.
    pub(crate) fn executor_asks(&mut self, id: &str, slots: u32, room: Option<u64>) {
        let Some(worker) = worker_of(id) else { return };
        let seen = forebay_runtime::now();
        if let Some(entry) = self.executors.get_mut(id) {
            entry.seen = seen;
            if (entry.slots, entry.room) == (slots, room) {
                return;
            }
        }
        // Who was forgotten may have some.
        let given = self.tasks_on(id);
        let entry = ExecutorEntry { worker, slots, seen, room, unheard: HashSet::new(), told: Vec::new(), given };
        self.executors.insert(id.to_string(), entry);
        failpoint(format_args!("question of {id}"));
        self.beside_changed(worker);
    }

    /// Forgets executors that were silent for so long, and gives their ids.
    pub(crate) fn forget_silent(&mut self, silent: Duration) -> Vec<String> {
        let gone: Vec<_> = self.executors.extract_if(|_, entry| entry.seen.elapsed() > silent).collect();
        for (id, entry) in &gone {
            tracing::warn!(executor = id, worker = %entry.worker, "executor is silent: its tasks wait again");
            self.beside_changed(entry.worker);
        }
        gone.into_iter().map(|(id, _)| id).collect()
    }

    /// Other executors than before are beside a worker: those that were replaced by a new one stay until they are silent.
    pub(super) fn beside_changed(&mut self, worker: WorkerId) {
        let beside = || self.executors.values().filter(|entry| entry.worker == worker);
        let slots: u32 = beside().map(|entry| entry.slots).sum();
        let room = beside().filter_map(|entry| entry.room).max();
        match slots {
            0 => self.schedule.worker_lost(worker),
            _ => self.schedule.slots_changed(worker, slots, room.unwrap_or(0)),
        }
    }

    /// The tasks that an executor should have that asks, and has nothing to do when `is_idle`: what it was told or has told of them was
    /// lost with a connection. Twice in a row, since the word of what has just ended may come after the slot is free.
    pub(crate) fn lost_tasks(&mut self, id: &str, is_idle: bool) -> Vec<TaskName> {
        let Some(entry) = self.executors.get_mut(id) else { return Vec::new() };
        let mut unheard = HashSet::new();
        if is_idle {
            entry.given.retain(|name| has(&self.jobs, id, name));
            let counted = entry.given.iter().filter(|name| !self.attempts.is_lost(&name.job, name.stage, name.attempt));
            unheard.extend(counted.cloned());
        }
        let mut lost: Vec<TaskName> = unheard.intersection(&entry.unheard).cloned().collect();
        lost.sort_unstable();
        entry.unheard = unheard;
        lost
    }

    /// An executor has told the engine of these tasks.
    pub fn told(&mut self, id: &str, told: Vec<TaskName>) {
        if let Some(entry) = self.executors.get_mut(id) {
            entry.told = told;
        }
    }

    /// Whether an executor has no task, as far as is known here.
    pub(crate) fn rests(&self, id: &str) -> bool {
        match self.executors.get(id) {
            Some(entry) => !entry.given.iter().any(|name| has(&self.jobs, id, name)),
            None => self.tasks_on(id).is_empty(),
        }
    }

    /// An executor was given a task.
    pub(super) fn gives(&mut self, id: &str, name: TaskName) {
        debug_assert!(has(&self.jobs, id, &name), "it has what it was given");
        let Some(entry) = self.executors.get_mut(id) else { return };
        // Not each time: one with many slots has as many that it still has.
        if entry.given.len().is_power_of_two() {
            entry.given.retain(|name| has(&self.jobs, id, name));
        }
        entry.given.push(name);
    }

    /// The tasks that an executor has, found among all that run.
    fn tasks_on(&self, id: &str) -> Vec<TaskName> {
        let of_job = |(job, known): (&String, &Job)| {
            let on_it = known.running.iter().filter(|(_, running)| running.is_on(id));
            let name = |((stage, task), running): (&(usize, usize), &Running)| TaskName {
                job: job.clone(),
                stage: *stage,
                attempt: running.attempt,
                task: *task,
            };
            on_it.map(name).collect::<Vec<_>>()
        };
        self.jobs.iter().flat_map(of_job).collect()
    }

    /// Workers beside executors, while there are jobs.
    pub(crate) fn workers_at_work(&self) -> HashSet<WorkerId> {
        let beside = self.executors.values().filter(|entry| entry.has_worker() && !self.jobs.is_empty());
        beside.map(|entry| entry.worker).collect()
    }

    /// What an executor told since this was asked last.
    pub fn take_told(&mut self, id: &str) -> Vec<TaskName> {
        self.executors.get_mut(id).map(|entry| std::mem::take(&mut entry.told)).unwrap_or_default()
    }
}

/// Whether an executor has a task, or its copy.
fn has(jobs: &HashMap<String, Job>, id: &str, name: &TaskName) -> bool {
    let running = jobs.get(&name.job).and_then(|job| job.running.get(&(name.stage, name.task)));
    running.is_some_and(|running| running.attempt == name.attempt && running.is_on(id))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_scheduling::ScheduleSettings;
    use forebay_types::OperationId;
    use futures::FutureExt;

    use super::*;
    use crate::books::Ended;
    use crate::job::Cut;
    use crate::ticket::Ticket;

    const BESIDE: &str = "0000000000000007-0000000000000001";
    const BESIDE_TOO: &str = "0000000000000007-0000000000000002";

    fn books() -> Books {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(BESIDE, 2, Some(1 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        books.stage_begins("j", 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        books.waiting("j", 1, &[0, 1, 2, 3]);
        books
    }

    fn name(attempt: usize, task: usize) -> TaskName {
        TaskName { job: "j".to_string(), stage: 1, attempt, task }
    }

    fn give(books: &mut Books, executor: &str, number: usize) {
        let chosen = books.choose(executor).expect("a task waits");
        books.began(&chosen, 0, number);
    }

    #[test]
    fn an_idle_executor_that_twice_says_nothing_of_a_task_has_lost_it() {
        let mut books = books();
        give(&mut books, BESIDE, 0);
        assert!(!books.rests(BESIDE) && books.rests(BESIDE_TOO));
        assert!(books.runs(&name(0, 0)) && !books.runs(&name(1, 0)) && !books.runs(&name(0, 1)));
        assert!(books.lost_tasks(BESIDE, false).is_empty(), "busy");
        assert!(books.lost_tasks(BESIDE, true).is_empty(), "word of it may be on its way");
        assert!(books.lost_tasks(BESIDE, false).is_empty());
        assert!(books.lost_tasks(BESIDE, true).is_empty());
        assert_eq!(books.lost_tasks(BESIDE, true), [name(0, 0)]);
        let ended = Ended { job: "j", stage: 1, attempt: 0, task: 0, done: true, took: Duration::ZERO, bytes_passed: 0 };
        books.ended(&ended);
        assert!(books.rests(BESIDE) && books.lost_tasks(BESIDE, true).is_empty() && !books.runs(&name(0, 0)));
    }

    #[test]
    fn an_executor_that_was_forgotten_has_what_it_had() {
        let mut books = books();
        give(&mut books, BESIDE, 0);
        books.executors.remove(BESIDE);
        assert!(!books.rests(BESIDE));
        for slots in [2, 3] {
            books.executor_asks(BESIDE, slots, Some(1 << 30));
            assert!(!books.rests(BESIDE), "{slots} slots");
        }
        assert!(books.lost_tasks(BESIDE, true).is_empty());
        assert_eq!(books.lost_tasks(BESIDE, true), [name(0, 0)]);
    }

    #[test]
    fn of_tasks_that_are_over_nothing_is_kept_beside_an_executor() {
        let mut books = books();
        for number in 0..100 {
            give(&mut books, BESIDE, number);
            let took = Duration::from_millis(1);
            let done = number % 2 == 0;
            books.ended(&Ended { job: "j", stage: 1, attempt: 0, task: number, done, took, bytes_passed: 0 });
            books.waiting("j", 1, &[0, 1, 2, 3]);
            assert!(books.rests(BESIDE));
        }
        assert!(books.executors[BESIDE].given.len() <= 2);
    }

    #[test]
    fn whose_question_is_held_hears_of_each_task_that_is_new() {
        let mut books = books();
        let news = Arc::clone(&books.news);
        // One for whoever asks next is left of the tasks that nobody waited for.
        assert!(news.notified().now_or_never().is_some());
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(news.notified())).collect();
        assert!(waiting.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        books.waiting("j", 1, &[0, 1, 2, 3]);
        assert!(waiting.iter_mut().all(|one| one.as_mut().now_or_never().is_none()), "they are known");
        books.stage_begins("j", 2, 0, Cut::Runs(Arc::from([0, 0, 2, 2])), String::new(), Some(Arc::default()));
        books.waiting("j", 2, &[0, 1, 2, 3]);
        let heard = waiting.iter_mut().filter_map(|one| one.as_mut().now_or_never()).count();
        assert_eq!(heard, 2, "one for each of two tasks");
    }

    /// What an executor with free slots is given, in the order of their partitions.
    fn given(books: &mut Books) -> Vec<Option<Vec<usize>>> {
        let mut given = Vec::new();
        while let Some(chosen) = books.choose(BESIDE) {
            books.began(&chosen, 0, given.len());
            given.push(chosen.partitions);
        }
        given.sort_unstable();
        given
    }

    #[test]
    fn a_run_of_partitions_is_one_task() {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(BESIDE, 4, Some(1 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        books.stage_begins("j", 1, 0, Cut::Runs(Arc::from([0, 0, 0, 3])), String::new(), Some(Arc::default()));
        books.waiting("j", 1, &[0, 1, 2, 3]);
        assert_eq!(given(&mut books), [Some(vec![0, 1, 2]), Some(vec![3])]);
        assert_eq!(books.jobs["j"].sums.tasks, 2);
        // The first one is lost, and what waits of it is cut in another way in the next attempt.
        books.stage_begins("j", 1, 1, Cut::Runs(Arc::from([0, 0, 2, 2])), String::new(), Some(Arc::default()));
        books.waiting("j", 1, &[1, 2]);
        assert_eq!(given(&mut books), [Some(vec![0, 1]), Some(vec![2, 3])], "the engine's books say which of them wait");
    }

    #[test]
    fn tasks_of_an_attempt_that_is_over_keep_no_slot() {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(BESIDE, 2, Some(1 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        for (attempt, firsts, expected) in [
            (0, [0, 0, 2, 2], [Some(vec![0, 1]), Some(vec![2, 3])]),
            (1, [0, 0, 0, 3], [Some(vec![0, 1, 2]), Some(vec![3])]),
            (2, [0, 1, 1, 1], [Some(vec![0]), Some(vec![1, 2, 3])]),
        ] {
            books.stage_begins("j", 1, attempt, Cut::Runs(Arc::from(firsts)), String::new(), Some(Arc::default()));
            books.waiting("j", 1, &[0, 1, 2, 3]);
            assert_eq!(given(&mut books), expected, "both slots are free for attempt {attempt}");
        }
    }

    #[test]
    fn a_task_whose_number_another_one_gets_is_given_again() {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(BESIDE, 4, Some(1 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        let each = |books: &mut Books, attempt| {
            books.stage_begins("j", 1, attempt, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 4])));
        };
        each(&mut books, 0);
        books.waiting("j", 1, &[0, 1, 2, 3]);
        give(&mut books, BESIDE, 0);
        // The stage has begun again, and nobody has looked since.
        let chosen = books.choose(BESIDE).expect("a task waits");
        books.began(&chosen, 1, 0);
        each(&mut books, 1);
        assert!(books.runs(&name(1, 0)));
        let waits: Vec<usize> = (0..4).filter(|partition| chosen.partitions != Some(vec![*partition])).collect();
        books.offer("j", 1, &[0, 1, 2, 3]);
        assert!(books.runs(&name(1, 0)), "who may wait no more is not taken for one that does");
        books.waiting("j", 1, &waits);
        for number in 1..4 {
            let chosen = books.choose(BESIDE).expect("three more wait, and have slots");
            books.began(&chosen, 1, number);
        }
        assert_eq!(books.jobs["j"].running.len(), 4);
    }

    #[test]
    fn what_reads_files_is_cut_when_it_is_known_what_it_reads_and_then_once() {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(BESIDE, 4, Some(1 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        books.stage_begins("j", 1, 0, Cut::Each, String::new(), None);
        books.waiting("j", 1, &[0, 1, 2, 3]);
        assert!(given(&mut books).is_empty(), "nothing is known of it yet");
        let inputs = || Arc::new(vec![Vec::new(); 4]);
        books.inputs_known("j", 1, 0, (inputs(), Cut::Runs(Arc::from([0, 0, 0, 3]))), []);
        books.waiting("j", 1, &[0, 1, 2, 3]);
        assert_eq!(given(&mut books), [Some(vec![0, 1, 2]), Some(vec![3])]);
        // Another attempt, of which it is found out again.
        books.stage_begins("j", 1, 1, Cut::Each, String::new(), None);
        books.inputs_known("j", 1, 1, (inputs(), Cut::Runs(Arc::from([0, 0, 2, 2]))), []);
        books.waiting("j", 1, &[0, 1, 2]);
        assert_eq!(given(&mut books), [Some(vec![0, 1, 2])], "by the cut that it was offered by");
    }

    #[test]
    fn a_job_that_is_over_does_not_begin_again() {
        let mut books = books();
        books.job_over("j", "done", String::new());
        books.job_seen("j", || unreachable!("it is known"));
        assert_eq!(books.shown().len(), 1);
    }

    #[test]
    fn executors_beside_one_worker_share_it() {
        let mut books = books();
        give(&mut books, BESIDE, 0);
        books.executor_asks(BESIDE_TOO, 2, Some(1 << 30));
        give(&mut books, BESIDE_TOO, 1);
        for _ in 0..3 {
            books.executor_asks(BESIDE, 2, Some(1 << 30));
            books.executor_asks(BESIDE_TOO, 2, Some(1 << 30));
        }
        let job = &books.jobs["j"];
        assert_eq!(job.running[&(1, 0)].executor, BESIDE);
        assert_eq!(job.running[&(1, 1)].executor, BESIDE_TOO);
        assert!(books.forget_silent(Duration::from_secs(60)).is_empty());
        assert_eq!(books.forget_silent(Duration::ZERO).len(), 2);
        assert!(books.choose(BESIDE).is_none());
    }
}
