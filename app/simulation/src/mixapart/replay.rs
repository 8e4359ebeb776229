//! Jobs as a trace has them, once with and once without data that is brought ahead.

use serde::Serialize;

use super::{MixApartJob, MixApartSettings, mixapart_batch};
use crate::workload::{Query, Recorded};

/// A trace's jobs in one way, and what came of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixApartReplay {
    /// Whether input was brought ahead of the tasks.
    pub data_scheduler: bool,
    /// Operations of the trace.
    pub jobs: u64,
    /// Segments that they read.
    pub tasks: u64,
    /// Share of these that an earlier one had read.
    pub reuse: f64,
    /// Mean time from a job's arrival to the end of its last task, in seconds.
    pub job_secs: f64,
    /// From the first arrival to the end of the last task, in seconds.
    pub secs: f64,
    /// Share of the bandwidth that was used until the last missing byte was there.
    pub link: f64,
    /// Share of the tasks that ran where most of their input was or was arriving.
    pub local: f64,
}

/// A job for each operation of a trace, at the time of its first access, and a task for each segment that it reads; what an earlier
/// operation has read is cached. Jobs take these times for a task, in turn.
pub fn mixapart_jobs(trace: &Recorded, task_secs: &[f64]) -> Vec<MixApartJob> {
    let mut is_read = vec![false; trace.paths.len()];
    let of_query = |(query, task_secs): (&Query, &f64)| {
        let known = query.segments.iter().filter(|segment| std::mem::replace(&mut is_read[**segment as usize], true)).count();
        MixApartJob {
            at_secs: query.at as f64 / 1e6,
            priority: 0,
            tasks: query.segments.len() as u32,
            task_secs: *task_secs,
            reuse: known as f64 / query.segments.len().max(1) as f64,
            first: None,
        }
    };
    trace.queries.iter().zip(task_secs.iter().cycle()).map(of_query).collect()
}

/// A run of these jobs for each way: with input brought ahead, or without.
pub fn mixapart_replays(settings: &MixApartSettings, jobs: &[MixApartJob], ways: &[bool]) -> Vec<MixApartReplay> {
    let tasks: u64 = jobs.iter().map(|job| u64::from(job.tasks)).sum();
    let known: f64 = jobs.iter().map(|job| job.reuse * f64::from(job.tasks)).sum();
    let run = |way: &bool| {
        let batch = mixapart_batch(&MixApartSettings { brings_ahead: *way, ..settings.clone() }, jobs);
        MixApartReplay {
            data_scheduler: *way,
            jobs: jobs.len() as u64,
            tasks,
            reuse: known / tasks.max(1) as f64,
            job_secs: batch.job_secs.iter().sum::<f64>() / jobs.len().max(1) as f64,
            secs: batch.secs,
            link: batch.link,
            local: batch.local,
        }
    };
    ways.iter().map(run).collect()
}
