//! Skewed load on a fixed storage (figure 8): navigation from an even start, beside selective caching and the ideal.

pub(super) mod divide;

use forebay_navigation::Curve;
use forebay_types::{Error, Result};
use serde::Serialize;

use self::divide::{evenly, ideally, selectively};
use super::arrivals::Load;
use super::curves::{INPUT_BYTES, ShardCurve};
use super::engine::Engine;
use super::replica::Queue;
use super::scenarios::PER_SEC;
use super::setup::{Place, Setup};
use crate::workload::Zipf;

/// How long navigation may take to settle, and how long answers are counted.
const SETTLE_SECS: f64 = 2_400.0;
const COUNT_SECS: f64 = 600.0;
/// Smaller loads that navigation is tried under where it doesn't sustain what the ideal does, as shares of that.
const SHARES: [f64; 2] = [0.95, 0.9];

/// What one way of dividing the storage is worth, in requests a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkewWay {
    /// Answered when as many come as the ideal division just sustains, whatever they ask for.
    pub answered: f64,
    /// The most that may come, skewed as it is, without a queue that grows for ever: what clients who wait for each answer get.
    pub sustained: f64,
    /// Levels that moved while answers were counted: navigation has settled when there are none.
    pub moved: usize,
    /// The level of each shard in the end, the one that is asked most first.
    pub levels: Vec<u32>,
}

/// Ways to divide a fixed storage among shards that are asked unequally.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkewRow {
    /// Shards.
    pub shards: usize,
    /// Storage that all may take, over the input.
    pub storage: f64,
    /// Requests a second that come: what the ideal sustains.
    pub offered: f64,
    /// The best levels for this load, known before.
    pub ideal: SkewWay,
    /// The levels that navigation finds, from the same level everywhere.
    pub navigated: SkewWay,
    /// The hottest shards whole and the others at their lowest.
    pub selective: SkewWay,
    /// The same level everywhere.
    pub even: SkewWay,
    /// Storage, over the input, that selective caching takes to sustain what navigation does on `storage`.
    pub selective_storage: f64,
}

/// A row for each storage: `shards` of one replica on one worker, asked by Zipf's law with exponent `theta`.
/// `Invalid`: no shards or too many, a storage that does not hold the bases, or an exponent that is none.
pub fn shards_skew(curve: ShardCurve, shards: usize, theta: f64, storage: &[f64], seed: u64) -> Result<Vec<SkewRow>> {
    if !(1..=1_000).contains(&shards) || !(0.0..=5.0).contains(&theta) {
        return Err(Error::invalid(format!("{shards} shards with skew {theta} can't be simulated: use 1 to 1000, and 0 to 5")));
    }
    let zipf = Zipf::new(shards, theta);
    let shares = (0..shards).map(|rank| zipf.probability(rank)).collect();
    let bench = Bench { curve: curve.curve(PER_SEC), shares, seed };
    storage.iter().map(|storage| bench.row(*storage)).collect()
}

/// What the rows have in common.
struct Bench {
    curve: Curve,
    shares: Vec<f64>,
    seed: u64,
}

impl Bench {
    fn row(&self, storage: f64) -> Result<SkewRow> {
        let least = self.curve.bytes(0) as f64 / INPUT_BYTES as f64;
        if !(least..=100.0).contains(&storage) {
            return Err(Error::invalid(format!("a storage of {storage} times the input holds no shards: use {least} or more")));
        }
        let (curve, shards) = (&self.curve, self.shares.len());
        let room_bytes = (storage * (shards as u64 * INPUT_BYTES) as f64).round() as u64;
        let (ideal, offered) = ideally(curve, &self.shares, room_bytes);
        let even = evenly(curve, shards, room_bytes);
        let navigated = self.navigated(&even, offered, room_bytes);
        Ok(SkewRow {
            shards,
            storage,
            offered,
            selective_storage: self.selective_storage(navigated.sustained),
            ideal: self.way(&ideal, false, offered, room_bytes),
            navigated,
            selective: self.way(&selectively(curve, shards, room_bytes), false, offered, room_bytes),
            even: self.way(&even, false, offered, room_bytes),
        })
    }

    /// What is answered under the ideal's load, and the largest of some loads that is sustained in the end. A division that was
    /// found under too large a load is not the best for a smaller one, so each is tried from the beginning.
    fn navigated(&self, even: &[u32], offered: f64, room_bytes: u64) -> SkewWay {
        let first = self.way(even, true, offered, room_bytes);
        let mut most = first.sustained;
        for load in SHARES.map(|share| share * offered) {
            if most >= load {
                break;
            }
            most = most.max(self.way(even, true, load, room_bytes).sustained);
        }
        SkewWay { sustained: most.min(offered), ..first }
    }

    /// What selective caching takes for so many requests a second: whole is every shard that its lowest level is too slow for.
    fn selective_storage(&self, sustained: f64) -> f64 {
        let (lowest, highest) = (self.curve.bytes(0), self.curve.bytes(self.curve.highest()));
        let answers = 1e6 / self.curve.service_us(0);
        let whole = self.shares.iter().filter(|share| *share * sustained > answers).count() as u64;
        let shards = self.shares.len() as u64;
        ((shards - whole) * lowest + whole * highest) as f64 / (shards * INPUT_BYTES) as f64
    }

    /// From these levels; where they move, they have time to settle first.
    fn way(&self, levels: &[u32], navigates: bool, offered: f64, room_bytes: u64) -> SkewWay {
        let load = Load::steady(self.shares.iter().map(|share| share * offered).collect());
        let places = (0..).zip(levels).map(|(shard, start)| Place { shard, worker: 0, start: *start }).collect();
        let count_from_secs = if navigates { SETTLE_SECS } else { 0.0 };
        let setup = Setup {
            places,
            navigates,
            count_from_secs,
            room_bytes: vec![room_bytes],
            end_secs: count_from_secs + COUNT_SECS,
            ..Setup::one_worker(self.curve.clone(), levels.len(), 0, load, self.seed)
        };
        let (queues, record) = Engine::new(&setup).run();
        let moved = record.moves.iter().filter(|moved| moved.secs >= count_from_secs).count();
        let answered = queues.iter().map(|queue| queue.answered).sum::<u64>() as f64 / COUNT_SECS;
        let most = |queue: &Queue| 1e6 / self.curve.service_us(queue.level) / self.shares[queue.place.shard];
        let sustained = queues.iter().map(most).fold(f64::INFINITY, f64::min);
        SkewWay { answered, sustained, moved, levels: queues.iter().map(|queue| queue.level).collect() }
    }
}
