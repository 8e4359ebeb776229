//! How clients choose a worker, with Forebay's own rules and those that it is compared with, and how much they know.

use std::rc::Rc;

use forebay_placement::{Candidate, Pick, QueueView, pick};

use crate::cluster::Observer;
use crate::cluster::engine::Engine;
use crate::workload::Micros;

/// How a client chooses among the workers that its table names for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// The rule.
    pub pick: Pick,
    /// What it goes by.
    pub knowledge: Knowledge,
}

/// What a client knows of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// What answers carried, and its own requests that aren't answered.
    Answers,
    /// The same, and where there is a choice the workers are asked first, which takes a round trip. The answer is true when
    /// it is given; what other clients send meanwhile it doesn't tell.
    Asked,
    /// All queues as they are at the moment. No client can have that: it is the most that a baseline could do.
    Perfect,
}

impl Routing {
    /// Forebay's own, for reads that take long enough to be worth a question.
    pub const CLIENT: Self = Self { pick: Pick::TwoChoices, knowledge: Knowledge::Asked };
    /// Forebay's own for short reads: nobody is asked.
    pub const UNASKED: Self = Self { pick: Pick::TwoChoices, knowledge: Knowledge::Answers };
    /// The paper's table (section 3.3).
    pub const TABLE: Self = Self { pick: Pick::Table, knowledge: Knowledge::Answers };
    /// What Druid does.
    pub const RANDOM: Self = Self { pick: Pick::Random, knowledge: Knowledge::Answers };
    /// Join the shortest queue, by perfect knowledge.
    pub const SHORTEST: Self = Self { pick: Pick::ShortestQueue, knowledge: Knowledge::Perfect };
}

/// Which workers a segment is read from, and in what proportion, by the numbers of the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) version: u64,
    /// By segment: workers and percent; empty where rendezvous hashing decides.
    pub(crate) routes: Vec<Vec<(u32, u32)>>,
}

/// A client: a table and what answers told of the workers.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) table: Rc<Table>,
    pub(crate) polled_at: Micros,
    pub(crate) queues: Vec<QueueView>,
    /// Accesses that have left for a worker and aren't there yet.
    pub(crate) on_the_way: Vec<u32>,
}

impl<O: Observer> Engine<'_, O> {
    /// Lets the answers that a worker has given by `now` reach their clients, with the length of its queue.
    pub(super) fn advance(&mut self, worker: u32, now: Micros) {
        let queue = &mut self.workers[worker as usize].queue;
        while queue.front().is_some_and(|waiting| waiting.done <= now) {
            let Some(answer) = queue.pop_front() else { break };
            let waiting = queue.len() as u32;
            self.clients[answer.client as usize].queues[worker as usize].answered(answer.done, waiting);
        }
    }

    /// One of `routes`, by the rule and what the client knows.
    pub(super) fn pick(&mut self, client: u32, routes: &[(u32, u32)]) -> u32 {
        let by_queue = matches!(self.routing.pick, Pick::TwoChoices | Pick::ShortestQueue);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        for &(worker, weight) in routes {
            let queue = if by_queue { self.queue_of(client, worker) } else { None };
            candidates.push(Candidate { weight, queue });
        }
        let chosen = pick(self.routing.pick, &candidates, self.random.next()).map_or(0, |at| at);
        self.candidates = candidates;
        routes[chosen].0
    }

    fn queue_of(&mut self, client: u32, worker: u32) -> Option<u32> {
        self.advance(worker, self.now);
        match self.routing.knowledge {
            Knowledge::Perfect => {
                // In the time of an access, so that a slow worker's queue counts for what it is.
                let waiting = self.workers[worker as usize].free_at.saturating_sub(self.now);
                Some(waiting.div_ceil(100) as u32)
            }
            Knowledge::Asked => {
                let there = self.workers[worker as usize].queue.len() as u32;
                Some(100 * (there + self.clients[client as usize].on_the_way[worker as usize]))
            }
            Knowledge::Answers => self.clients[client as usize].queues[worker as usize].expected(self.now),
        }
    }
}
