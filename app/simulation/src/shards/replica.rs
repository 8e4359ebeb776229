//! A replica of the model: a queue and the level that it is answered with.

use std::collections::VecDeque;

use forebay_navigation::{Curve, Decision, Replica, ShardId};

use super::setup::{Place, Setup};

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) place: Place,
    pub(super) level: u32,
    pub(super) ordered: u32,
    /// Whether its worker is there.
    pub(super) is_alive: bool,
    /// Clients whose requests wait, the one that is being answered first.
    pub(super) waiting: VecDeque<u32>,
    /// Requests since the last plan.
    arrived: u32,
    /// Answers that were counted.
    pub(super) answered: u64,
    /// Raised when the queue is emptied: what was under way then ends nowhere.
    pub(super) generation: u32,
}

impl Queue {
    pub(super) fn new(place: Place) -> Self {
        let (level, waiting) = (place.start, VecDeque::new());
        Self { place, level, ordered: level, is_alive: true, waiting, arrived: 0, answered: 0, generation: 0 }
    }

    /// A copy of the base that has just come, and is to have `place.start`.
    pub(super) fn copied(place: Place) -> Self {
        Self { level: 0, ordered: 0, ..Self::new(place) }
    }

    /// A request comes; whether it is answered at once.
    pub(super) fn push(&mut self, client: u32) -> bool {
        self.arrived += 1;
        self.waiting.push_back(client);
        self.waiting.len() == 1
    }

    pub(super) fn service_us(&self, curve: &Curve) -> f64 {
        let slows = if self.ordered > self.level { Setup::BUILDING_SLOWS } else { 1.0 };
        curve.service_us(self.level) * slows
    }

    /// Microseconds until all that waits is answered.
    pub(super) fn wait_us(&self, curve: &Curve) -> f64 {
        self.waiting.len() as f64 * self.service_us(curve)
    }

    pub(super) fn seen<'a>(&self, curve: &'a Curve) -> Replica<'a> {
        Replica {
            shard: ShardId(self.place.shard as u64),
            curve,
            lowest: 0,
            start: self.place.start,
            highest: curve.highest(),
            level: self.level,
            ordered: self.ordered,
            queue: self.waiting.len() as u32,
            arrived: self.arrived,
            frozen: false,
        }
    }

    /// Drops at once what it has to drop; whether there is something to build.
    pub(super) fn follow(&mut self, decision: &Decision) -> bool {
        self.arrived = 0;
        let builds = decision.to > self.ordered;
        self.ordered = decision.to;
        self.level = self.level.min(decision.to);
        builds
    }

    pub(super) fn built(&mut self) {
        self.level = self.ordered;
    }

    pub(super) fn empty(&mut self) {
        self.waiting.clear();
        self.answered = 0;
        self.generation += 1;
    }
}
