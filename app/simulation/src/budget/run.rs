//! A run: windows in which all owners have their rooms, and rooms that are weighed between them or stay.

use forebay_navigation::{Owned, Weighing, weigh};
use forebay_types::Result;

use super::cache::Cache;
use super::layers::Layers;
use super::mix::{BLOCKS, COLUMNS, MEMORY_BYTES, MIXES, Mix, OWNERS, PHASE_WINDOWS, SHUFFLES, SPILL_SECS, WINDOW_SECS};
use crate::random::Random;

pub(super) type Rooms = [u64; OWNERS];

/// Windows over which the most that shuffles had under way is what they need.
const NEEDED_WINDOWS: usize = 5;

/// One window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Seconds that all that was asked took.
    pub(super) took_secs: f64,
    pub(super) rooms: Rooms,
}

/// All windows of a run, by a seed of which every run has the same requests; the memory stays as it is split at first, or is weighed.
pub(super) fn run(split: Rooms, is_weighed: bool, seed: u64) -> Result<Vec<Window>> {
    let mut model = Model::new(seed);
    let (mut rooms, mut before) = (split, Weighing::default());
    let mut windows = Vec::with_capacity(MIXES.len() * PHASE_WINDOWS);
    for mix in MIXES.iter().flat_map(|mix| std::iter::repeat_n(mix, PHASE_WINDOWS)) {
        windows.push(Window { took_secs: model.window(mix, rooms)?, rooms });
        let owners = model.owners(rooms);
        if is_weighed {
            before = weigh(&owners, &before)?;
            rooms = std::array::from_fn(|at| before.rooms[at].bytes);
        }
        assert!(rooms.iter().sum::<u64>() <= MEMORY_BYTES, "{rooms:?} fit into the memory");
    }
    Ok(windows)
}

struct Model {
    blocks: Cache,
    columns: Cache,
    layers: Layers,
    /// What shuffles had under way in each window.
    shuffled: Vec<u64>,
    /// Of reads, scans and shuffles, so that none changes what comes of another.
    random: [Random; 3],
}

impl Model {
    fn new(seed: u64) -> Self {
        let random = [0, 1, 2].map(|stream| Random::new(seed, stream));
        Self { blocks: Cache::new(BLOCKS), columns: Cache::new(COLUMNS), layers: Layers::new(), shuffled: Vec::new(), random }
    }

    fn window(&mut self, mix: &Mix, rooms: Rooms) -> Result<f64> {
        let [of_reads, of_scans, of_shuffles] = &mut self.random;
        let [blocks, columns, layers, temporary] = rooms;
        let read = self.blocks.window(mix.reads, blocks, of_reads);
        let scanned = self.columns.window(mix.scans, columns, of_scans);
        let called = self.layers.window(mix.calls, layers)?;
        // A tenth more or less.
        let shuffled = (mix.shuffled_bytes as f64 * (0.9 + 0.2 * of_shuffles.unit())) as u64;
        self.shuffled.push(shuffled);
        let spilled = shuffled.saturating_sub(temporary) as f64 * SHUFFLES * WINDOW_SECS * SPILL_SECS;
        Ok(read + scanned + called + spilled)
    }

    fn owners(&mut self, [blocks, columns, layers, temporary]: Rooms) -> [Owned; OWNERS] {
        let needed = self.shuffled.iter().rev().take(NEEDED_WINDOWS).copied().max().unwrap_or(0);
        // Nobody takes the memory of what is under way, and what is free of it serves nobody.
        let shuffles = Owned { room_bytes: temporary, floor_bytes: needed, most_bytes: needed, last_saves: 0.0, next_saves: 0.0 };
        [self.blocks.owned(blocks), self.columns.owned(columns), self.layers.owned(layers), shuffles]
    }
}
