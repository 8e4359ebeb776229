//! From the reports of a window to a plan, and from a plan to orders and routes: a replica is made before another goes.

use std::time::Duration;

use forebay_placement::Policy;
use forebay_protocol::{Order, OrderEnd};
use forebay_types::{RouteKey, SegmentId, WorkerId};

use super::replicas::{HELD_BYTES_MAX, Replica, ReplicaState};
use super::segments::Tracked;
use super::{Checkpoint, Outcome, Placement, TRACKED_MAX};

/// A plan that takes longer than so many windows is not waited for.
const PLANNING_WINDOWS: u32 = 10;

/// What there is to do when the reports of a window are in.
pub(crate) struct Round {
    /// To be kept; none between two windows.
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
    pub(crate) plan: bool,
}

impl Placement {
    /// The reports of a window are in: forgets what has faded, keeps the rest, and has a plan made.
    pub(super) fn begin_round(&mut self, now: Duration) -> Round {
        let all_told = self.all_reported() && !std::mem::take(&mut self.period.lost_counts);
        self.period.closing = None;
        self.check_heat();
        // What a lost or late worker hasn't told of is no change of what is read.
        if all_told && self.settings.policy == Some(Policy::Getafix) {
            self.popularity.follow();
        }
        self.look_up_heat();
        self.forget_faded();
        let checkpoint = Some(Box::new(Checkpoint::of(self)));
        let late = self.plans.under_way.is_some_and(|since| now < since + self.settings.window * PLANNING_WINDOWS);
        let plan = self.can_plan() && !late;
        if plan {
            self.begin_plan(now);
        }
        Round { checkpoint, plan }
    }

    pub(super) fn can_plan(&self) -> bool {
        self.settings.policy.is_some() && self.workers.len() >= 2 && !self.segments.is_empty()
    }

    pub(super) fn begin_plan(&mut self, now: Duration) {
        (self.plans.under_way, self.plans.began, self.plans.wanted) = (Some(now), now, false);
    }

