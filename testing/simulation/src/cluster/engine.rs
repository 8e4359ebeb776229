use std::rc::Rc;

use forebay_placement::{Candidate, QueueView};

use crate::cluster::concurrency::{Concurrent, InFlight};
use crate::cluster::events::{Event, Events};
use crate::cluster::routing::{Client, Table};
use crate::cluster::worker::{Has, Worker};
use crate::cluster::{ClusterSettings, Fact, Knowledge, Observer, Routing};
use crate::decide::{Planner, State, Steps};
use crate::metrics::{Measures, Outcome};
use crate::random::Random;
use crate::workload::{Micros, Query};

/// A client that finds its view wrong polls again, but not more often than this.
const POLL_AGAIN: Micros = 1_000_000;

/// What a run consists of, beside its queries and decisions.
pub(crate) struct Run<'a> {
    pub(crate) cluster: &'a ClusterSettings,
    pub(crate) routing: Routing,
    /// Segments at the start.
    pub(crate) segments: usize,
    /// When further segments come into being, in order.
    pub(crate) fresh: Vec<Micros>,
    /// Of whatever is drawn at random but the queries.
    pub(crate) seed: u64,
}

/// Runs `queries` through the cluster until its end.
pub(crate) fn run(
    what: &Run<'_>,
    decide: &mut Planner,
    queries: impl Iterator<Item = Query>,
    observer: &mut impl Observer,
) -> Outcome {
    let end = what.cluster.end();
    let mut engine = Engine::new(what, decide, observer);
    for query in queries.take_while(|query| query.at < end) {
        engine.until(query.at);
        engine.query(query);
    }
    engine.until(end);
    engine.drain();
    let busy: Vec<Micros> = engine.workers.iter().map(|worker| worker.busy).collect();
    engine.measures.outcome(what.segments + what.fresh.len(), &busy, what.cluster)
}

/// A query that isn't answered yet.
#[derive(Debug, Default)]
struct Pending {
    number: u64,
    at: Micros,
    client: u32,
    left: usize,
    accesses: usize,
    done: Micros,
}

pub(super) struct Engine<'a, O> {
    pub(super) cluster: &'a ClusterSettings,
    pub(super) routing: Routing,
    decide: &'a mut Planner,
    observer: &'a mut O,
    pub(super) workers: Vec<Worker>,
    pub(super) clients: Vec<Client>,
    /// Which workers have each segment, or will.
    holders: Vec<Vec<u32>>,
    table: Rc<Table>,
    /// Whether who holds what has changed since the table was made.
    table_is_old: bool,
    events: Events,
    pending: Vec<Pending>,
    free: Vec<u32>,
    asked: u64,
    counts: Vec<u64>,
    in_flight: Option<InFlight>,
    known: usize,
    pub(super) random: Random,
    /// Kept for its memory.
    pub(super) candidates: Vec<Candidate>,
    measures: Measures,
    pub(super) now: Micros,
    ending: bool,
}

impl<'a, O: Observer> Engine<'a, O> {
    fn new(what: &Run<'a>, decide: &'a mut Planner, observer: &'a mut O) -> Self {
        let cluster = what.cluster;
        let total = what.segments + what.fresh.len();
        let mut events = Events::default();
        for (at, time) in what.fresh.iter().enumerate() {
            events.push(*time, Event::Fresh { segment: (what.segments + at) as u32 });
        }
        for window in 1..=cluster.windows {
            events.push(window * cluster.window, Event::Window);
        }
        for client in 0..cluster.clients {
            // Clients were not started at the same time.
            let first = cluster.poll * (client as u64 + 1) / cluster.clients as u64;
            events.push(first, Event::Poll { client: client as u32, periodic: true });
        }
        let table = Rc::new(Table { version: 0, routes: vec![Vec::new(); total] });
        let client = || Client {
            table: table.clone(),
            polled_at: 0,
            queues: vec![QueueView::default(); cluster.workers],
            on_the_way: vec![0; cluster.workers],
        };
        let mut engine = Self {
            cluster,
            routing: what.routing,
            in_flight: decide.needs_concurrency().then(|| InFlight::new(total)),
            decide,
            observer,
            workers: (0..cluster.workers).map(|_| Worker::new(total)).collect(),
            clients: (0..cluster.clients).map(|_| client()).collect(),
            holders: vec![Vec::new(); total],
            table,
            table_is_old: false,
            events,
            pending: Vec::new(),
            free: Vec::new(),
            asked: 0,
            counts: vec![0; total],
            known: what.segments,
            random: Random::new(what.seed, 3),
            candidates: Vec::new(),
            measures: Measures::new(cluster),
            now: 0,
            ending: false,
        };
        engine.start();
        engine
    }

