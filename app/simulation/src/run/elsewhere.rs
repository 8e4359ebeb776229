//! An access at a worker that has not its segment: as a live one does, it asks those that have it, and then shared storage.

use forebay_placement::{Asking, by_part};
use forebay_types::WorkerId;

use crate::cluster::Has;
use crate::run::events::Event;
use crate::run::{Engine, Fact, Observer};
use crate::workload::Micros;

/// How long a read waits for pages that are on their way to another worker: who has them coming keeps a question for 200 ms, and is asked once
/// more before shared storage is ([`asks_again`](forebay_placement::asks_again)).
const PATIENCE: Micros = 400_000;

/// What others say of a segment that a worker asks them for.
struct Heard {
    /// When they have said it.
    at: Micros,
    /// Who has it.
    giver: Option<u32>,
    /// Where nobody has: when the first one will.
    comes: Option<Micros>,
}

impl<O: Observer> Engine<'_, O> {
    /// A worker that has not the segment was asked for it: the client's table is of before, or nobody has it yet.
    pub(super) fn miss(&mut self, slot: u32, segment: u32, worker: u32) {
        let heard = self.ask_others(segment, worker);
        if let Some(ready) = heard.comes.filter(|ready| *ready <= heard.at + PATIENCE) {
            // It is given then.
            self.measures.stalled(self.clock.now);
            self.clock.events.push(ready.max(self.clock.now + 1), Event::Access { query: slot, segment, worker });
            return;
        }
        if !self.segments.holders[segment as usize].is_empty() {
            self.measures.misrouted(self.clock.now);
            // The answer will say that there is a newer table.
            self.poll_again(self.queries.pending[slot as usize].client);
        }
        if let Some(giver) = heard.giver {
            self.give(slot, segment, worker, giver, heard.at);
        } else {
            let waited = heard.comes.map_or(0, |_| PATIENCE);
            self.clock.events.push(heard.at + waited, Event::Fetch { query: slot, segment, worker });
        }
    }

    /// No other worker gives the segment in time: it is loaded from shared storage, or read there where it can't be kept.
    pub(super) fn fetch(&mut self, slot: u32, segment: u32, worker: u32) {
        self.load(segment, worker);
        match self.workers[worker as usize].has[segment as usize] {
            Has::Nothing => self.pass_through(slot, segment, worker),
            Has::Loading(_) | Has::All => self.access(slot, segment, worker),
        }
    }

    /// What others say whom a worker asks: those of the newest table, which comes to workers with the orders that follow from it, else the home
    /// of the segment, and who loads it, as those ask the same ones first.
    fn ask_others(&mut self, segment: u32, worker: u32) -> Heard {
        if self.tables.is_old && self.cluster.table_age.is_none() {
            self.renew_table();
        }
        let id = |worker: u32| WorkerId(u64::from(worker));
        let line: Vec<(WorkerId, u32)> =
            self.tables.newest.routes[segment as usize].iter().map(|(holder, part)| (id(*holder), *part)).collect();
        let homes = if line.is_empty() { vec![id(self.decide.home(segment))] } else { by_part(&line) };
        let is_other = |other: &WorkerId| *other != id(worker);
        let home = homes.iter().copied().find(is_other);
        let wanting = self.segments.holders[segment as usize].iter().map(|holder| id(*holder));
        let mut asking = Asking::new(homes.into_iter().chain(wanting).filter(is_other), home);
        let mut heard = Heard { at: self.clock.now, giver: None, comes: None };
        while let Some(other) = asking.turn() {
            heard.at += self.cluster.round_trip;
            match self.workers[other.0 as usize].has[segment as usize] {
                Has::All => return Heard { giver: Some(other.0 as u32), comes: None, ..heard },
                Has::Loading(ready) => heard.comes = Some(heard.comes.map_or(ready, |comes| comes.min(ready))),
                Has::Nothing => {}
            }
        }
        heard
    }

    /// Another worker, asked at `asked_at`, sends what the access wants, which takes its time as what a client is sent. The worker that asked
    /// keeps it where there is room, and answers then.
    fn give(&mut self, slot: u32, segment: u32, worker: u32, giver: u32, asked_at: Micros) {
        let (now, query) = (self.clock.now, self.queries.pending[slot as usize].number);
        self.advance(giver, now);
        let begins = self.workers[giver as usize].free_at.max(asked_at);
        let service = self.cluster.service_at(giver as usize, segment, begins);
        let there = self.workers[giver as usize].accept(asked_at, self.cluster.work(segment), service, None);
        self.observer.see(now, Fact::Given { query, segment, worker, from: giver });
        if self.takes(segment, worker) {
            self.bring(segment, worker, there);
            self.clock.events.push(there, Event::Access { query: slot, segment, worker });
        } else {
            self.observer.see(now, Fact::PassedThrough { query, segment, worker });
            self.answered(slot, there);
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_placement::Policy;

    use super::*;
    use crate::cluster::{ClusterSettings, Routing};
    use crate::decide::{Leading, Planner};
    use crate::run::{Run, Unobserved};
    use crate::workload::Query;

    /// When a read is answered that comes to the home of a segment, which is full, while another worker has begun to load it for so long.
    fn answered_at(load: Micros) -> Micros {
        let cluster = ClusterSettings { workers: 2, clients: 1, room: Some(1), load, ..ClusterSettings::default() };
        let run = Run { cluster: &cluster, routing: Routing::TABLE, segments: 2, fresh: vec![cluster.window], seed: 1 };
        let mut planner = Planner::new(Leading::by(Policy::Getafix), &cluster, 3);
        let mut observer = Unobserved;
        let mut engine = Engine::new(&run, &mut planner, &mut observer);
        let home = engine.decide.home(2);
        let other = 1 - home;
        engine.workers[home as usize].replicas = 1;
        engine.workers[other as usize].replicas = 0;
        engine.load(2, other);
        engine.query(Query { at: 0, client: 0, segments: vec![2] });
        engine.until(5_000_000);
        assert_eq!(engine.queries.pending[0].left, 0);
        engine.queries.pending[0].done
    }

    #[test]
    fn what_comes_to_another_worker_soon_is_waited_for_and_else_shared_storage_is_asked() {
        let (round_trip, service, pass_through) = (100, 10_000, 100_000);
        assert_eq!(answered_at(300_000), 300_000 + round_trip + service);
        assert_eq!(answered_at(2_000_000), round_trip + PATIENCE + pass_through);
    }
}
