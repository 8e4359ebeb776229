//! A plan while it is made: levels that may still move, and the bytes that they take.

use super::outcome::{Decision, Plan, Reason};
use super::signal::{Reading, Signal};
use crate::settings::Settings;
use crate::shard::ShardId;
use crate::snapshot::{Replica, Snapshot};

/// A replica with the level that it is to have.
pub(super) struct Entry<'a> {
    pub(super) replica: &'a Replica<'a>,
    pub(super) reading: Reading,
    pub(super) level: u32,
    pub(super) reason: Reason,
}

/// All replicas of the worker, in the snapshot's order.
pub(super) struct Draft<'a> {
    pub(super) settings: &'a Settings,
    pub(super) entries: Vec<Entry<'a>>,
    pub(super) bytes: u64,
    room_bytes: u64,
    building: u32,
}

impl<'a> Draft<'a> {
    /// Nothing has moved yet.
    pub(super) fn new(settings: &'a Settings, snapshot: &Snapshot<'a>, previous: &Plan) -> Self {
        let entry = |replica: &'a Replica<'a>| {
            let before = previous.of(replica.shard).map(|decision| &decision.memory);
            let reading = Reading::of(settings, replica, before);
            let reason = if replica.frozen && !replica.is_building() { Reason::Frozen } else { reading.reason() };
            Entry { replica, reading, level: replica.ordered, reason }
        };
        let building = snapshot.replicas.iter().filter(|replica| replica.is_building()).count() as u32;
        let entries = snapshot.replicas.iter().map(entry).collect();
        Self { settings, entries, bytes: snapshot.bytes(), room_bytes: snapshot.room_bytes, building }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.bytes > self.room_bytes
    }

    /// Bytes that miss for `at` to have `level`.
    pub(super) fn missing(&self, at: usize, level: u32) -> u64 {
        let entry = &self.entries[at];
        let more = entry.bytes_at(level).saturating_sub(entry.bytes_at(entry.level));
        (self.bytes + more).saturating_sub(self.room_bytes)
    }

    pub(super) fn may_build(&self) -> bool {
        self.building < self.settings.building_max
    }

    /// Has `at` build up to `level`, for which there is room.
    pub(super) fn raise(&mut self, at: usize, level: u32, reason: Reason) {
        assert_eq!(self.missing(at, level), 0, "{}: there is room for what is built", self.shard(at));
        assert!(self.may_build(), "{}: no more build than may", self.shard(at));
        self.building += 1;
        self.set(at, level, reason);
    }

    /// Has `at` drop layers down to `level`.
    pub(super) fn lower(&mut self, at: usize, level: u32, reason: Reason) {
        debug_assert!(level < self.entries[at].level, "{}: dropping goes down", self.shard(at));
        self.set(at, level, reason);
        let entry = &mut self.entries[at];
        entry.reading.memory.calm_periods = 0;
    }

    pub(super) fn shard(&self, at: usize) -> ShardId {
        self.entries[at].replica.shard
    }

    pub(super) fn finish(self) -> Plan {
        let decision = |entry: Entry<'_>| Decision {
            shard: entry.replica.shard,
            from: entry.replica.ordered,
            to: entry.level,
            reason: entry.reason,
            wait_us: entry.reading.wait_us,
            memory: entry.reading.memory,
        };
        Plan { decisions: self.entries.into_iter().map(decision).collect(), bytes: self.bytes }
    }

    fn set(&mut self, at: usize, level: u32, reason: Reason) {
        let entry = &mut self.entries[at];
        self.bytes = self.bytes - entry.bytes_at(entry.level) + entry.bytes_at(level);
        (entry.level, entry.reason) = (level, reason);
        // The new level is given its time before it is judged.
        entry.reading.memory.high_periods = 0;
    }
}

impl Entry<'_> {
    pub(super) fn bytes_at(&self, level: u32) -> u64 {
        self.replica.curve.bytes(level)
    }

    /// Whether it may have another level, and nothing was decided of it yet in this plan.
    pub(super) fn is_free(&self) -> bool {
        !self.replica.frozen && self.level == self.replica.ordered
    }

    /// Whether it may have a layer less.
    pub(super) fn has_spare(&self) -> bool {
        !self.replica.frozen && self.level > self.replica.lowest
    }

    /// The share of its time that it would be busy at `level`.
    pub(super) fn load_at(&self, settings: &Settings, level: u32) -> f64 {
        self.reading.load(settings, self.replica, level)
    }

    pub(super) fn signals(&self, signal: Signal) -> bool {
        self.reading.signal == signal
    }
}

impl Reading {
    /// The reason of a replica that stays as it is.
    fn reason(&self) -> Reason {
        match self.signal {
            Signal::New => Reason::New,
            Signal::Building => Reason::Building,
            Signal::Spike => Reason::Spike,
            Signal::Draining => Reason::Draining,
            Signal::Steady | Signal::High | Signal::Calm => Reason::Steady,
        }
    }
}
