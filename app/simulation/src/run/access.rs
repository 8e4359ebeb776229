//! What becomes of a query's accesses: which worker is asked, and when the last one is answered.

use crate::cluster::{Has, Knowledge};
use crate::run::events::Event;
use crate::run::{Engine, Fact, Observer, Pending};
use crate::workload::{Micros, Query};

/// A client that finds its view wrong polls again, but not more often than this.
const POLL_AGAIN: Micros = 1_000_000;

/// The queries that aren't answered yet.
#[derive(Default)]
pub(super) struct Queries {
    pub(super) pending: Vec<Pending>,
    /// Places of those that are answered.
    free: Vec<u32>,
    /// So many were asked.
    asked: u64,
}

impl Queries {
    /// A query is asked; its place and its number.
    fn begin(&mut self, at: Micros, client: u32, accesses: usize) -> (u32, u64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(Pending::default());
            self.pending.len() as u32 - 1
        });
        let number = self.asked;
        self.asked += 1;
        self.pending[slot as usize] = Pending { number, at, client, left: accesses, accesses, done: at };
        (slot, number)
    }
}

/// The way of a query: its accesses go to workers, wait, and are answered.
impl<O: Observer> Engine<'_, O> {
    /// A query: all of its accesses leave at once, in the order that it names them.
    pub(super) fn query(&mut self, query: Query) {
        let client = (query.client % self.clients.len()) as u32;
        let accesses = query.segments.len();
        let (slot, number) = self.queries.begin(query.at, client, accesses);
        self.observer.see(self.clock.now, Fact::Asked { query: number, accesses });
        for segment in query.segments {
            self.reads.counts[segment as usize] += 1;
            let worker = self.choose(client, segment);
            if self.asks(client, segment) {
                self.clients[client as usize].on_the_way[worker as usize] += 1;
                let at = self.clock.now + self.cluster.round_trip;
                self.clock.events.push(at, Event::Asked { query: slot, segment, worker });
            } else {
                self.access(slot, segment, worker);
            }
        }
    }

    /// Whether a client asks workers for their queues before it goes to one of them.
    fn asks(&self, client: u32, segment: u32) -> bool {
        self.picking.rule.knowledge == Knowledge::Asked && self.clients[client as usize].table.routes[segment as usize].len() > 1
    }

    /// The worker that a client asks for a segment.
    fn choose(&mut self, client: u32, segment: u32) -> u32 {
        let table = self.clients[client as usize].table.clone();
        let routes = &table.routes[segment as usize];
        match routes.len() {
            0 => {
                // A segment that the table doesn't know may be one that a newer table knows.
                self.poll_again(client);
                self.decide.home(segment)
            }
            1 => routes[0].0,
            _ => self.pick(client, routes),
        }
    }

    /// An access reaches a worker.
    pub(super) fn access(&mut self, slot: u32, segment: u32, worker: u32) {
        let now = self.clock.now;
        self.advance(worker, now);
        match self.workers[worker as usize].has[segment as usize] {
            Has::All => self.accept(slot, segment, worker),
            Has::Loading(ready) => {
                // The client asks again when the load should be done; a queue isn't held up by it.
                self.measures.stalled(now);
                self.clock.events.push(ready.max(now + 1), Event::Access { query: slot, segment, worker });
            }
            Has::Nothing => self.miss(slot, segment, worker),
        }
    }

    /// Polls out of turn, unless that was done a moment ago, or nobody polls.
    pub(super) fn poll_again(&mut self, client: u32) {
        if self.cluster.table_age.is_some() {
            return;
        }
        let poller = &mut self.clients[client as usize];
        if self.clock.now >= poller.polled_at + POLL_AGAIN {
            poller.polled_at = self.clock.now;
            self.clock.events.push(self.clock.now + self.cluster.round_trip, Event::Poll { client, periodic: false });
        }
    }

    fn accept(&mut self, slot: u32, segment: u32, worker: u32) {
        let now = self.clock.now;
        let query = &mut self.queries.pending[slot as usize];
        let service = self.cluster.service_at(worker as usize, segment, self.workers[worker as usize].free_at.max(now));
        let done = self.workers[worker as usize].accept(now, self.cluster.work(segment), service, Some(query.client));
        self.clients[query.client as usize].queues[worker as usize].sent();
        if let Some(in_flight) = &mut self.reads.in_flight {
            in_flight.add(segment, now, done);
        }
        self.observer.see(now, Fact::Accepted { query: query.number, segment, worker, done });
        self.answered(slot, done);
    }

    /// One more of a query's accesses will be answered at `done`.
    pub(super) fn answered(&mut self, slot: u32, done: Micros) {
        let query = &mut self.queries.pending[slot as usize];
        query.done = query.done.max(done);
        query.left -= 1;
        if query.left == 0 {
            self.measures.answered(query.at, query.done, query.accesses);
            self.observer.see(self.clock.now, Fact::Answered { query: query.number, done: query.done });
            self.queries.free.push(slot);
        }
    }

    /// A worker without room answers out of shared storage, over the link that loads use.
    pub(super) fn pass_through(&mut self, slot: u32, segment: u32, worker: u32) {
        let now = self.clock.now;
        let link = &mut self.workers[worker as usize].link_free_at;
        *link = (*link).max(now) + self.cluster.pass_through;
        let done = *link;
        self.measures.passed_through(now);
        self.observer.see(now, Fact::PassedThrough { query: self.queries.pending[slot as usize].number, segment, worker });
        self.answered(slot, done);
    }
}