    /// What is held before the first query.
    fn start(&mut self) {
        for (segment, worker) in self.decide.initial(self.known) {
            self.holders[segment as usize].push(worker);
            let worker = &mut self.workers[worker as usize];
            worker.has[segment as usize] = Has::All;
            worker.replicas += 1;
            self.measures.replicas += 1;
        }
        for segment in 0..self.holders.len() {
            for &worker in &self.holders[segment] {
                self.observer.see(0, Fact::Loaded { segment: segment as u32, worker });
            }
        }
        self.renew_table();
        let table = self.table.clone();
        self.clients.iter_mut().for_each(|client| client.table = table.clone());
    }

    /// Everything that happens up to `time`.
    fn until(&mut self, time: Micros) {
        while self.events.next_at() <= time {
            let (at, event) = self.events.pop().expect("there is a next one");
            self.measures.pass(self.now, at);
            self.now = at;
            self.event(event);
        }
        self.measures.pass(self.now, time);
        self.now = time;
    }

    /// Lets those who wait be answered after the last query.
    fn drain(&mut self) {
        self.ending = true;
        while let Some((at, event)) = self.events.pop() {
            self.now = self.now.max(at);
            if matches!(event, Event::Access { .. } | Event::Asked { .. } | Event::Loaded { .. }) {
                self.event(event);
            }
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Loaded { worker, segment } => self.loaded(worker, segment),
            Event::Access { query, segment, worker, tries } => self.access(query, segment, worker, tries),
            Event::Asked { query, segment, worker } => {
                let client = self.pending[query as usize].client;
                self.clients[client as usize].on_the_way[worker as usize] -= 1;
                self.access(query, segment, worker, 0);
            }
            Event::Poll { client, periodic } => {
                self.poll(client);
                if periodic {
                    self.events.push(self.now + self.cluster.poll, Event::Poll { client, periodic });
                }
            }
            Event::Fresh { segment } => {
                self.known = self.known.max(segment as usize + 1);
                let steps = self.decided(&[], None, |decide, state| decide.fresh(state, segment));
                self.carry_out(&steps);
            }
            Event::Window => self.window(),
        }
    }

