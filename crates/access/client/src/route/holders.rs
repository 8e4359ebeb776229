//! Who is asked for bytes, in which order.

use std::time::Duration;

use forebay_placement::{Candidate, Pick, holder, pick, two_choices};
use forebay_protocol::{DataReply, DataRequest};
use forebay_types::{RouteKey, WorkerId};

use super::Routes;
use super::known::Known;
use crate::connect::ask;

/// Reads from so many bytes on take much longer than a question.
const ASK_FROM_BYTES: u64 = 256 << 10;
/// What was heard within this needn't be asked.
const HEARD_WITHIN_US: u64 = 500;
/// How long a question may take; who is slower than that isn't the one to read from.
const ANSWER_WITHIN: Duration = Duration::from_millis(2);

/// Those among whom a read has the choice where the routing table names holders.
struct Choice {
    /// The holders that are there; those that failed a moment ago only where all did.
    well: Vec<(WorkerId, u32)>,
    /// Of these the ones of this host, where there are any, else all.
    among: Vec<(WorkerId, u32)>,
    /// The same, with what is known of their queues.
    candidates: Vec<Candidate>,
    is_beside: bool,
    how: Pick,
}

impl Choice {
    fn pick(&self, random: u64) -> Option<WorkerId> {
        pick(self.how, &self.candidates, random).map(|at| self.among[at].0)
    }
}

impl Routes {
    /// The workers to ask for a segment's bytes, best first.
    ///
    /// Where the routing table names holders: one of this host, whose tier can be read in place; else the one with the
    /// shorter queue of two that are drawn by the table's weights; then the other holders. When the table names workers that
    /// are gone, the view disagrees with it: any holder at random, and the coordinator is asked soon. Where the table says
    /// nothing, and behind all holders: the order of rendezvous hashing. Workers that failed a moment ago come last.
    ///
    /// Before a long read both of the two are asked for their queues, unless they were heard of just now.
    pub(crate) async fn holders(&self, route: RouteKey, known: &Known, bytes: u64) -> Vec<WorkerId> {
        let order = self.failures.order(route, &known.workers);
        let Some(choice) = self.choice(route, known) else { return order };
        let random: u64 = forebay_runtime::random();
        let asked = match two_choices(&choice.candidates, random) {
            // One that was never heard of is read from first, which connects to it.
            Some((one, other))
                if choice.how == Pick::TwoChoices
                    && bytes >= ASK_FROM_BYTES
                    && !choice.is_beside
                    && [one, other].iter().all(|at| choice.candidates[*at].queue.is_some()) =>
            {
                self.shorter_queue(known, choice.among[one].0, choice.among[other].0).await
            }
            _ => None,
        };
        let Some(first) = asked.or_else(|| choice.pick(random)) else { return order };
        let mut asked = vec![first];
        asked.extend(choice.well.iter().map(|(worker, _)| *worker).filter(|worker| *worker != first));
        let rest = order.into_iter().filter(|worker| !asked.contains(worker)).collect::<Vec<_>>();
        asked.extend(rest);
        asked
    }

    /// The choice that the routing table leaves; none where hashing says who is asked.
    fn choice(&self, route: RouteKey, known: &Known) -> Option<Choice> {
        let line = known.routes.holders(route)?;
        let there: Vec<(WorkerId, u32)> = line.iter().copied().filter(|(worker, _)| known.worker(*worker).is_some()).collect();
        let disagrees = there.len() < line.len();
        if disagrees {
            self.view.surprised();
        }
        let well: Vec<_> = there.iter().copied().filter(|(worker, _)| !self.failures.is_shunned(*worker)).collect();
        let well = if well.is_empty() { there } else { well };
        let is_near = |worker: WorkerId| known.worker(worker).is_some_and(|info| self.connections.is_beside(info));
        let near: Vec<_> = well.iter().copied().filter(|(worker, _)| is_near(*worker)).collect();
        let is_beside = !near.is_empty();
        let among = if is_beside { near } else { well.clone() };
        let queues = self.queues.of(among.iter().map(|(worker, _)| *worker));
        let candidates = among.iter().zip(queues).map(|((_, weight), queue)| Candidate { weight: *weight, queue }).collect();
        let how = if disagrees { Pick::Random } else { Pick::TwoChoices };
        Some(Choice { well, among, candidates, is_beside, how })
    }

