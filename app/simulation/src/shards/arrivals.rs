//! Open-loop load: requests come whether or not those before are answered.

use crate::random::Random;
use crate::workload::Micros;

/// So many requests a second to each shard from some time on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phase {
    pub(super) from_secs: f64,
    pub(super) per_sec: Vec<f64>,
}

/// Phases by ascending time, the first from 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) phases: Vec<Phase>,
}

impl Load {
    pub(super) fn steady(per_sec: Vec<f64>) -> Self {
        Self { phases: vec![Phase { from_secs: 0.0, per_sec }] }
    }

    /// Another one from then on.
    pub(super) fn then(mut self, from_secs: f64, per_sec: Vec<f64>) -> Self {
        assert_eq!(per_sec.len(), self.phases[0].per_sec.len(), "a rate for each shard");
        self.phases.push(Phase { from_secs, per_sec });
        self
    }

    /// Requests a second to each shard at that time.
    pub(super) fn at(&self, secs: f64) -> &[f64] {
        let past = self.phases.partition_point(|phase| phase.from_secs <= secs);
        &self.phases[past.max(1) - 1].per_sec
    }
}

/// A Poisson process for each shard, drawn as one.
pub(super) struct Arrivals<'a> {
    load: &'a Load,
    phase: usize,
    /// Sums of the phase's rates up to each shard.
    sums: Vec<f64>,
    now_secs: f64,
    random: Random,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(load: &'a Load, seed: u64) -> Self {
        let mut arrivals = Self { load, phase: 0, sums: Vec::new(), now_secs: 0.0, random: Random::new(seed, 1) };
        arrivals.enter(0);
        arrivals
    }

    fn enter(&mut self, phase: usize) {
        self.phase = phase;
        let mut sum = 0.0;
        self.sums.clear();
        for rate in &self.load.phases[phase].per_sec {
            sum += rate;
            self.sums.push(sum);
        }
    }

    fn rate(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }
}

impl Iterator for Arrivals<'_> {
    type Item = (Micros, usize);

    /// When the next request comes, and to which shard.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let wait = if self.rate() > 0.0 { self.random.exponential(1.0 / self.rate()) } else { f64::INFINITY };
            match self.load.phases.get(self.phase + 1) {
                // The process has no memory: in the next phase it begins anew.
                Some(next) if self.now_secs + wait >= next.from_secs => {
                    self.now_secs = next.from_secs;
                    self.enter(self.phase + 1);
                }
                None if wait.is_infinite() => return None,
                _ => {
                    self.now_secs += wait;
                    let at = self.random.unit() * self.rate();
                    let shard = self.sums.partition_point(|sum| *sum <= at).min(self.sums.len() - 1);
                    return Some(((self.now_secs * 1e6) as Micros, shard));
                }
            }
        }
    }
}
