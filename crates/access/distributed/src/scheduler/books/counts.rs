//! What the books have come to, for metrics.

use forebay_protocol::SchedulerNumbers;

use super::Books;

impl Books {
    /// What there is to do, and what was done since the start.
    pub(in crate::scheduler) fn counts(&self) -> SchedulerNumbers {
        let tasks = self.over.tasks.so_far();
        let running: usize = self.schedule.jobs().map(|(_, _, running)| running).sum();
        SchedulerNumbers {
            executors: self.executors.len() as u64,
            slots: self.executors.values().map(|entry| u64::from(entry.slots)).sum(),
            tasks_running: running as u64,
            tasks_done: tasks.done,
            tasks_failed: tasks.failed,
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

    use forebay_scheduling::ScheduleSettings;
    use forebay_types::OperationId;

    use super::super::Ended;
    use super::*;
    use crate::scheduler::RUN_AGAIN;
    use crate::travel::Ticket;

    const EXECUTOR: &str = "0000000000000007-0000000000000001";

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
            books.stage_begins(job, 1, 0, false, String::new(), Some(Arc::new(vec![Vec::new(); 3])));
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
}
