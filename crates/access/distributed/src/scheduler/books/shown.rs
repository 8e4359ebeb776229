//! The books as people see them: jobs and tasks, those that run and those that are over.

use std::collections::BTreeMap;

use forebay_protocol::{JobState, TaskState};

use super::Books;
use crate::scheduler::job::Job;

impl Books {
    /// A job that is over.
    pub(in crate::scheduler) fn over_job(&self, id: &str) -> Option<&JobState> {
        self.over.jobs.iter().rfind(|over| over.id == id)
    }

    /// A job is done with so many rows.
    pub(in crate::scheduler) fn has_rows(&mut self, id: &str, rows: u64) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.rows = Some(rows);
        } else if let Some(over) = self.over.jobs.iter_mut().rfind(|over| over.id == id) {
            over.rows = Some(rows);
        }
    }

    /// All jobs as people see them, the oldest first.
    pub(in crate::scheduler) fn shown(&self) -> Vec<JobState> {
        let running: BTreeMap<_, _> =
            self.jobs.iter().map(|(id, job)| (job.number, job.shown(id, "running", String::new()))).collect();
        self.over.jobs.iter().cloned().chain(running.into_values()).collect()
    }

    /// Tasks that are over, the last ones, and those that run.
    pub(in crate::scheduler) fn tasks_shown(&self) -> Vec<TaskState> {
        self.over.tasks.shown(self.jobs.iter())
    }

    /// The job of this id, or of this operation.
    pub(in crate::scheduler) fn named(&self, name: &str) -> Option<String> {
        let operation = u64::from_str_radix(name, 16).ok();
        let is_it = |(id, job): &(&String, &Job)| id.as_str() == name || operation == Some(job.ticket.operation.0);
        self.jobs.iter().find(is_it).map(|(id, _)| id.clone())
    }
}
