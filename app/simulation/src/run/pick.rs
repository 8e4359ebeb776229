//! Which of the workers that its table names a client goes to, by the rule of the run.

use forebay_placement::{Candidate, Pick, pick};

use crate::cluster::{Knowledge, Routing};
use crate::random::Random;
use crate::run::Engine;
use crate::run::Observer;
use crate::workload::Micros;

/// The choices of a run.
pub(super) struct Picking {
    pub(super) rule: Routing,
    random: Random,
    /// Kept for its memory.
    candidates: Vec<Candidate>,
}

impl Picking {
    pub(super) fn new(rule: Routing, seed: u64) -> Self {
        Self { rule, random: Random::new(seed, 3), candidates: Vec::new() }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Lets the answers that a worker has given by `now` reach their clients, with the length of its queue.
    pub(super) fn advance(&mut self, worker: u32, now: Micros) {
        let queue = &mut self.workers[worker as usize].queue;
        while queue.front().is_some_and(|waiting| waiting.done <= now) {
            let Some(answer) = queue.pop_front() else { break };
            let waiting = queue.len() as u32;
            if let Some(client) = answer.client {
                self.clients[client as usize].queues[worker as usize].answered(answer.done, waiting);
            }
        }
    }

    /// One of `routes`, by the rule and what the client knows.
    pub(super) fn pick(&mut self, client: u32, routes: &[(u32, u32)]) -> u32 {
        let by_queue = matches!(self.picking.rule.pick, Pick::TwoChoices | Pick::ShortestQueue);
        let mut candidates = std::mem::take(&mut self.picking.candidates);
        candidates.clear();
        for &(worker, weight) in routes {
            let queue = if by_queue { self.queue_of(client, worker) } else { None };
            candidates.push(Candidate { weight, queue });
        }
        let chosen = pick(self.picking.rule.pick, &candidates, self.picking.random.next()).map_or(0, |at| at);
        self.picking.candidates = candidates;
        routes[chosen].0
    }

    fn queue_of(&mut self, client: u32, worker: u32) -> Option<u32> {
        self.advance(worker, self.clock.now);
        match self.picking.rule.knowledge {
            Knowledge::Perfect => {
                // In the time of an access, so that a slow worker's queue counts for what it is.
                let waiting = self.workers[worker as usize].free_at.saturating_sub(self.clock.now);
                Some(waiting.div_ceil(100) as u32)
            }
            Knowledge::Asked => {
                let there = self.workers[worker as usize].queue.len() as u32;
                Some(100 * (there + self.clients[client as usize].on_the_way[worker as usize]))
            }
            Knowledge::Answers => self.clients[client as usize].queues[worker as usize].expected(self.clock.now),
        }
    }
}
