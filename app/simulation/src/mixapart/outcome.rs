//! A run of jobs in its few figures: under a steady load, or as a batch from first to last.

use serde::Serialize;

use super::measures::Measures;
use super::settings::MixApartSettings;

/// What a run under a steady load measured after its first quarter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MixApartOutcome {
    /// Tasks that arrived.
    pub arrived: u64,
    /// Tasks that were done.
    pub done: u64,
    /// Tasks that computed at once, on average.
    pub computing: f64,
    /// Share of the slots' time in which a task held one and waited for its input.
    pub waiting: f64,
    /// Share of the bandwidth that was used.
    pub link: f64,
    /// Share of the tasks that ran where most of their input was or was arriving.
    pub local: f64,
    /// Mean time from a job's arrival to the end of its last task, in seconds, of jobs that ended.
    pub job_secs: f64,
    /// Share of the tasks whose input some worker had when their job arrived.
    pub cached: f64,
    /// Share of what tasks read that was on a disk only; 0 where tiers have no bounds, as all that follows but the last.
    pub from_disk: f64,
    /// Blocks of 1 MiB that were brought ahead of the tasks.
    pub brought_ahead: u64,
    /// Share of these that were evicted before a task read them.
    pub evicted_unread: f64,
    /// Blocks that were evicted from both tiers.
    pub evicted: u64,
    /// Tasks that were sent to a worker that had evicted their input.
    pub misrouted: u64,
    /// Copies of the working set that workers had at the end, on average over its segments.
    pub copies: f64,
    /// How far what a job was taken to read a second when it arrived was off, as a share of what its tasks do read: the mean.
    pub rate_off: f64,
}

impl MixApartOutcome {
    pub(super) fn of(settings: &MixApartSettings, measures: &Measures) -> Self {
        let time = settings.secs * 1e6 - measures.warm as f64;
        let slots = f64::from(settings.workers) * f64::from(settings.slots);
        let job_time: u64 = measures.jobs.iter().map(|(_, time)| time).sum();
        Self {
            arrived: measures.tasks.arrived,
            done: measures.tasks.done,
            computing: measures.computing / time,
            waiting: (measures.holding - measures.computing) / time / slots,
            link: measures.link as f64 / time,
            local: share(&measures.tasks.near),
            job_secs: job_time as f64 / 1e6 / measures.jobs.len().max(1) as f64,
            cached: part(measures.tasks.cached, measures.tasks.arrived),
            from_disk: part(measures.read.disk_bytes, measures.read.bytes),
            brought_ahead: measures.came.ahead,
            evicted_unread: part(measures.came.unread, measures.came.ahead),
            evicted: measures.came.evicted,
            misrouted: measures.tasks.misrouted,
            copies: measures.copies as f64 / f64::from(settings.working_set.max(1)),
            rate_off: measures.rates.mean_off(),
        }
    }
}

/// What a run of some jobs measured from the first's arrival to the last's end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MixApartBatch {
    /// From the start to the end of the last task, in seconds.
    pub secs: f64,
    /// From each job's arrival to its end, in seconds.
    pub job_secs: Vec<f64>,
    /// Share of the tasks that ran where most of their input was or was arriving, the last wave (a task a slot) aside.
    pub local: f64,
    /// Share of the bandwidth that was used until the last missing byte was there.
    pub link: f64,
}

impl MixApartBatch {
    pub(super) fn of(settings: &MixApartSettings, jobs: usize, measures: &Measures) -> Self {
        let mut job_secs = vec![f64::NAN; jobs];
        for (number, time) in &measures.jobs {
            job_secs[*number] = *time as f64 / 1e6;
        }
        let wave = (settings.workers * settings.slots) as usize;
        let counted = measures.tasks.near.len().saturating_sub(wave);
        Self {
            secs: measures.end as f64 / 1e6,
            job_secs,
            local: share(&measures.tasks.near[..counted]),
            link: measures.link as f64 / measures.last_arrival.max(1) as f64,
        }
    }
}

/// As a share; of nothing none.
fn part(some: u64, of: u64) -> f64 {
    some as f64 / of.max(1) as f64
}

/// How many are; all of none.
fn share(near: &[bool]) -> f64 {
    if near.is_empty() { 1.0 } else { near.iter().filter(|near| **near).count() as f64 / near.len() as f64 }
}
