//! The numbers by which the schedule knows jobs.

use std::collections::HashMap;

use forebay_scheduling::JobId;

/// Jobs by their numbers, each of which is given once.
pub(super) struct Numbers {
    pub(super) jobs: HashMap<JobId, String>,
    pub(super) next: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { jobs: HashMap::new(), next: 1 }
    }
}

impl Numbers {
    /// A number that no job has had.
    pub(super) fn fresh(&mut self) -> JobId {
        let number = JobId(self.next);
        self.next += 1;
        number
    }

    /// A job has a number from now on.
    pub(super) fn insert(&mut self, number: JobId, job: &str) {
        let known = self.jobs.insert(number, job.to_string());
        assert!(known.is_none(), "a job's number is given once");
    }

    /// Nobody has the number any more.
    pub(super) fn remove(&mut self, number: JobId) {
        self.jobs.remove(&number);
    }

    /// The job that has a number.
    pub(super) fn job(&self, number: JobId) -> Option<&String> {
        self.jobs.get(&number)
    }
}
