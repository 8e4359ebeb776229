//! Those who wait, and how many run, of one priority.

use std::collections::VecDeque;

use forebay_types::PlanTurn;
use tokio::sync::oneshot;

use super::Priority;

/// Those of one priority.
#[derive(Debug)]
pub(super) struct Lane {
    priority: Priority,
    waiting: VecDeque<Waiter>,
    pub(super) waiting_bytes: u64,
    pub(super) running: usize,
    /// Still to come.
    pub(super) bytes: u64,
    /// From so many bytes on nothing more that counts is let in.
    pub(super) bytes_max: u64,
}

/// So many that come later may pass one of a priority below 0: it has a part of what there is in any case.
pub(super) const PASSES: u32 = 8;

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) turn: PlanTurn,
    pub(super) bytes: u64,
    pub(super) admit: oneshot::Sender<Admitted>,
    /// How many have passed it.
    passed: u32,
}

impl Waiter {
    pub(super) fn new(id: u64, turn: PlanTurn, bytes: u64, admit: oneshot::Sender<Admitted>) -> Self {
        Self { id, turn, bytes, admit, passed: 0 }
    }

    /// The same for another plan as well, in the turn of the first of them.
    pub(super) fn with_turn(self, turn: PlanTurn) -> Self {
        Self { turn: self.turn.min(turn), ..self }
    }

    /// Whether it lets another one pass that comes later.
    fn gives_way_to(&self, other: &Self) -> bool {
        self.turn.standing.priority < other.turn.standing.priority.min(0) && self.passed < PASSES
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    pub(super) id: u64,
    pub(super) priority: Priority,
    pub(super) bytes: u64,
}

impl Lane {
    pub(super) fn new(priority: Priority, bytes_max: u64) -> Self {
        Self { priority, waiting: VecDeque::new(), waiting_bytes: 0, running: 0, bytes: 0, bytes_max }
    }

    /// Those that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The turns and bytes of those that wait and have not given up.
    pub(super) fn there(&self) -> impl Iterator<Item = (PlanTurn, u64)> {
        self.waiting.iter().filter(|waiter| !waiter.admit.is_closed()).map(|waiter| (waiter.turn, waiter.bytes))
    }

    /// Forgets those that have given up.
    pub(super) fn drop_gone(&mut self) {
        let Self { waiting, waiting_bytes, .. } = self;
        waiting.retain(|waiter| {
            let is_there = !waiter.admit.is_closed();
            *waiting_bytes -= if is_there { 0 } else { waiter.bytes };
            is_there
        });
    }

    /// Demand behind all that came before and does not give way, all else behind what is for the same plan, and for those before it.
    pub(super) fn line_up(&mut self, waiter: Waiter) {
        let mut at = self.waiting.len();
        if self.priority.is_demand() {
            while at > 0 && self.waiting[at - 1].gives_way_to(&waiter) {
                at -= 1;
                self.waiting[at].passed += 1;
            }
        } else {
            at = self.waiting.partition_point(|before| before.turn <= waiter.turn);
        }
        self.waiting_bytes += waiter.bytes;
        self.waiting.insert(at, waiter);
    }

    /// One that waits here is for another one as well: it stays where it is, in the turn of the first of them.
    pub(super) fn also_for(&mut self, id: u64, turn: PlanTurn) {
        if let Some(waiter) = self.waiting.iter_mut().find(|waiter| waiter.id == id) {
            waiter.turn = waiter.turn.min(turn);
        }
    }

    /// Takes out one that waits.
    pub(super) fn take(&mut self, id: u64) -> Option<Waiter> {
        let at = self.waiting.iter().position(|waiter| waiter.id == id)?;
        self.take_at(at)
    }

    fn take_at(&mut self, at: usize) -> Option<Waiter> {
        let waiter = self.waiting.remove(at)?;
        assert!(waiter.bytes <= self.waiting_bytes, "who waits was counted as it lined up");
        self.waiting_bytes -= waiter.bytes;
        Some(waiter)
    }

    /// Lets the first in that may be and has not given up: its number and its turn. None when there is none.
    pub(super) fn admit(&mut self, may_be_long: bool) -> Option<(u64, PlanTurn)> {
        let priority = self.priority;
        let has_room = may_be_long && self.bytes < self.bytes_max;
        loop {
            let first = self.waiting.iter().position(|waiter| has_room || priority.counted(waiter.bytes) == 0);
            let Waiter { id, turn, bytes, admit, .. } = first.and_then(|at| self.take_at(at))?;
            if admit.send(Admitted { id, priority, bytes }).is_ok() {
                self.running += 1;
                self.bytes += priority.counted(bytes);
                return Some((id, turn));
            }
        }
    }
}
