use forebay_placement::{Candidate, Pick, pick};
use forebay_protocol::Hint;
use forebay_types::{RouteKey, WorkerId};

use crate::core::Core;
use crate::view::Known;

impl Core {
    /// The workers to ask for a segment's bytes, best first.
    ///
    /// Where the routing table names holders: one of this host, whose tier can be read in place; else the one with the
    /// shorter queue of two that are drawn by the table's weights; then the other holders. When the table names workers that
    /// are gone, the view disagrees with it: any holder at random, and the coordinator is asked soon. Where the table says
    /// nothing, and behind all holders: the order of rendezvous hashing. Workers that failed a moment ago come last.
    pub(crate) fn holders(&self, route: RouteKey, known: &Known) -> Vec<WorkerId> {
        let order = self.failures.order(route, &known.workers);
        let Some(line) = known.routes.holders(route) else { return order };
        let there: Vec<(WorkerId, u32)> = line.iter().copied().filter(|(worker, _)| known.worker(*worker).is_some()).collect();
        let disagrees = there.len() < line.len();
        if disagrees {
            self.view.surprised();
        }
        let well: Vec<_> = there.iter().copied().filter(|(worker, _)| !self.failures.is_shunned(*worker)).collect();
        let well = if well.is_empty() { &there } else { &well };
        let is_beside = |worker: WorkerId| known.worker(worker).is_some_and(|info| self.connections.is_beside(info));
        let near: Vec<_> = well.iter().copied().filter(|(worker, _)| is_beside(*worker)).collect();
        let choice = if near.is_empty() { well } else { &near };
        let queues = self.queues.of(choice.iter().map(|(worker, _)| *worker));
        let candidates: Vec<_> =
            choice.iter().zip(queues).map(|((_, weight), queue)| Candidate { weight: *weight, queue }).collect();
        let how = if disagrees { Pick::Random } else { Pick::TwoChoices };
        let Some(first) = pick(how, &candidates, rand::random()).map(|at| choice[at].0) else { return order };
        let mut asked = vec![first];
        asked.extend(well.iter().map(|(worker, _)| *worker).filter(|worker| *worker != first));
        let rest = order.into_iter().filter(|worker| !asked.contains(worker)).collect::<Vec<_>>();
        asked.extend(rest);
        asked
    }

    /// Where a segment is brought for readers that come later: always the same of its holders.
    pub(crate) fn main_holder(&self, route: RouteKey, known: &Known) -> Option<WorkerId> {
        let line = known.routes.holders(route);
        let well = line.into_iter().flat_map(|line| line.iter());
        let well = well.filter(|(worker, _)| known.worker(*worker).is_some() && !self.failures.is_shunned(*worker));
        let heaviest = well.max_by_key(|(worker, weight)| (*weight, *worker)).map(|(worker, _)| *worker);
        heaviest.or_else(|| self.failures.order(route, &known.workers).first().copied())
    }

    /// A worker said how it stands.
    pub(crate) fn heard(&self, worker: WorkerId, hint: Hint) {
        self.queues.heard(worker, hint);
        self.view.heard_of(hint.routes);
    }
}