    /// What nobody reads any more, and what is too much. A route that the table names stays as long as its replicas do: to
    /// send its reads home again would make them cold.
    fn forget_faded(&mut self) {
        let window = self.popularity.window();
        let faded = |tracked: &Tracked| tracked.heat.at(window) == 0.0;
        let forgotten = self.segments.iter().filter(|(key, tracked)| faded(tracked) && !self.routes.names(**key));
        let forgotten: Vec<RouteKey> = forgotten.map(|(key, _)| *key).collect();
        forgotten.into_iter().for_each(|key| self.forget(key));
        if self.segments.len() > TRACKED_MAX {
            let mut all: Vec<(f64, RouteKey)> = self.segments.iter().map(|(key, it)| (it.heat.at(window), *key)).collect();
            all.select_nth_unstable_by(TRACKED_MAX, |one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
            all.drain(..TRACKED_MAX);
            all.into_iter().for_each(|(_, key)| self.forget(key));
        }
        assert!(self.segments.len() <= TRACKED_MAX, "{} segments are tracked", self.segments.len());
    }

    /// The plan is made: orders what it takes, and tells clients what is so already.
    pub(crate) fn take(&mut self, now: Duration, outcome: Outcome, took: Duration) {
        self.plans.under_way = None;
        self.plans.last.made(&outcome, took);
        self.plans.last.unsatisfied =
            outcome.unsatisfied.iter().take(20).map(|(segment, why)| self.complaint(*segment, why)).collect();
        let since = now.saturating_sub(self.named());
        let mut touched = Vec::with_capacity(outcome.planned.len());
        for (segment, planned) in outcome.planned {
            // What was overwritten or forgotten since is planned the next time.
            let Some(key) = self.by_id.get(&segment) else { continue };
            let Some(tracked) = self.segments.get_mut(key) else { continue };
            tracked.planned = planned;
            tracked.left.retain(|_, left| *left >= since);
            touched.push(*key);
        }
        for (segment, worker) in outcome.delete {
            self.order_drop(segment, worker, Some(since));
        }
        // Room first.
        for (segment, worker) in outcome.clear {
            touched.extend(self.order_drop(segment, worker, None));
        }
        for (segment, worker, from) in outcome.load {
            self.order_hold(segment, worker, from);
        }
        touched.into_iter().for_each(|key| self.reroute(now, key));
    }

    /// Has a worker drop a segment that isn't planned there, unless clients may have been sent to it since then; without a
    /// time they are sent elsewhere from now on. Gives the route when that was ordered.
    fn order_drop(&mut self, segment: SegmentId, worker: WorkerId, since: Option<Duration>) -> Option<RouteKey> {
        let key = self.by_id.get(&segment).copied()?;
        let tracked = self.segments.get_mut(&key)?;
        let named = since.is_some_and(|since| tracked.is_named(worker, Some(since)));
        if named || tracked.planned.iter().any(|(it, _)| *it == worker) {
            return None;
        }
        let replica = tracked.replicas.get_mut(worker)?;
        if !self.orders.give(worker, segment, Order::Drop { segment }) {
            return None;
        }
        replica.state = ReplicaState::Dropping;
        if since.is_none() {
            replica.held_bytes = 0;
        }
        self.plans.last.dropped += 1;
        Some(key)
    }

    pub(super) fn order_hold(&mut self, segment: SegmentId, worker: WorkerId, first: Option<WorkerId>) {
        let Some(tracked) = self.by_id.get(&segment).and_then(|key| self.segments.get_mut(key)) else { return };
        if !self.workers.contains(&worker) {
            return;
        }
        let mut others: Vec<_> = tracked.replicas.iter().filter(|(other, it)| *other != worker && it.held_bytes > 0).collect();
        others.sort_by_key(|(other, it)| (Some(*other) != first, std::cmp::Reverse(it.held_bytes)));
        let from = others.into_iter().map(|(other, _)| other).take(3).collect();
        let order = Order::Hold { version: tracked.version.clone(), index: tracked.index, from };
        if self.orders.give(worker, segment, order) {
            let held_bytes = tracked.replicas.get(worker).map_or(0, |replica| replica.held_bytes);
            tracked.replicas.insert(worker, Replica { state: ReplicaState::Loading, held_bytes });
            self.plans.last.ordered += 1;
        }
    }

    /// A worker says how orders ended.
    pub(crate) fn orders_ended(&mut self, now: Duration, worker: WorkerId, ended: Vec<OrderEnd>) {
        for end in ended {
            if !self.orders.ended(worker, end.segment, end.hold) {
                continue;
            }
            let Some(key) = self.by_id.get(&end.segment).copied() else { continue };
            let Some(tracked) = self.segments.get_mut(&key) else { continue };
            let told = end.held_bytes.min(HELD_BYTES_MAX);
            if told > 0 {
                // What it has is what it could get; what is missing comes with the first read.
                let held_bytes = if end.hold { told.max(tracked.used_bytes() / 2 + 1) } else { told };
                tracked.replicas.insert(worker, Replica { state: ReplicaState::Held, held_bytes });
            } else {
                tracked.replicas.remove(worker);
            }
            self.reroute(now, key);
        }
    }

    /// Whether workers have orders which they don't know of.
    pub(crate) fn has_ordered(&self) -> bool {
        !self.orders.new.is_empty()
    }

    pub(crate) fn ordered(&mut self) -> Vec<WorkerId> {
        self.orders.take_new()
    }

    /// What a worker is told with its heartbeat.
    pub(crate) fn orders_of(&self, worker: WorkerId) -> Vec<Order> {
        self.orders.first(worker)
    }

    fn complaint(&self, segment: SegmentId, why: &str) -> String {
        match self.by_id.get(&segment).and_then(|key| self.segments.get(key)) {
            Some(it) => format!("{}, segment {}: {why}", it.version.key, it.index),
            None => why.to_string(),
        }
    }
}
