//! An access at a worker that has not its segment: as a live one does, it asks those that have it, and then shared storage.

use forebay_placement::{Asking, by_part};
use forebay_types::WorkerId;

use crate::cluster::Has;
use crate::run::events::Event;
use crate::run::{Engine, Fact, Observer};
use crate::workload::Micros;

impl<O: Observer> Engine<'_, O> {
    /// A worker that has not the segment was asked for it: the client's table is of before, or nobody has it yet.
    pub(super) fn miss(&mut self, slot: u32, segment: u32, worker: u32) {
        if !self.holders[segment as usize].is_empty() {
            self.measures.misrouted(self.now);
            // The answer will say that there is a newer table.
            self.poll_again(self.pending[slot as usize].client);
        }
        let (asked, giver) = self.ask_others(segment, worker);
        if let Some(giver) = giver {
            self.give(slot, segment, worker, giver, self.now + asked * self.cluster.round_trip);
        } else if self.takes(segment, worker) {
            self.load(segment, worker);
            self.access(slot, segment, worker);
        } else {
            self.pass_through(slot, segment, worker);
        }
    }

    /// How many others a worker asks, and which of them has the segment. Workers go by the newest table: it comes with the orders that follow
    /// from it. One to which the segment is on its way takes longer than it is waited for.
    fn ask_others(&mut self, segment: u32, worker: u32) -> (u64, Option<u32>) {
        if self.table_is_old && self.cluster.table_age.is_none() {
            self.renew_table();
        }
        let line: Vec<(WorkerId, u32)> =
            self.table.routes[segment as usize].iter().map(|(holder, part)| (WorkerId(u64::from(*holder)), *part)).collect();
        let homes = if line.is_empty() { vec![WorkerId(u64::from(self.decide.home(segment)))] } else { by_part(&line) };
        let others = || homes.iter().copied().filter(|home| home.0 != u64::from(worker));
        let mut asking = Asking::new(others(), others().next());
        let mut asked = 0;
        while let Some(other) = asking.turn() {
            asked += 1;
            if self.workers[other.0 as usize].has[segment as usize] == Has::All {
                return (asked, Some(other.0 as u32));
            }
        }
        (asked, None)
    }

    /// Another worker, asked at `asked_at`, sends what the access wants, which takes its time as what a client is sent. The worker that asked
    /// keeps it where there is room, and answers then.
    fn give(&mut self, slot: u32, segment: u32, worker: u32, giver: u32, asked_at: Micros) {
        let (now, query) = (self.now, self.pending[slot as usize].number);
        self.advance(giver, now);
        let begins = self.workers[giver as usize].free_at.max(asked_at);
        let service = self.cluster.service_at(giver as usize, segment, begins);
        let there = self.workers[giver as usize].accept(asked_at, self.cluster.work(segment), service, None);
        self.observer.see(now, Fact::Given { query, segment, worker, from: giver });
        if self.takes(segment, worker) {
            self.bring(segment, worker, there);
            self.events.push(there, Event::Access { query: slot, segment, worker });
        } else {
            self.observer.see(now, Fact::PassedThrough { query, segment, worker });
            self.answered(slot, there);
        }
    }
}
