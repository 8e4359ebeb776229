//! What a run is judged by: times of answers, storage, loads and detours, from the end of its warm-up on.

use serde::Serialize;

use crate::cluster::ClusterSettings;
use crate::workload::Micros;

/// What a run measured after its warm-up. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Queries that were answered.
    pub queries: u64,
    /// Accesses of those queries.
    pub accesses: u64,
    /// Latency that half of the queries stayed below.
    pub p50_ms: f64,
    /// 95 of 100.
    pub p95_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// The mean latency.
    pub mean_ms: f64,
    /// Replicas that are held or being loaded, a segment, on average over time.
    pub storage: f64,
    /// Replicas of the whole cluster: what 75 of 100 windows ended with at most.
    pub replicas_p75: f64,
    /// Replicas of the last plans, a segment.
    pub planned: f64,
    /// Segments loaded a window.
    pub loads: f64,
    /// Replicas deleted a window.
    pub deletes: f64,
    /// Accesses that waited for a load.
    pub stalled: u64,
    /// Accesses that came to a worker without the segment while others had it, or were about to.
    pub misrouted: u64,
    /// Accesses that were answered from shared storage for want of room.
    pub passed_through: u64,
    /// Share of time that the busiest worker served.
    pub busiest: f64,
    /// Share of time that workers served, on average.
    pub utilisation: f64,
}

/// The `share`-th smallest of sorted values, by the nearest rank.
pub(crate) fn percentile(sorted: &[Micros], share: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

impl Outcome {
    /// The middle of runs that differ by their seeds, figure by figure: one run that is overloaded doesn't decide.
    pub fn middle(outcomes: &[Self]) -> Self {
        let middle = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = outcomes.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            let half = values.len() / 2;
            match values.len() {
                0 => 0.0,
                n if n % 2 == 1 => values[half],
                _ => f64::midpoint(values[half - 1], values[half]),
            }
        };
        let count = |of: fn(&Self) -> u64| {
            let mut values: Vec<u64> = outcomes.iter().map(of).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        Self {
            queries: count(|o| o.queries),
            accesses: count(|o| o.accesses),
            p50_ms: middle(|o| o.p50_ms),
            p95_ms: middle(|o| o.p95_ms),
            p99_ms: middle(|o| o.p99_ms),
            mean_ms: middle(|o| o.mean_ms),
            storage: middle(|o| o.storage),
            replicas_p75: middle(|o| o.replicas_p75),
            planned: middle(|o| o.planned),
            loads: middle(|o| o.loads),
            deletes: middle(|o| o.deletes),
            stalled: count(|o| o.stalled),
            misrouted: count(|o| o.misrouted),
            passed_through: count(|o| o.passed_through),
            busiest: middle(|o| o.busiest),
            utilisation: middle(|o| o.utilisation),
        }
    }
}

/// What happens in a run, from the end of its warm-up on.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    from: Micros,
    /// Replicas held or being loaded, at this moment.
    pub(crate) replicas: u64,
    replica_time: f64,
    window_ends: Vec<Micros>,
    planned: Vec<f64>,
    latencies: Vec<Micros>,
    accesses: u64,
    loads: u64,
    deletes: u64,
    stalled: u64,
    misrouted: u64,
    passed_through: u64,
}

impl Measures {
    pub(crate) fn new(cluster: &ClusterSettings) -> Self {
        Self { from: cluster.warm_up * cluster.window, ..Self::default() }
    }

    /// Time passes with nothing happening.
    pub(crate) fn pass(&mut self, since: Micros, until: Micros) {
        let time = until.saturating_sub(since.max(self.from));
        self.replica_time += time as f64 * self.replicas as f64;
    }

    pub(crate) fn answered(&mut self, at: Micros, done: Micros, accesses: usize) {
        if at >= self.from {
            self.latencies.push(done - at);
            self.accesses += accesses as u64;
        }
    }

    pub(crate) fn loading(&mut self, now: Micros) {
        self.replicas += 1;
        self.loads += u64::from(now >= self.from);
    }

    pub(crate) fn deleted(&mut self, now: Micros) {
        self.replicas -= 1;
        self.deletes += u64::from(now >= self.from);
    }

    pub(crate) fn stalled(&mut self, now: Micros) {
        self.stalled += u64::from(now >= self.from);
    }

    pub(crate) fn misrouted(&mut self, now: Micros) {
        self.misrouted += u64::from(now >= self.from);
    }

    pub(crate) fn passed_through(&mut self, now: Micros) {
        self.passed_through += u64::from(now >= self.from);
    }

    /// A plan of that many replicas was made, and what it changes has begun.
    pub(crate) fn planned(&mut self, now: Micros, planned: u64, segments: usize) {
        if now >= self.from {
            self.planned.push(planned as f64 / segments as f64);
            self.window_ends.push(self.replicas);
        }
    }

    /// The figures of a run over `segments`, with the time that each worker was busy from its start.
    pub(crate) fn outcome(mut self, segments: usize, busy: &[Micros], cluster: &ClusterSettings) -> Outcome {
        self.latencies.sort_unstable();
        self.window_ends.sort_unstable();
        let ms = |share: f64| percentile(&self.latencies, share) / 1e3;
        let time = (cluster.end() - self.from) as f64;
        let windows = time / cluster.window as f64;
        let shares: Vec<f64> = busy.iter().map(|busy| *busy as f64 / cluster.end() as f64).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Outcome {
            queries: self.latencies.len() as u64,
            accesses: self.accesses,
            p50_ms: ms(0.5),
            p95_ms: ms(0.95),
            p99_ms: ms(0.99),
            mean_ms: self.latencies.iter().map(|latency| *latency as f64).sum::<f64>() / self.latencies.len().max(1) as f64 / 1e3,
            storage: self.replica_time / time / segments as f64,
            replicas_p75: percentile(&self.window_ends, 0.75),
            planned: mean(&self.planned),
            loads: self.loads as f64 / windows,
            deletes: self.deletes as f64 / windows,
            stalled: self.stalled,
            misrouted: self.misrouted,
            passed_through: self.passed_through,
            busiest: shares.iter().copied().fold(0.0, f64::max),
            utilisation: mean(&shares),
        }
    }
}
