//! Cached blocks, or decoded columns: the policy of eviction that workers have, with what it remembers of what it let go.

use forebay_eviction::{S3Fifo, Verdict};
use forebay_navigation::{Owned, aged, last_bytes, margin};

use super::mix::{THETA, Things, WINDOW_SECS};
use crate::random::Random;
use crate::workload::Zipf;

/// Things of one kind.
pub(super) struct Cache {
    things: Things,
    ranks: Zipf,
    policy: S3Fifo<u32>,
    present: Vec<bool>,
    uses: Vec<u8>,
    held: u64,
    /// Of the window.
    hits: u64,
    /// Since the start.
    returned: u64,
    margin: f64,
    mean: f64,
}

impl Cache {
    pub(super) fn new(things: Things) -> Self {
        Self {
            things,
            ranks: Zipf::new(things.count, THETA),
            policy: S3Fifo::default(),
            present: vec![false; things.count],
            uses: vec![0; things.count],
            held: 0,
            hits: 0,
            returned: 0,
            margin: 0.0,
            mean: 0.0,
        }
    }

    /// A window in which so many are asked for a second, in a room of so many bytes. Gives the seconds that all of them took.
    pub(super) fn window(&mut self, per_sec: f64, room_bytes: u64, random: &mut Random) -> f64 {
        let room = room_bytes / self.things.bytes;
        while self.held > room && self.evict() {}
        self.hits = 0;
        let asked = (per_sec * WINDOW_SECS) as u64;
        for _ in 0..asked {
            let item = self.ranks.sample(random);
            self.ask(item, room);
        }
        assert!(self.held <= room, "{} of {room} are held", self.held);
        self.hits as f64 * self.things.hit_secs + (asked - self.hits) as f64 * self.things.miss_secs
    }

    fn ask(&mut self, item: usize, room: u64) {
        if self.present[item] {
            self.uses[item] = (self.uses[item] + 1).min(3);
            self.hits += 1;
            return;
        }
        while self.held >= room {
            if !self.evict() {
                return;
            }
        }
        self.policy.admit(item as u32, mark(item as u32));
        (self.present[item], self.uses[item]) = (true, 0);
        self.held += 1;
    }

    fn evict(&mut self) -> bool {
        let Self { policy, present, uses, held, .. } = self;
        let found = policy.evict(&mut |item| {
            let at = item as usize;
            if uses[at] > 0 {
                uses[at] -= 1;
                return Verdict::Used;
            }
            present[at] = false;
            Verdict::Taken(mark(item))
        });
        *held -= u64::from(found);
        found
    }

    /// What the window has shown.
    pub(super) fn owned(&mut self, room_bytes: u64) -> Owned {
        let waited = self.things.miss_secs - self.things.hit_secs;
        let returned = (self.policy.returned() - self.returned) as f64 / WINDOW_SECS;
        self.returned = self.policy.returned();
        let remembered_bytes = self.policy.remembered() as u64 * self.things.bytes;
        self.margin = aged(self.margin, margin(returned, waited, remembered_bytes));
        let held_bytes = (self.held * self.things.bytes).max(self.things.bytes);
        self.mean = aged(self.mean, self.hits as f64 / WINDOW_SECS * waited / held_bytes as f64);
        Owned {
            room_bytes,
            floor_bytes: self.things.bytes,
            most_bytes: self.things.count as u64 * self.things.bytes,
            last_saves: last_bytes(self.margin, self.mean),
            next_saves: self.margin,
        }
    }
}

/// What an item is remembered by: no two have the same.
fn mark(item: u32) -> u32 {
    item.wrapping_mul(0x9e37_79b9)
}
