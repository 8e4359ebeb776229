//! A run of the model: queries, loads, plans and polls in the order of time.

mod access;
mod copies;
mod elsewhere;
mod events;
mod lead;
mod observer;
mod pick;

use std::rc::Rc;

use forebay_placement::QueueView;

use crate::cluster::{Client, ClusterSettings, InFlight, Routing, Table, Worker};
use crate::decide::Planner;
use crate::events::Events;
use crate::metrics::{Measures, Outcome};
use crate::run::events::Event;
use crate::workload::{Micros, Query};

use access::Queries;
use lead::Tables;
use pick::Picking;

pub use observer::{Fact, Observer, Unobserved};

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

struct Engine<'a, O> {
    cluster: &'a ClusterSettings,
    picking: Picking,
    decide: &'a mut Planner,
    observer: &'a mut O,
    workers: Vec<Worker>,
    clients: Vec<Client>,
    segments: Segments,
    tables: Tables,
    queries: Queries,
    reads: Reads,
    measures: Measures,
    clock: Clock,
}

/// The segments that there are.
struct Segments {
    /// Which workers have each one, or will.
    holders: Vec<Vec<u32>>,
    /// So many have come into being.
    known: usize,
}

/// What a window's plan is made from: how often each segment was read, and where that is asked for how often at once.
struct Reads {
    counts: Vec<u64>,
    in_flight: Option<InFlight>,
}

/// Time, and what is to happen.
struct Clock {
    now: Micros,
    events: Events<Event>,
    /// The last query has come.
    ending: bool,
}

impl<'a, O: Observer> Engine<'a, O> {
    fn new(what: &Run<'a>, decide: &'a mut Planner, observer: &'a mut O) -> Self {
        let cluster = what.cluster;
        let total = what.segments + what.fresh.len();
        let mut events = Events::new();
        for (at, time) in what.fresh.iter().enumerate() {
            events.push(*time, Event::Fresh { segment: (what.segments + at) as u32 });
        }
        for window in 1..=cluster.windows {
            events.push(window * cluster.window, Event::Window);
        }
        let polling = if cluster.table_age.is_some() { 0 } else { cluster.clients };
        for client in 0..polling {
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
            picking: Picking::new(what.routing, what.seed),
            reads: Reads { counts: vec![0; total], in_flight: decide.needs_concurrency().then(|| InFlight::new(total)) },
            decide,
            observer,
            workers: (0..cluster.workers).map(|_| Worker::new(total)).collect(),
            clients: (0..cluster.clients).map(|_| client()).collect(),
            segments: Segments { holders: vec![Vec::new(); total], known: what.segments },
            tables: Tables::new(table),
            queries: Queries::default(),
            measures: Measures::new(cluster),
            clock: Clock { now: 0, events, ending: false },
        };
        engine.start();
        engine
    }

    /// Everything that happens up to `time`.
    fn until(&mut self, time: Micros) {
        while self.clock.events.next_at() <= time {
            let (at, event) = self.clock.events.pop().expect("there is a next one");
            self.measures.pass(self.clock.now, at);
            self.clock.now = at;
            self.event(event);
            // Of all that happens at one time one table is made.
            if self.clock.events.next_at() > at {
                self.tell();
            }
        }
        self.measures.pass(self.clock.now, time);
        self.clock.now = time;
    }

    /// Lets those who wait be answered after the last query.
    fn drain(&mut self) {
        self.clock.ending = true;
        while let Some((at, event)) = self.clock.events.pop() {
            self.clock.now = self.clock.now.max(at);
            match event {
                Event::Loaded { .. } | Event::Access { .. } | Event::Asked { .. } | Event::Fetch { .. } => self.event(event),
                Event::Poll { .. } | Event::Told | Event::Fresh { .. } | Event::Window => {}
            }
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Loaded { worker, segment } => self.loaded(worker, segment),
            Event::Access { query, segment, worker } => self.access(query, segment, worker),
            Event::Asked { query, segment, worker } => {
                let client = self.queries.pending[query as usize].client;
                self.clients[client as usize].on_the_way[worker as usize] -= 1;
                self.access(query, segment, worker);
            }
            Event::Fetch { query, segment, worker } => self.fetch(query, segment, worker),
            Event::Poll { client, periodic } => {
                self.poll(client);
                if periodic {
                    self.clock.events.push(self.clock.now + self.cluster.poll, Event::Poll { client, periodic });
                }
            }
            Event::Told => self.told(),
            Event::Fresh { segment } => {
                self.segments.known = self.segments.known.max(segment as usize + 1);
                let steps = self.decided(&[], None, |decide, state| decide.fresh(state, segment));
                self.carry_out(&steps);
            }
            Event::Window => self.window(),
        }
    }
}
