//! What the books have come to, for metrics.

use forebay_protocol::SchedulerNumbers;

use super::Books;

impl Books {
    /// Jobs are known by their names and by their numbers, to the schedule too.
    pub(super) fn check(&self) {
        assert_eq!(self.numbers.jobs.len(), self.jobs.len(), "each job has a number, and nobody else");
        assert_eq!(self.schedule.jobs().count(), self.jobs.len(), "the schedule knows all jobs");
    }

    /// What there is to do, and what was done since the start.
    pub fn counts(&self) -> SchedulerNumbers {
        let tasks = self.over.tasks.so_far;
        let running = self.jobs.values().flat_map(|job| job.running.values());
        // Each in a slot.
        let running: u64 = running.map(|running| 1 + u64::from(running.copy.is_some())).sum();
        SchedulerNumbers {
            executors: self.executors.len() as u64,
            slots: self.executors.values().map(|entry| u64::from(entry.slots)).sum(),
            tasks_running: running,
            tasks_done: tasks.done,
            tasks_failed: tasks.failed,
            tasks_copied: self.copies.made,
            tasks_copied_first: self.copies.first,
            task_bytes: tasks.bytes,
            task_bytes_local: tasks.bytes_local,
            jobs_running: self.jobs.len() as u64,
            jobs_done: self.over.done,
            jobs_failed: self.over.failed,
            arriving_bytes: self.schedule.arriving_bytes(),
            brought_bytes: self.brought_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_scheduling::{JobId, ScheduleSettings};
    use forebay_types::OperationId;

    use super::super::Ended;
    use super::*;
    use crate::attempts::RUN_AGAIN;
    use crate::job::Cut;
    use crate::ticket::Ticket;

    const EXECUTOR: &str = "0000000000000007-0000000000000001";

    /// Two jobs of which a task runs, and what is spoiled before it ends and the job is over.
    fn spoiled(spoil: impl FnOnce(&mut Books)) {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(EXECUTOR, 2, Some(1 << 30));
        for job in ["a", "b"] {
            books.job_seen(job, || Ticket::silent(OperationId(1)));
            books.stage_begins(job, 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 3])));
            books.waiting(job, 1, &[0, 1, 2]);
        }
        let chosen = books.choose(EXECUTOR).expect("a task for a free slot");
        books.began(&chosen, 0, 0);
        spoil(&mut books);
        books.waiting("b", 1, &[0, 1, 2]);
        books.choose(EXECUTOR);
        let took = Duration::from_millis(1);
        books.ended(&Ended { job: &chosen.job, stage: 1, attempt: 0, task: 0, done: true, took, bytes_passed: 1 });
        books.job_over("a", "done", String::new());
        books.job_seen("c", || Ticket::silent(OperationId(2)));
    }

    #[test]
    fn what_is_sound_passes() {
        spoiled(|_| {});
    }

    #[test]
    #[should_panic(expected = "each job has a number, and nobody else")]
    fn a_number_that_stays_behind_is_caught() {
        spoiled(|books| drop(books.numbers.jobs.insert(JobId(99), "gone".to_string())));
    }

    #[test]
    #[should_panic(expected = "the schedule knows all jobs")]
    fn a_job_that_the_schedule_has_forgotten_is_caught() {
        spoiled(|books| books.schedule.close(books.jobs["b"].number));
    }

    #[test]
    #[should_panic(expected = "a job is known by its number")]
    fn a_job_under_the_number_of_another_one_is_caught() {
        spoiled(|books| {
            books.numbers.jobs.values_mut().for_each(|name| *name = if name == "a" { "b".into() } else { "a".into() })
        });
    }

    #[test]
    #[should_panic(expected = "a job's number is given once")]
    fn a_number_that_is_given_twice_is_caught() {
        spoiled(|books| books.numbers.next = 2);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "what is offered was counted")]
    fn a_task_that_is_offered_and_not_counted_is_caught() {
        spoiled(|books| {
            let stage = books.jobs.get_mut("b").and_then(|job| job.stages.get_mut(&1)).unwrap();
            stage.counted.clear();
        });
    }

    #[test]
    #[should_panic(expected = "tasks are done, in all")]
    fn tasks_that_were_done_twice_beside_their_input_are_caught() {
        spoiled(|books| books.jobs.values_mut().for_each(|job| job.sums.tasks_local = 5));
    }

    #[test]
    fn jobs_and_tasks_are_counted_while_they_run_and_as_they_end() {
        let ticket = || Ticket {
            operation: OperationId(1),
            priority: 0,
            sql: String::new(),
            pins: Vec::new(),
            who: String::new(),
            trace: None,
        };
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(EXECUTOR, 2, Some(1 << 30));
        for job in ["a", "b"] {
            books.job_seen(job, ticket);
            books.stage_begins(job, 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new(); 3])));
            books.waiting(job, 1, &[0, 1, 2]);
        }
        let chosen = books.choose(EXECUTOR).expect("a task for a free slot");
        books.began(&chosen, 0, 0);
        let expected = SchedulerNumbers { executors: 1, slots: 2, jobs_running: 2, tasks_running: 1, ..Default::default() };
        assert_eq!(books.counts(), expected);
        let took = Duration::from_millis(1);
        books.ended(&Ended { job: &chosen.job, stage: 1, attempt: 0, task: 0, done: true, took, bytes_passed: 1 });
        books.job_over("a", "done", String::new());
        books.job_over("b", "failed", "it was cancelled".to_string());
        books.job_over("b", "failed", "and is said to be over once more".to_string());
        for (job, error) in [("c", String::new()), ("d", format!("Job failed: {RUN_AGAIN}: Ipc error"))] {
            books.job_seen(job, ticket);
            if error.is_empty() {
                books.attempts.spoil(job);
            }
            books.job_over(job, "failed", error);
        }
        let expected =
            SchedulerNumbers { executors: 1, slots: 2, jobs_done: 1, jobs_failed: 1, tasks_done: 1, ..Default::default() };
        assert_eq!(books.counts(), expected);
    }

    #[test]
    fn nothing_runs_of_a_job_that_is_over() {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(EXECUTOR, 2, Some(1 << 30));
        books.job_seen("a", || Ticket::silent(OperationId(1)));
        books.stage_begins("a", 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new()])));
        books.waiting("a", 1, &[0]);
        let chosen = books.choose(EXECUTOR).expect("a task waits");
        books.began(&chosen, 0, 0);
        assert_eq!(books.shown()[0].tasks_running, 1);
        books.job_over("a", "failed", "Cancelled".to_string());
        let shown = books.shown();
        assert_eq!((shown.len(), shown[0].tasks_running), (1, 0));
    }
}
