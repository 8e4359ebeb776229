//! What a run of jobs is given, by default MixApart's own example, and what its capacity model expects of that.

use forebay_scheduling::{Policy, sustained_tasks};
use forebay_types::PAGE_BYTES;

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct MixApartSettings {
    /// Number of workers.
    pub workers: u32,
    /// Tasks that a worker runs at once.
    pub slots: u32,
    /// The bandwidth bound of shared storage.
    pub bandwidth_bytes_per_sec: f64,
    /// What a task reads; rounded to pages.
    pub task_bytes: u64,
    /// How long tasks compute once their input is there; each job has one of these.
    pub task_secs: Vec<f64>,
    /// Share of the tasks whose input is in some worker's tier when their job arrives.
    pub reuse: f64,
    /// Segments of a set that all jobs read, each as long as a task's input: a job's tasks read some that follow each other, and what is
    /// cached of them is what the tiers have kept. 0 for data of each job's own, of which `reuse` is cached, in tiers without bounds.
    pub working_set: u32,
    /// Size of all workers' memory, as a share of the working set.
    pub tier: f64,
    /// Size of all workers' disks, as a share of the working set.
    pub disk_tier: f64,
    /// What a worker's disk reads a second.
    pub disk_bytes_per_sec: f64,
    /// By how much a task may take less or more than its time, as a share of that.
    pub spread: f64,
    /// Tasks that would run at once, on average, if their input were always there.
    pub offered_tasks: f64,
    /// Jobs are no larger than this many tasks.
    pub job_tasks_max: u32,
    /// The order of jobs.
    pub policy: Policy,
    /// Whether input is brought ahead of the tasks, or by the tasks themselves when they start.
    pub brings_ahead: bool,
    /// Length of a run in seconds; the first quarter is left out of the figures.
    pub secs: f64,
    /// Jobs and where their cached input lies are drawn from this.
    pub seed: u64,
}

impl Default for MixApartSettings {
    /// The paper's example (MixApart, figure 1): tasks of 20 s over 64 MB, 80 % of it cached, behind 10 Gbit/s.
    fn default() -> Self {
        Self {
            workers: 1_000,
            slots: 4,
            bandwidth_bytes_per_sec: 10e9 / 8.0,
            task_bytes: 64_000_000,
            task_secs: vec![20.0],
            reuse: 0.8,
            working_set: 0,
            tier: 1.0,
            disk_tier: 0.0,
            disk_bytes_per_sec: 1e9,
            spread: 0.0,
            offered_tasks: 1_500.0,
            job_tasks_max: 200,
            policy: Policy::Fifo,
            brings_ahead: true,
            secs: 1_200.0,
            seed: 1,
        }
    }
}

impl MixApartSettings {
    /// Pages of a task's input.
    pub(super) fn pages(&self) -> u32 {
        self.task_bytes.div_ceil(PAGE_BYTES) as u32
    }

    /// Size of a worker's memory and disk in bytes, where they have bounds.
    pub fn worker_bytes(&self) -> Option<(u64, u64)> {
        let set_bytes = f64::from(self.working_set) * f64::from(self.pages()) * PAGE_BYTES as f64;
        let share = |of_set: f64| (of_set * set_bytes / f64::from(self.workers)) as u64;
        (self.working_set > 0).then(|| (share(self.tier), share(self.disk_tier)))
    }

    pub(super) fn mean_task_secs(&self) -> f64 {
        self.task_secs.iter().sum::<f64>() / self.task_secs.len() as f64
    }

    /// The tasks that the bandwidth sustains by the capacity model (MixApart, figure 1), as far as there are slots.
    pub fn sustained_tasks(&self) -> f64 {
        let bytes = self.task_bytes as f64;
        let by_bandwidth = sustained_tasks(self.reuse, self.mean_task_secs(), bytes, self.bandwidth_bytes_per_sec);
        by_bandwidth.min(f64::from(self.workers) * f64::from(self.slots))
    }
}
