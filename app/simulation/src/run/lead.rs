//! Plans at work: windows end, replicas are loaded and dropped, and tables reach clients when they poll.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::cluster::{Concurrent, Has, Table};
use crate::decide::{Planner, State, Steps};
use crate::run::Engine;
use crate::run::events::Event;
use crate::run::{Fact, Observer};
use crate::workload::Micros;

/// The tables of routes that clients get.
pub(super) struct Tables {
    pub(super) newest: Rc<Table>,
    /// Whether who holds what has changed since that was made.
    pub(super) is_old: bool,
    /// Those on their way to all clients, the oldest first.
    sent: VecDeque<Rc<Table>>,
}

impl Tables {
    pub(super) fn new(first: Rc<Table>) -> Self {
        Self { newest: first, is_old: false, sent: VecDeque::new() }
    }
}

/// What the coordinator decides, carried out: replicas come and go, and clients poll the table that says where they are.
impl<O: Observer> Engine<'_, O> {
    /// What is held before the first query.
    pub(super) fn start(&mut self) {
        let at_start = self.cluster.held.as_slice();
        let held = if at_start.is_empty() { self.decide.initial(self.segments.known) } else { at_start.to_vec() };
        for (segment, worker) in held {
            self.segments.holders[segment as usize].push(worker);
            let worker = &mut self.workers[worker as usize];
            worker.has[segment as usize] = Has::All;
            worker.replicas += 1;
            self.measures.replicas += 1;
        }
        for segment in 0..self.segments.holders.len() {
            for &worker in &self.segments.holders[segment] {
                self.observer.see(0, Fact::Loaded { segment: segment as u32, worker });
            }
        }
        self.renew_table();
        let table = self.tables.newest.clone();
        self.clients.iter_mut().for_each(|client| client.table = table.clone());
    }

    pub(super) fn has_room(&self, worker: u32) -> bool {
        self.cluster.room.is_none_or(|room| self.workers[worker as usize].replicas < room)
    }

    /// Begins to load unless the worker has the segment, or no room.
    pub(super) fn load(&mut self, segment: u32, worker: u32) {
        if self.takes(segment, worker) {
            self.bring(segment, worker, self.clock.now + self.cluster.load);
        }
    }

    /// Whether a worker would keep a segment that it has not.
    pub(super) fn takes(&self, segment: u32, worker: u32) -> bool {
        !self.clock.ending && self.workers[worker as usize].has[segment as usize] == Has::Nothing && self.has_room(worker)
    }

    /// A segment that its worker takes is on its way there, and has come at `ready`.
    pub(super) fn bring(&mut self, segment: u32, worker: u32, ready: Micros) {
        assert!(self.takes(segment, worker), "segment {segment} comes to worker {worker} once, where there is room");
        self.workers[worker as usize].load(ready, segment);
        self.segments.holders[segment as usize].push(worker);
        self.measures.loading(self.clock.now);
        self.observer.see(self.clock.now, Fact::Loading { segment, worker });
        self.clock.events.push(ready, Event::Loaded { worker, segment });
    }

    pub(super) fn loaded(&mut self, worker: u32, segment: u32) {
        // A replica that was deleted while it was loading, and perhaps begun again, has another end.
        if self.workers[worker as usize].has[segment as usize] == Has::Loading(self.clock.now) {
            self.workers[worker as usize].has[segment as usize] = Has::All;
            self.tables.is_old = true;
            self.observer.see(self.clock.now, Fact::Loaded { segment, worker });
        }
        self.copied(segment, worker);
    }

    fn delete(&mut self, segment: u32, worker: u32) {
        self.workers[worker as usize].drop_replica(segment);
        self.segments.holders[segment as usize].retain(|holder| *holder != worker);
        self.tables.is_old = true;
        self.measures.deleted(self.clock.now);
    }

    /// A window ends: counts are handed in, a plan is made, and what it changes is begun.
    pub(super) fn window(&mut self) {
        if self.clock.now >= self.cluster.end() {
            return;
        }
        for worker in 0..self.workers.len() as u32 {
            self.advance(worker, self.clock.now);
        }
        let concurrency = self.reads.in_flight.as_mut().map(|in_flight| in_flight.take(self.cluster.window));
        let counts = std::mem::replace(&mut self.reads.counts, vec![0; self.segments.holders.len()]);
        let steps = self.decided(&counts, concurrency.as_deref(), Planner::plan);
        self.carry_out(&steps);
        for worker in &mut self.workers {
            (worker.served_work, worker.served_time) = (0.0, 0);
        }
        self.measures.planned(self.clock.now, steps.planned, self.segments.known);
    }

    /// What the coordinator decides about things as they are.
    pub(super) fn decided(
        &mut self,
        counts: &[u64],
        concurrency: Option<&[Concurrent]>,
        how: impl FnOnce(&mut Planner, &State<'_>) -> Steps,
    ) -> Steps {
        let (now, known) = (self.clock.now, self.segments.known);
        how(self.decide, &State { now, known, counts, concurrency, workers: &self.workers, cluster: self.cluster })
    }

    pub(super) fn carry_out(&mut self, steps: &Steps) {
        for &(segment, worker) in &steps.collect {
            self.delete(segment, worker);
            self.observer.see(self.clock.now, Fact::Collected { segment, worker });
        }
        for &(segment, worker) in &steps.delete {
            self.delete(segment, worker);
            self.observer.see(self.clock.now, Fact::Deleted { segment, worker });
        }
        for &load in &steps.load {
            self.order(load);
        }
        self.tables.is_old = true;
    }

    pub(super) fn poll(&mut self, client: u32) {
        if self.tables.is_old {
            self.renew_table();
        }
        let version = self.tables.newest.version;
        let poller = &mut self.clients[client as usize];
        poller.table = self.tables.newest.clone();
        poller.polled_at = self.clock.now;
        self.observer.see(self.clock.now, Fact::Polled { client, version });
    }

    /// Where clients don't poll, a table that is newer than what was sent to them is on its way.
    pub(super) fn tell(&mut self) {
        let Some(age) = self.cluster.table_age.filter(|_| self.tables.is_old) else { return };
        self.renew_table();
        self.tables.sent.push_back(self.tables.newest.clone());
        match age {
            0 => self.told(),
            _ => self.clock.events.push(self.clock.now + age, Event::Told),
        }
    }

    /// The oldest table that is on its way is with all clients.
    pub(super) fn told(&mut self) {
        let Some(table) = self.tables.sent.pop_front() else { return };
        for (client, its) in (0..).zip(&mut self.clients) {
            its.table = table.clone();
            self.observer.see(self.clock.now, Fact::Polled { client, version: table.version });
        }
    }

    pub(super) fn renew_table(&mut self) {
        let version = self.tables.newest.version + 1;
        let routes = self.decide.routes(self.clock.now, &self.workers, &self.segments.holders);
        for (segment, routes) in routes.iter().enumerate() {
            for &(worker, _) in routes {
                self.observer.see(self.clock.now, Fact::Named { version, segment: segment as u32, worker });
            }
        }
        self.tables.newest = Rc::new(Table { version, routes });
        self.tables.is_old = false;
    }
}
