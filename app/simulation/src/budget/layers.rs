//! Layers of shards: made to the levels that `divide` says for the room that there is.

use forebay_navigation::{Ladder, Owned, Step, aged, divide};
use forebay_types::Result;

use super::mix::{LAYER_BYTES, LAYERS, MADE_BYTES, SHARDS, THETA, WINDOW_SECS, service_secs};
use crate::workload::Zipf;

/// Who is hardly better takes no room from another shard.
const INERTIA: f64 = 0.25;

pub(super) struct Layers {
    ranks: Zipf,
    /// Calls a second, averaged, and layers, by shard.
    calls: Vec<f64>,
    levels: Vec<u32>,
}

impl Layers {
    pub(super) fn new() -> Self {
        Self { ranks: Zipf::new(SHARDS, THETA), calls: vec![0.0; SHARDS], levels: vec![0; SHARDS] }
    }

    /// A window with so many calls a second, in a room of so many bytes. Gives the seconds that all of them took.
    pub(super) fn window(&mut self, per_sec: f64, room_bytes: u64) -> Result<f64> {
        let wanted = divide(room_bytes, &self.ladders(), INERTIA)?.steps;
        let mut left = MADE_BYTES / LAYER_BYTES;
        for (level, wanted) in self.levels.iter_mut().zip(wanted) {
            let wanted = wanted as u32;
            let made = u64::from(wanted.saturating_sub(*level)).min(left);
            left -= made;
            *level = wanted.min(*level + made as u32);
        }
        let held = self.levels.iter().map(|level| u64::from(*level)).sum::<u64>() * LAYER_BYTES;
        assert!(held <= room_bytes, "{held} bytes of layers in a room of {room_bytes}");
        let mut took = 0.0;
        for (shard, (calls, level)) in self.calls.iter_mut().zip(&self.levels).enumerate() {
            let came = per_sec * self.ranks.probability(shard);
            *calls = aged(*calls, came);
            took += came * WINDOW_SECS * service_secs(*level);
        }
        Ok(took)
    }

    /// What the window has shown.
    pub(super) fn owned(&self, room_bytes: u64) -> Owned {
        let ladders = self.ladders();
        let worth = |step: &Step| step.saved / step.bytes as f64;
        let held = ladders.iter().filter_map(|ladder| ladder.iter().rev().find(|step| step.is_held)).map(worth);
        let next = ladders.iter().filter_map(|ladder| ladder.iter().find(|step| !step.is_held)).map(worth);
        let last = held.fold(f64::INFINITY, f64::min);
        let bytes: u64 = self.levels.iter().map(|level| u64::from(*level) * LAYER_BYTES).sum();
        // Room that is not taken yet, since layers are being made, is not needed less for that; without any the next one is the last.
        let next = next.fold(0.0, f64::max);
        let is_full = bytes + LAYER_BYTES + MADE_BYTES >= room_bytes;
        Owned {
            room_bytes,
            floor_bytes: 0,
            most_bytes: SHARDS as u64 * u64::from(LAYERS) * LAYER_BYTES,
            last_saves: if last.is_finite() && bytes + LAYER_BYTES > room_bytes { last } else { next },
            next_saves: if is_full { next } else { 0.0 },
        }
    }

    fn ladders(&self) -> Vec<Ladder> {
        let of = |(calls, held): (&f64, &u32)| -> Ladder {
            let step = |level: u32| Step {
                bytes: LAYER_BYTES,
                saved: calls * (service_secs(level - 1) - service_secs(level)),
                is_held: level <= *held,
            };
            // What is not called has no use for any.
            let highest = if *calls > 0.0 { LAYERS } else { 0 };
            (1..=highest).map(step).collect()
        };
        self.calls.iter().zip(&self.levels).map(of).collect()
    }
}
