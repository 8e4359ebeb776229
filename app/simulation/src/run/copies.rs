//! Segments that workers were told to have, sent by those that have them: each takes its turn among what the giver sends to readers.

use forebay_placement::Load;

use crate::cluster::Has;
use crate::run::{Engine, Observer};

/// Copies that a worker asks for at once, as a live one does.
const AT_ONCE: usize = 4;

impl<O: Observer> Engine<'_, O> {
    /// A worker is told to load a segment.
    pub(super) fn order(&mut self, load: Load) {
        if self.cluster.giving.is_none() {
            return self.load(load.segment, load.worker);
        }
        // To a coordinator it is loading from now on.
        self.measures.replicas += 1;
        self.workers[load.worker as usize].ordered.push_back(load);
        self.begin_copies(load.worker);
    }

    /// A segment has come to a worker: where it was a copy, the next one is asked for.
    pub(super) fn copied(&mut self, segment: u32, worker: u32) {
        let copying = &mut self.workers[worker as usize].copying;
        if let Some(at) = copying.iter().position(|copied| *copied == segment) {
            copying.swap_remove(at);
            self.begin_copies(worker);
        }
    }

    fn begin_copies(&mut self, worker: u32) {
        while self.workers[worker as usize].copying.len() < AT_ONCE {
            let Some(load) = self.workers[worker as usize].ordered.pop_front() else { return };
            // It is counted as it begins, or not at all.
            self.measures.replicas -= 1;
            // A reader may have brought it meanwhile.
            if self.takes(load.segment, worker) {
                self.workers[worker as usize].copying.push(load.segment);
                self.copy(load);
            }
        }
    }

    /// Who is to give it by the plan does, else another one that has it, else shared storage.
    fn copy(&mut self, Load { segment, worker, from }: Load) {
        let holders = from.into_iter().chain(self.segments.holders[segment as usize].iter().copied());
        let has = |holder: &u32| self.workers[*holder as usize].has[segment as usize] == Has::All;
        let giver = holders.filter(|holder| *holder != worker).find(has);
        let (Some(giver), Some(giving)) = (giver, self.cluster.giving) else { return self.load(segment, worker) };
        self.advance(giver, self.clock.now);
        let begins = self.workers[giver as usize].free_at.max(self.clock.now);
        let service = self.cluster.service_at(giver as usize, segment, begins) as f64 * giving;
        let work = self.cluster.work(segment) * giving;
        let there = self.workers[giver as usize].accept(self.clock.now, work, service as u64, None);
        self.bring(segment, worker, there);
    }
}

#[cfg(test)]
mod tests {
    use forebay_placement::Policy;

    use super::*;
    use crate::cluster::{ClusterSettings, Routing};
    use crate::decide::{Leading, Planner};
    use crate::run::{Run, Unobserved};
    use crate::workload::{Micros, Query};

    const SERVICE: Micros = 10_000;

    /// Six segments at one worker of which another one is told to have all, with such a work of giving one.
    fn ordered(giving: Option<f64>, then: impl FnOnce(&mut Engine<'_, Unobserved>)) {
        let held = (0..6).map(|segment| (segment, 0)).collect();
        let cluster = ClusterSettings { workers: 2, clients: 1, giving, held, ..ClusterSettings::default() };
        let run = Run { cluster: &cluster, routing: Routing::TABLE, segments: 6, fresh: Vec::new(), seed: 1 };
        let mut planner = Planner::new(Leading::by(Policy::Getafix), &cluster, 6);
        let mut observer = Unobserved;
        let mut engine = Engine::new(&run, &mut planner, &mut observer);
        (0..6).for_each(|segment| engine.order(Load { segment, worker: 1, from: Some(0) }));
        then(&mut engine);
    }

    fn has(engine: &Engine<'_, Unobserved>) -> usize {
        engine.workers[1].has.iter().filter(|has| **has == Has::All).count()
    }

    #[test]
    fn copies_come_one_after_the_other_and_four_are_asked_for_at_once() {
        ordered(Some(4.0), |engine| {
            assert_eq!((engine.workers[1].copying.len(), engine.workers[1].ordered.len()), (4, 2));
            assert_eq!(engine.measures.replicas, 6 + 6, "what is to be asked for is on its way");
            engine.until(4 * SERVICE);
            assert_eq!((has(engine), engine.workers[1].copying.len(), engine.workers[1].ordered.len()), (1, 4, 1));
            engine.until(6 * 4 * SERVICE);
            assert_eq!((has(engine), engine.workers[1].copying.len(), engine.measures.replicas), (6, 0, 6 + 6));
        });
    }

    #[test]
    fn a_reader_waits_for_copies_that_its_worker_sends_before() {
        let answered = |giving| {
            let mut done = 0;
            ordered(giving, |engine| {
                engine.query(Query { at: 0, client: 0, segments: vec![0] });
                engine.until(1_000_000);
                done = engine.queries.pending[0].done;
            });
            done
        };
        assert_eq!(answered(Some(4.0)), (4 * 4 + 1) * SERVICE);
        assert_eq!(answered(None), SERVICE, "they come over links of their own");
    }
}