    /// A query: all of its accesses leave at once, in the order that it names them.
    fn query(&mut self, query: Query) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(Pending::default());
            self.pending.len() as u32 - 1
        });
        let client = (query.client % self.clients.len()) as u32;
        let accesses = query.segments.len();
        let number = self.asked;
        self.asked += 1;
        self.pending[slot as usize] = Pending { number, at: query.at, client, left: accesses, accesses, done: query.at };
        self.observer.see(self.now, Fact::Asked { query: number, accesses });
        for segment in query.segments {
            self.counts[segment as usize] += 1;
            let worker = self.choose(client, segment);
            if self.asks(client, segment) {
                self.clients[client as usize].on_the_way[worker as usize] += 1;
                let at = self.now + self.cluster.round_trip;
                self.events.push(at, Event::Asked { query: slot, segment, worker });
            } else {
                self.access(slot, segment, worker, 0);
            }
        }
    }

    /// Whether a client asks workers for their queues before it goes to one of them.
    fn asks(&self, client: u32, segment: u32) -> bool {
        self.routing.knowledge == Knowledge::Asked && self.clients[client as usize].table.routes[segment as usize].len() > 1
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
    fn access(&mut self, slot: u32, segment: u32, worker: u32, tries: u32) {
        let now = self.now;
        self.advance(worker, now);
        match self.workers[worker as usize].has[segment as usize] {
            Has::All => self.accept(slot, segment, worker),
            Has::Loading(ready) => {
                // The client asks again when the load should be done; a queue isn't held up by it.
                self.measures.stalled(now);
                self.events.push(ready.max(now + 1), Event::Access { query: slot, segment, worker, tries });
            }
            Has::Nothing => self.miss(slot, segment, worker, tries),
        }
    }

    /// Polls out of turn, unless that was done a moment ago.
    fn poll_again(&mut self, client: u32) {
        let poller = &mut self.clients[client as usize];
        if self.now >= poller.polled_at + POLL_AGAIN {
            poller.polled_at = self.now;
            self.events.push(self.now + self.cluster.round_trip, Event::Poll { client, periodic: false });
        }
    }

    fn accept(&mut self, slot: u32, segment: u32, worker: u32) {
        let now = self.now;
        let query = &mut self.pending[slot as usize];
        let service = self.cluster.service_at(worker as usize, self.workers[worker as usize].free_at.max(now));
        let done = self.workers[worker as usize].accept(now, service, query.client);
        self.clients[query.client as usize].queues[worker as usize].sent();
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.add(segment, now, done);
        }
        self.observer.see(now, Fact::Accepted { query: query.number, segment, worker, done });
        self.answered(slot, done);
    }

    /// One more of a query's accesses will be answered at `done`.
    fn answered(&mut self, slot: u32, done: Micros) {
        let query = &mut self.pending[slot as usize];
        query.done = query.done.max(done);
        query.left -= 1;
        if query.left == 0 {
            self.measures.answered(query.at, query.done, query.accesses);
            self.observer.see(self.now, Fact::Answered { query: query.number, done: query.done });
            self.free.push(slot);
        }
    }

    /// A worker that isn't to have the segment was asked: the client's view is wrong, or nobody has it yet.
    fn miss(&mut self, slot: u32, segment: u32, worker: u32, tries: u32) {
        let now = self.now;
        let client = self.pending[slot as usize].client;
        let again = now + self.cluster.round_trip;
        let holders = &self.holders[segment as usize];
        if holders.is_empty() {
            if self.has_room(worker) {
                self.load(segment, worker);
                self.access(slot, segment, worker, tries);
            } else {
                self.pass_through(slot, segment, worker);
            }
            return;
        }
        self.measures.misrouted(now);
        // The client polls sooner, and tries a holder at random where its table doesn't help.
        let next = holders[self.random.below(holders.len())];
        self.poll_again(client);
        self.events.push(again, Event::Access { query: slot, segment, worker: next, tries: tries + 1 });
    }

    /// A worker without room answers out of shared storage, over the link that loads use.
    fn pass_through(&mut self, slot: u32, segment: u32, worker: u32) {
        let now = self.now;
        let link = &mut self.workers[worker as usize].link_free_at;
        *link = (*link).max(now) + self.cluster.pass_through;
        let done = *link;
        self.measures.passed_through(now);
        self.observer.see(now, Fact::PassedThrough { query: self.pending[slot as usize].number, segment, worker });
        self.answered(slot, done);
    }

    fn has_room(&self, worker: u32) -> bool {
        self.cluster.room.is_none_or(|room| self.workers[worker as usize].replicas < room)
    }

    /// Begins to load unless the worker has the segment, or no room.
    fn load(&mut self, segment: u32, worker: u32) {
        if self.ending || self.workers[worker as usize].has[segment as usize] != Has::Nothing || !self.has_room(worker) {
            return;
        }
        let ready = self.workers[worker as usize].load(self.now, self.cluster.load, segment);
        self.holders[segment as usize].push(worker);
        self.measures.loading(self.now);
        self.observer.see(self.now, Fact::Loading { segment, worker });
        self.events.push(ready, Event::Loaded { worker, segment });
    }

    fn loaded(&mut self, worker: u32, segment: u32) {
        // A replica that was deleted while it was loading, and perhaps begun again, has another end.
        if self.workers[worker as usize].has[segment as usize] == Has::Loading(self.now) {
            self.workers[worker as usize].has[segment as usize] = Has::All;
            self.table_is_old = true;
            self.observer.see(self.now, Fact::Loaded { segment, worker });
        }
    }

    fn delete(&mut self, segment: u32, worker: u32) {
        self.workers[worker as usize].drop_replica(segment);
        self.holders[segment as usize].retain(|holder| *holder != worker);
        self.table_is_old = true;
        self.measures.deleted(self.now);
    }

    /// A window ends: counts are handed in, a plan is made, and what it changes is begun.
    fn window(&mut self) {
        if self.now >= self.cluster.end() {
            return;
        }
        for worker in 0..self.workers.len() as u32 {
            self.advance(worker, self.now);
        }
        let concurrency = self.in_flight.as_mut().map(|in_flight| in_flight.take(self.cluster.window));
        let counts = std::mem::replace(&mut self.counts, vec![0; self.holders.len()]);
        let steps = self.decided(&counts, concurrency.as_deref(), Planner::plan);
        self.carry_out(&steps);
        for worker in &mut self.workers {
            (worker.served, worker.served_time) = (0, 0);
        }
        self.measures.planned(self.now, steps.planned, self.known);
    }

    /// What the coordinator decides about things as they are.
    fn decided(
        &mut self,
        counts: &[u64],
        concurrency: Option<&[Concurrent]>,
        how: impl FnOnce(&mut Planner, &State<'_>) -> Steps,
    ) -> Steps {
        let (now, known) = (self.now, self.known);
        how(self.decide, &State { now, known, counts, concurrency, workers: &self.workers, cluster: self.cluster })
    }

    fn carry_out(&mut self, steps: &Steps) {
        for &(segment, worker) in &steps.collect {
            self.delete(segment, worker);
            self.observer.see(self.now, Fact::Collected { segment, worker });
        }
        for &(segment, worker) in &steps.delete {
            self.delete(segment, worker);
            self.observer.see(self.now, Fact::Deleted { segment, worker });
        }
        for &(segment, worker) in &steps.load {
            self.load(segment, worker);
        }
        self.table_is_old = true;
    }

    fn poll(&mut self, client: u32) {
        if self.table_is_old {
            self.renew_table();
        }
        let version = self.table.version;
        let poller = &mut self.clients[client as usize];
        poller.table = self.table.clone();
        poller.polled_at = self.now;
        self.observer.see(self.now, Fact::Polled { client, version });
    }

    fn renew_table(&mut self) {
        let version = self.table.version + 1;
        let routes = self.decide.routes(self.now, &self.workers, &self.holders);
        for (segment, routes) in routes.iter().enumerate() {
            for &(worker, _) in routes {
                self.observer.see(self.now, Fact::Named { version, segment: segment as u32, worker });
            }
        }
        self.table = Rc::new(Table { version, routes });
        self.table_is_old = false;
    }
}
