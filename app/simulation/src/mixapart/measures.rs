//! What is added up while a run of jobs goes on, none of it from its warm-up.

use super::tiers::Counts;
use crate::workload::Micros;

/// What is counted while a run goes on, from `warm` on.
#[derive(Clone, Debug, Default)]
pub(super) struct Measures {
    pub warm: Micros,
    pub tasks: Tasks,
    /// Tasks that computed, and that held a slot, times time.
    pub computing: f64,
    pub holding: f64,
    /// Time that the link was busy with what was started.
    pub link: Micros,
    /// When the last transfer ended.
    pub last_arrival: Micros,
    /// Of each job that ended: its number, and the time from its arrival.
    pub jobs: Vec<(usize, Micros)>,
    /// When the last task ended.
    pub end: Micros,
    pub read: Read,
    pub rates: Rates,
    /// Blocks that came and went, and those that had before the warm-up ended.
    pub came: Counts,
    pub came_before: Counts,
    /// Segments that workers had at the end, each as often as it was there.
    pub copies: usize,
}

/// How many tasks there were, and what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    pub arrived: u64,
    pub done: u64,
    /// Those whose input was at some worker when their job arrived.
    pub cached: u64,
    /// Those that were sent to who had evicted their input.
    pub misrouted: u64,
    /// Of each one that started, in order: whether most of its input was there or arriving there.
    pub near: Vec<bool>,
}

/// Bytes that tasks read where tiers have bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    pub bytes: u64,
    /// Those of them that were on a disk only.
    pub disk_bytes: u64,
}

/// How far what a job was taken to read a second was off what its tasks do read, as a share of that.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// The sum.
    pub off: f64,
    pub jobs: u64,
}

impl Rates {
    /// Of a job on average.
    pub(super) fn mean_off(&self) -> f64 {
        self.off / self.jobs.max(1) as f64
    }
}

impl Measures {
    fn counts(&self, now: Micros) -> bool {
        now >= self.warm
    }

    pub(super) fn pass(&mut self, now: Micros, until: Micros, computing: u64, holding: u64) {
        let time = until.saturating_sub(now.max(self.warm));
        self.computing += time as f64 * computing as f64;
        self.holding += time as f64 * holding as f64;
    }

    pub(super) fn arrived(&mut self, now: Micros, tasks: u64, cached: u64) {
        if self.counts(now) {
            self.tasks.arrived += tasks;
            self.tasks.cached += cached;
        }
    }

    pub(super) fn rate(&mut self, now: Micros, taken_for: u64, is: f64) {
        if self.counts(now) {
            self.rates.off += (taken_for as f64 / is - 1.0).abs();
            self.rates.jobs += 1;
        }
    }

    pub(super) fn read(&mut self, now: Micros, bytes: u64, disk_bytes: u64) {
        if self.counts(now) {
            self.read.bytes += bytes;
            self.read.disk_bytes += disk_bytes;
        }
    }

    pub(super) fn misrouted(&mut self, now: Micros) {
        self.tasks.misrouted += u64::from(self.counts(now));
    }

    /// What came and went until the end.
    pub(super) fn came(&mut self, counts: Option<Counts>) {
        self.came = counts.unwrap_or_default().since(self.came_before);
    }

    pub(super) fn brought(&mut self, now: Micros, time: Micros) {
        self.link += if self.counts(now) { time } else { 0 };
    }

    pub(super) fn started(&mut self, now: Micros, near: bool) {
        if self.counts(now) {
            self.tasks.near.push(near);
        }
    }

    pub(super) fn done(&mut self, now: Micros) {
        self.tasks.done += u64::from(self.counts(now));
        self.end = now;
    }

    pub(super) fn job_done(&mut self, number: usize, arrived: Micros, now: Micros) {
        if self.counts(now) {
            self.jobs.push((number, now - arrived));
        }
    }
}
