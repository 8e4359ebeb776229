//! A run, put together: a cluster, what is asked of it, and the way it is led.

use crate::cluster::{ClusterSettings, Routing};
use crate::decide::{Leading, Planner};
use crate::metrics::Outcome;
use crate::run::{Observer, Run, Unobserved, run};
use crate::workload::{Micros, Recorded, Synthetic};

/// What is put on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Made up.
    Synthetic(Synthetic),
    /// As it was recorded, sped up or slowed down to the scenario's utilisation.
    Recorded(Recorded),
}

/// A cluster and its work, without how it is led.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The cluster.
    pub cluster: ClusterSettings,
    /// The work.
    pub workload: Workload,
    /// Share of what all workers can serve that is asked for.
    pub utilisation: f64,
}

/// One way to lead a cluster, with its clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// The coordinator's part.
    pub leading: Leading,
    /// The clients' part.
    pub routing: Routing,
}

impl Scenario {
    /// `segments` on `workers` at `utilisation`, with Zipf exponent `theta`, and all else as usual.
    pub fn new(workers: usize, segments: usize, utilisation: f64, theta: f64) -> Self {
        let cluster = ClusterSettings { workers, ..ClusterSettings::default() };
        Self { cluster, workload: Workload::Synthetic(Synthetic::new(segments, theta)), utilisation }
    }

    /// One run: a function of its arguments.
    pub fn run(&self, way: &Way, seed: u64) -> Outcome {
        self.watch(way, seed, &mut Unobserved)
    }

    /// The middle of runs with seeds 1 to `seeds`.
    pub fn middle(&self, way: &Way, seeds: u64) -> Outcome {
        let outcomes: Vec<Outcome> = (1..=seeds).map(|seed| self.run(way, seed)).collect();
        Outcome::middle(&outcomes)
    }

    /// One run, watched.
    pub fn watch(&self, way: &Way, seed: u64, observer: &mut impl Observer) -> Outcome {
        let (segments, fresh) = self.segments();
        let what = Run { cluster: &self.cluster, routing: way.routing, segments, fresh, seed };
        let mut leading = way.leading.clone();
        leading.plan.seed ^= seed;
        let mut planner = Planner::new(leading, &self.cluster, what.segments + what.fresh.len());
        let accesses_per_sec = self.utilisation * self.cluster.capacity();
        match &self.workload {
            Workload::Synthetic(load) => {
                let queries = load.queries(accesses_per_sec / load.mean_accesses(), self.cluster.clients, seed);
                run(&what, &mut planner, queries, observer)
            }
            Workload::Recorded(load) => {
                let queries_per_sec = accesses_per_sec / load.mean_accesses();
                let length = load.queries.len() as f64 / queries_per_sec * 1e6;
                let stretch = length / load.length().max(1) as f64;
                run(&what, &mut planner, load.repeated(stretch), observer)
            }
        }
    }

    /// Segments at the end.
    pub fn segments_in_all(&self) -> usize {
        let (segments, fresh) = self.segments();
        segments + fresh.len()
    }

    /// Segments at the start, and when others come.
    fn segments(&self) -> (usize, Vec<Micros>) {
        match &self.workload {
            Workload::Recorded(load) => (load.paths.len(), Vec::new()),
            Workload::Synthetic(load) => {
                let times = load.fresh_every.map(|every| (1..=load.fresh_most as u64).map(|n| n * every).collect());
                (load.segments, times.unwrap_or_default())
            }
        }
    }
}
