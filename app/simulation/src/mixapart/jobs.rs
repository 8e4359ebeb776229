//! Jobs that arrive without end, for runs under a steady load.

use super::bins;
use super::settings::MixApartSettings;
use crate::random::Random;

/// A job that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixApartJob {
    /// When, in seconds from the start.
    pub at_secs: f64,
    /// The higher goes first.
    pub priority: i32,
    /// Its tasks; each reads a range of its own.
    pub tasks: u32,
    /// How long a task computes once its input is there.
    pub task_secs: f64,
    /// Share of its input that is in some worker's tier when it arrives.
    pub reuse: f64,
    /// The first of the segments of the working set that it reads, one a task; none of a job with data of its own.
    pub first: Option<u64>,
}

/// Jobs by a Poisson process without end, their sizes drawn from the bins and their tasks' times from the settings'.
pub(super) struct Arrivals<'a> {
    settings: &'a MixApartSettings,
    random: Random,
    at_secs: f64,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(settings: &'a MixApartSettings) -> Self {
        Self { settings, random: Random::new(settings.seed, 1), at_secs: 0.0 }
    }
}

impl Iterator for Arrivals<'_> {
    type Item = MixApartJob;

    fn next(&mut self) -> Option<MixApartJob> {
        let settings = self.settings;
        let tasks = bins::draw(&mut self.random, settings.job_tasks_max);
        let task_secs = settings.task_secs[self.random.below(settings.task_secs.len())];
        let first = (settings.working_set > 0).then(|| self.random.below(settings.working_set as usize) as u64);
        let job = MixApartJob { at_secs: self.at_secs, priority: 0, tasks, task_secs, reuse: settings.reuse, first };
        let mean_secs = bins::mean_tasks(settings.job_tasks_max) * settings.mean_task_secs() / settings.offered_tasks;
        self.at_secs += self.random.exponential(mean_secs);
        Some(job)
    }
}