    /// Where a segment is brought for a plan, whose reads ask there from then on: at the worker that a read would be sent to now.
    pub(crate) fn destination(&self, route: RouteKey, known: &Known) -> Option<WorkerId> {
        let chosen = self.choice(route, known).and_then(|choice| choice.pick(forebay_runtime::random()));
        chosen.or_else(|| self.failures.order(route, &known.workers).first().copied())
    }

    /// The workers that a segment is read from: those that the routing table names and that are there, else the first by hashing.
    pub(crate) fn routed(&self, route: RouteKey, known: &Known) -> Vec<WorkerId> {
        let line = known.routes.holders(route).into_iter().flat_map(|line| line.iter());
        let there: Vec<_> = line.map(|(worker, _)| *worker).filter(|worker| known.worker(*worker).is_some()).collect();
        if there.is_empty() { holder(route, &known.workers).into_iter().collect() } else { there }
    }

    /// Whom to ask before all others for what is of use in place only: a worker of this host, the same one each time. None where the
    /// routing table names one of this host, or there is none.
    pub(crate) fn beside(&self, route: RouteKey) -> Option<WorkerId> {
        let known = self.view.known_arc();
        let is_beside = |worker: WorkerId| known.worker(worker).is_some_and(|info| self.connections.is_beside(info));
        if known.routes.holders(route).is_some_and(|line| line.iter().any(|(worker, _)| is_beside(*worker))) {
            return None;
        }
        self.failures.order(route, &known.workers).into_iter().find(|worker| is_beside(*worker))
    }

    /// Whether any worker's tier can be read in place from here.
    pub(crate) fn is_any_beside(&self) -> bool {
        self.view.known_arc().all().any(|info| self.connections.is_beside(info))
    }

    /// The one of two workers with fewer reads under way, by asking both at once; none when it isn't known any better than
    /// before. When only one answers in time, that one.
    async fn shorter_queue(&self, known: &Known, one: WorkerId, other: WorkerId) -> Option<WorkerId> {
        if [one, other].iter().all(|worker| self.queues.is_fresh(*worker, HEARD_WITHIN_US)) {
            return None;
        }
        let stands = |worker| async move {
            let asking = async {
                let link = self.connections.link(known.worker(worker)?).await.ok()?;
                match ask(&link, &DataRequest::Queue, ANSWER_WITHIN).await {
                    Ok(DataReply::Queue(hint)) => Some(hint),
                    _ => None,
                }
            };
            let hint = forebay_runtime::time::timeout(ANSWER_WITHIN, asking).await.ok()??;
            self.queues.told(worker, hint);
            self.view.heard_of(hint.routes);
            Some(())
        };
        match tokio::join!(stands(one), stands(other)) {
            (Some(()), Some(())) => {
                let queues = self.queues.of([one, other].into_iter());
                Some(if queues[1] < queues[0] { other } else { one })
            }
            (Some(()), None) => Some(one),
            (None, Some(())) => Some(other),
            (None, None) => None,
        }
    }

    /// Where a segment is brought for readers that come later: always the same of its holders.
    pub(crate) fn main_holder(&self, route: RouteKey, known: &Known) -> Option<WorkerId> {
        let line = known.routes.holders(route);
        let well = line.into_iter().flat_map(|line| line.iter());
        let well = well.filter(|(worker, _)| known.worker(*worker).is_some() && !self.failures.is_shunned(*worker));
        let heaviest = well.max_by_key(|(worker, weight)| (*weight, *worker)).map(|(worker, _)| *worker);
        heaviest.or_else(|| self.failures.order(route, &known.workers).first().copied())
    }
}
