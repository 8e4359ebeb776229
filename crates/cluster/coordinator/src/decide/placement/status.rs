//! The answer to `forebay status --segments`: the last plans, replicas and routes, and whether counting met its limits.

use std::cmp::Ordering;
use std::time::Duration;

use forebay_placement::largest_remainder;
use forebay_protocol::{PlacementStatus, RoutesDelta, SegmentStatus};
use forebay_types::{ForebayPath, MountId, MountName, RouteKey, WorkerId};

use super::replicas::ReplicaState;
use super::segments::Tracked;
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
        let window = self.popularity.window();
        // There may be half a million, and the state is locked: each is looked at once, where it lies.
        let (mut held, mut loading) = (0, 0);
        let all = self.segments.iter().map(|(key, it)| {
            for (_, replica) in it.replicas.iter() {
                match replica.state {
                    ReplicaState::Held => held += 1,
                    ReplicaState::Loading => loading += 1,
                    ReplicaState::Dropping => {}
                }
            }
            (it.heat.at(window), *key, it)
        });
        let segments = first(all, limit, by_popularity).into_iter().filter_map(|(popularity, key, it)| {
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
                held: of(ReplicaState::Held).map(|(worker, replica)| (worker, replica.held_bytes)).collect(),
                loading: of(ReplicaState::Loading).map(|(worker, _)| worker).collect(),
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

/// The most popular first, then by name.
fn by_popularity(one: &(f64, RouteKey, &Tracked), other: &(f64, RouteKey, &Tracked)) -> Ordering {
    let by_name = || one.2.version.key.cmp(&other.2.version.key).then(one.2.index.cmp(&other.2.index));
    other.0.total_cmp(&one.0).then_with(by_name)
}

/// The first so many of all, in order. Each is compared with the last that would be among them, and few more than once: what is the same to
/// the first part of an order is looked at once for the rest of it, however many there are.
pub(super) fn first<T>(all: impl Iterator<Item = T>, limit: usize, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut first: Vec<T> = Vec::new();
    let mut is_cut = false;
    for it in all {
        if is_cut && order(&it, &first[limit - 1]).is_ge() {
            continue;
        }
        first.push(it);
        if first.len() > limit.saturating_mul(2) {
            // The last of them is at the end of them then.
            first.select_nth_unstable_by(limit.saturating_sub(1), &order);
            first.truncate(limit);
            is_cut = limit > 0;
        }
    }
    first.sort_by(&order);
    first.truncate(limit);
    debug_assert!(first.len() <= limit, "no more than was asked for");
    first
}

fn percent(routed: &[(WorkerId, u32)]) -> Vec<(WorkerId, u32)> {
    let weights: Vec<u64> = routed.iter().map(|(_, weight)| u64::from(*weight)).collect();
    routed.iter().map(|(worker, _)| *worker).zip(largest_remainder(&weights, 100)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_are_those_of_a_sort(all in prop::collection::vec((0u8..4, 0u8..50), 0..200), limit in 0usize..60) {
            let mut sorted = all.clone();
            sorted.sort();
            sorted.truncate(limit);
            prop_assert_eq!(first(all.into_iter(), limit, Ord::cmp), sorted);
        }
    }
}
