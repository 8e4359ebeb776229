//! How large jobs are, from a published trace, so that no size is of our own choosing.

use crate::random::Random;

/// Sizes of jobs at Facebook: tasks of a job, and jobs of that size in a hundred (M. Zaharia et al., "Delay
/// Scheduling", EuroSys 2010, table 1).
pub const FACEBOOK_BINS: [(u32, u32); 9] =
    [(1, 38), (2, 16), (10, 14), (50, 8), (100, 6), (200, 6), (400, 4), (800, 4), (4_800, 4)];

/// Jobs in all bins together.
fn jobs() -> u32 {
    FACEBOOK_BINS.iter().map(|(_, jobs)| jobs).sum()
}

/// Tasks of a job, drawn from the bins; bins above `tasks_max` count as the largest one that is not.
pub(super) fn draw(random: &mut Random, tasks_max: u32) -> u32 {
    let mut at = random.below(jobs() as usize) as u32;
    for (tasks, jobs) in FACEBOOK_BINS {
        if at < jobs {
            return tasks.min(tasks_max);
        }
        at -= jobs;
    }
    1
}

pub(super) fn mean_tasks(tasks_max: u32) -> f64 {
    let tasks: u64 = FACEBOOK_BINS.iter().map(|(tasks, jobs)| u64::from(*tasks.min(&tasks_max)) * u64::from(*jobs)).sum();
    tasks as f64 / f64::from(jobs())
}
