//! The answer to `forebay status --segments`: the last plans, replicas and routes, and whether counting met its limits.

use std::time::Duration;

use forebay_placement::largest_remainder;
use forebay_protocol::{PlacementStatus, RoutesDelta, SegmentStatus};
use forebay_types::{ForebayPath, MountId, MountName, WorkerId};

use super::segments::{ReplicaState, Tracked};
use super::{Outcome, Placement};

/// What there is to say about the plans of before.
#[derive(Debug, Default)]
pub(super) struct Last {
    runs: u64,
    took: Duration,
    replicas: u64,
    lower_bound: u64,
    pub(super) unsatisfied: Vec<String>,
    pub(super) ordered: u64,
    pub(super) dropped: u64,
}

impl Last {
    pub(super) fn made(&mut self, outcome: &Outcome, took: Duration) {
        self.runs += 1;
        (self.took, self.replicas, self.lower_bound) = (took, outcome.replicas, outcome.lower_bound);
    }
}

impl Placement {
    pub(crate) fn routes_version(&self) -> u64 {
        self.routes.version
    }

    pub(crate) fn routes_since(&self, have: u64) -> RoutesDelta {
        self.routes.since(have)
    }

    /// Popularity, replicas and routing of the most popular segments.
    pub(crate) fn status(&self, limit: usize, name: impl Fn(MountId) -> Option<MountName>) -> PlacementStatus {
        let accesses = |it: &Tracked| self.popularity.of(it.segment).accesses;
        // There may be half a million, and the state is locked: each is looked at once.
        let (mut held, mut loading) = (0, 0);
        let mut all = Vec::with_capacity(self.segments.len());
        for (key, it) in &self.segments {
            for replica in it.replicas.values() {
                match replica.state {
                    ReplicaState::Held => held += 1,
                    ReplicaState::Loading => loading += 1,
                    ReplicaState::Dropping => {}
                }
            }
            all.push((accesses(it), *key, it));
        }
        let by_popularity = |one: &(f64, forebay_types::RouteKey, &Tracked), other: &(f64, forebay_types::RouteKey, &Tracked)| {
            other
                .0
                .total_cmp(&one.0)
                .then_with(|| one.2.version.key.cmp(&other.2.version.key))
                .then(one.2.index.cmp(&other.2.index))
        };
        if all.len() > limit && limit > 0 {
            all.select_nth_unstable_by(limit - 1, by_popularity);
        }
        all.truncate(limit);
        all.sort_by(by_popularity);
        let segments = all.into_iter().filter_map(|(popularity, key, it)| {
            let path = ForebayPath::new(name(it.version.mount)?, it.version.key.clone());
            let of = |state: ReplicaState| it.replicas.iter().filter(move |(_, replica)| replica.state == state);
            Some(SegmentStatus {
                path,
                index: it.index,
                segment: it.segment,
                popularity,
                operations: it.counted.operations,
                reads: it.counted.reads,
                bytes_read: it.counted.bytes_read,
                planned: it.planned.clone(),
                held: of(ReplicaState::Held).map(|(worker, replica)| (*worker, replica.held_bytes)).collect(),
                loading: of(ReplicaState::Loading).map(|(worker, _)| *worker).collect(),
                routing: percent(&it.routed),
                in_table: self.routes.names(key),
            })
        });
        PlacementStatus {
            policy: self.settings.policy.map_or_else(|| "off".to_string(), |policy| policy.to_string()),
            window: self.settings.window,
            runs: self.plans.last.runs,
            planning: self.plans.last.took,
            segments_known: self.segments.len() as u64,
            replicas_planned: self.plans.last.replicas,
            lower_bound: self.plans.last.lower_bound,
            replicas_held: held,
            replicas_loading: loading,
            replicas_ordered: self.plans.last.ordered,
            replicas_dropped: self.plans.last.dropped,
            routes: self.routes.len() as u64,
            speeds: self.speeds.measured().map(|(worker, speed)| (worker, speed as u64)).collect(),
            unsatisfied: self.plans.last.unsatisfied.iter().cloned().chain(self.uncounted()).collect(),
            segments: segments.collect(),
        }
    }

    /// What is to say where more segments were read than are counted.
    fn uncounted(&self) -> Option<String> {
        let reads = self.period.left_out;
        (reads > 0).then(|| format!("{reads} reads of the last window were of segments too many to count: the least read ones"))
    }
}

fn percent(routed: &[(WorkerId, u32)]) -> Vec<(WorkerId, u32)> {
    let weights: Vec<u64> = routed.iter().map(|(_, weight)| u64::from(*weight)).collect();
    routed.iter().map(|(worker, _)| *worker).zip(largest_remainder(&weights, 100)).collect()
}
