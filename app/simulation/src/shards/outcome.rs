//! What a run measured.

use forebay_navigation::Decision;
use serde::Serialize;

use super::curves::INPUT_BYTES;
use super::replica::Queue;
use super::setup::Setup;
use super::waits::{Wait, apart, swing};

/// A level that moved, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardMove {
    /// Seconds from the start.
    pub secs: f64,
    /// Whose plan it was.
    pub worker: usize,
    /// Which shard's replica.
    pub shard: u64,
    /// Its level before.
    pub from: u32,
    /// Its level in the next period.
    pub to: u32,
    /// In words.
    pub why: String,
}

impl ShardMove {
    pub(super) fn of(secs: f64, worker: usize, decision: &Decision) -> Self {
        let (from, to) = (decision.from, decision.to);
        Self { secs, worker, shard: decision.shard.0, from, to, why: decision.reason.to_string() }
    }
}

/// The cluster at one moment; rates are those since the sample before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardSample {
    /// Seconds from the start.
    pub secs: f64,
    /// Requests a second that came.
    pub offered: f64,
    /// Requests a second that were answered.
    pub answered: f64,
    /// Requests that wait.
    pub waiting: u64,
    /// Seconds until the last of those is answered.
    pub wait_secs_max: f64,
    /// Bytes of all replicas over those of their input.
    pub storage: f64,
    /// Shards whose replicas together can answer less than comes to them.
    pub overloaded: usize,
    /// The wait at each replica.
    #[serde(skip)]
    waits: Vec<Wait>,
}

/// A replica at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardReplica {
    /// Which shard's.
    pub shard: usize,
    /// Where.
    pub worker: usize,
    /// Its level at the start.
    pub start: u32,
    /// Its level at the end.
    pub level: u32,
    /// Requests that it answered.
    pub answered: u64,
}

/// What a run measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardsRun {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of its chance.
    pub seed: u64,
    /// Seconds from the last rise of the load until no shard was overloaded; none: never.
    pub adapted_secs: Option<f64>,
    /// Seconds from the last rise of the load until no queue was longer than the target, after that; none: never.
    pub drained_secs: Option<f64>,
    /// Seconds from the loss of a worker until each shard had all its replicas again; none: never, or nothing was lost.
    pub repaired_secs: Option<f64>,
    /// Storage at the start, over the input.
    pub storage_start: f64,
    /// The most storage.
    pub storage_most: f64,
    /// Storage at the end.
    pub storage_end: f64,
    /// How far waits move once drained: the standard deviation of each replica's, over the target.
    pub swing: f64,
    /// How far replicas of a shard are apart while queues are longer than the target: the mean difference between the wait at
    /// one and the mean of all, over that mean; none: no shard with several replicas had such a queue.
    pub apart: Option<f64>,
    /// Levels that moved.
    pub moves: Vec<ShardMove>,
    /// The replicas at the end.
    pub replicas: Vec<ShardReplica>,
    /// The cluster every ten seconds.
    pub samples: Vec<ShardSample>,
}

/// What is counted while a run goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) offered: u64,
    pub(super) answered: u64,
    pub(super) moves: Vec<ShardMove>,
    /// When each shard had all its replicas again.
    pub(super) repaired_secs: Option<f64>,
    samples: Vec<ShardSample>,
}

impl Record {
    pub(super) fn sample(&mut self, secs: f64, setup: &Setup, queues: &[Queue]) {
        let (curve, per_sec) = (&setup.curve, setup.load.at(secs));
        let queues: Vec<&Queue> = queues.iter().filter(|queue| queue.is_alive).collect();
        let mut capacity = vec![0.0; per_sec.len()];
        queues.iter().for_each(|queue| capacity[queue.place.shard] += 1e6 / curve.service_us(queue.level));
        let wait = |queue: &&Queue| {
            let (shard, worker) = (queue.place.shard, queue.place.worker);
            Wait { shard, worker, secs: queue.wait_us(curve) / 1e6 }
        };
        let waits: Vec<Wait> = queues.iter().map(wait).collect();
        let bytes: u64 = queues.iter().map(|queue| curve.bytes(queue.ordered)).sum();
        self.samples.push(ShardSample {
            secs,
            offered: self.offered as f64 / setup.sample_secs,
            answered: self.answered as f64 / setup.sample_secs,
            waiting: queues.iter().map(|queue| queue.waiting.len() as u64).sum(),
            wait_secs_max: waits.iter().map(|wait| wait.secs).fold(0.0, f64::max),
            storage: bytes as f64 / (queues.len() as u64 * INPUT_BYTES) as f64,
            overloaded: capacity.iter().zip(per_sec).filter(|(capacity, rate)| capacity < rate).count(),
            waits,
        });
        (self.offered, self.answered) = (0, 0);
    }

    /// The figures of a run whose load rose last at `rise_secs`.
    pub(super) fn outcome(self, scenario: &str, setup: &Setup, rise_secs: f64, queues: &[Queue]) -> ShardsRun {
        let target = setup.settings.target_us / 1e6;
        let (samples, moves) = (self.samples, self.moves);
        let adapted = first(&samples, rise_secs, |sample| sample.overloaded == 0);
        let drained = adapted.and_then(|from| first(&samples, from, |sample| sample.wait_secs_max <= target));
        let storage = || samples.iter().map(|sample| sample.storage);
        let waits = |from: f64| samples.iter().filter(move |sample| sample.secs >= from).map(|sample| sample.waits.as_slice());
        let replica = |queue: &Queue| ShardReplica {
            shard: queue.place.shard,
            worker: queue.place.worker,
            start: queue.place.start,
            level: queue.level,
            answered: queue.answered,
        };
        ShardsRun {
            scenario: scenario.into(),
            seed: setup.seed,
            adapted_secs: adapted.map(|secs| secs - rise_secs),
            drained_secs: drained.map(|secs| secs - rise_secs),
            repaired_secs: self.repaired_secs.map(|secs| secs - rise_secs),
            storage_start: storage().next().unwrap_or(0.0),
            storage_most: storage().fold(0.0, f64::max),
            storage_end: storage().next_back().unwrap_or(0.0),
            swing: drained.map_or(0.0, |from| swing(waits(from))) / target,
            apart: apart(waits(0.0), target),
            moves,
            replicas: queues.iter().filter(|queue| queue.is_alive).map(replica).collect(),
            samples,
        }
    }
}

/// The time of the first sample after `from` of which `holds` is true.
fn first(samples: &[ShardSample], from: f64, holds: impl Fn(&ShardSample) -> bool) -> Option<f64> {
    samples.iter().find(|sample| sample.secs > from && holds(sample)).map(|sample| sample.secs)
}
