//! The books as people see them: jobs and tasks, those that run and those that are over.

use std::collections::BTreeMap;

use forebay_protocol::{JobState, TaskState};

use super::Books;
use crate::job::Job;

impl Books {
    /// A job that is over.
    pub fn over_job(&self, id: &str) -> Option<&JobState> {
        self.over.jobs.iter().rfind(|over| over.id == id)
    }

    /// A job is done with so many rows.
    pub(crate) fn has_rows(&mut self, id: &str, rows: u64) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.rows = Some(rows);
        } else if let Some(over) = self.over.jobs.iter_mut().rfind(|over| over.id == id) {
            over.rows = Some(rows);
        }
    }

    /// All jobs as people see them, the oldest first.
    pub fn shown(&self) -> Vec<JobState> {
        let running: BTreeMap<_, _> =
            self.jobs.iter().map(|(id, job)| (job.number, job.shown(id, "running", String::new()))).collect();
        self.over.jobs.iter().cloned().chain(running.into_values()).collect()
    }

    /// Tasks that are over, the last ones, and those that run.
    pub fn tasks_shown(&self) -> Vec<TaskState> {
        self.over.tasks.shown(self.jobs.iter())
    }

    /// The job of this id, or those of this operation, the oldest first: what runs again may have an earlier one still.
    pub fn named(&self, name: &str) -> Vec<String> {
        let operation = u64::from_str_radix(name, 16).ok();
        let is_it = |(id, job): &(&String, &Job)| id.as_str() == name || operation == Some(job.ticket.operation.0);
        let named: BTreeMap<_, _> = self.jobs.iter().filter(is_it).map(|(id, job)| (job.number, id.clone())).collect();
        named.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use forebay_scheduling::ScheduleSettings;
    use forebay_types::OperationId;

    use super::*;
    use crate::ticket::Ticket;

    #[test]
    fn jobs_of_an_operation_are_named_in_the_order_in_which_they_came() {
        let mut books = Books::new(ScheduleSettings::default());
        let ids: Vec<_> = (0..20).map(|number| format!("job-{number}")).collect();
        for id in &ids {
            books.job_seen(id, || Ticket::silent(OperationId(0x2a)));
        }
        books.job_seen("other", || Ticket::silent(OperationId(1)));
        assert_eq!(books.named("000000000000002a"), ids);
        assert_eq!(books.named("job-7"), ["job-7"]);
        assert!(books.named("no name").is_empty());
    }
}
