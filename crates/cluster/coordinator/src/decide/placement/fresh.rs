//! Objects that nobody has read yet get the popularity of what came before them in their dataset, and a first replica.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use forebay_placement::{holder, period_end};
use forebay_types::{MountId, ObjectVersion, RouteKey, SegmentId, WorkerId, check_object_bytes, segment_count};

use super::Placement;

/// Segments of one new object that are placed before anyone has read them.
const SEGMENTS_MAX: u32 = 256;
/// Datasets whose newest object is remembered.
const DATASETS_MAX: usize = 100_000;
/// Objects whose coming is remembered; of more, the half that came first is forgotten.
const HEARD_MAX: usize = 100_000;

/// What is remembered of objects that came.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// When those came whose names tell no date, of mounts that ask for the age of what they have.
    heard: BTreeMap<RouteKey, Duration>,
    /// The newest one of each dataset, by mount and root: its first segment.
    newest: HashMap<(MountId, String), SegmentId>,
}

impl Arrivals {
    /// An object came.
    fn note(&mut self, now: Duration, version: &ObjectVersion) {
        if self.heard.len() >= HEARD_MAX {
            let mut times: Vec<Duration> = self.heard.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(HEARD_MAX / 2);
            let middle = *middle;
            self.heard.retain(|_, at| *at > middle);
        }
        self.heard.insert(RouteKey::of(version.mount, &version.key, 0), now);
        assert!(self.heard.len() <= HEARD_MAX, "what is remembered of objects is bounded");
    }

    /// When an object came, as far as that is remembered.
    pub(super) fn came(&self, version: &ObjectVersion) -> Option<Duration> {
        self.heard.get(&RouteKey::of(version.mount, &version.key, 0)).copied()
    }

    /// An object is the newest one of its dataset.
    fn set_newest(&mut self, dataset: (MountId, String), version: &ObjectVersion) {
        if self.newest.len() < DATASETS_MAX || self.newest.contains_key(&dataset) {
            self.newest.insert(dataset, SegmentId::of(version, 0));
        }
        assert!(self.newest.len() <= DATASETS_MAX, "{} datasets are remembered", self.newest.len());
    }

    /// Forgets the datasets of other mounts.
    pub(super) fn retain(&mut self, stays: impl Fn(MountId) -> bool) {
        self.newest.retain(|(mount, _), _| stays(*mount));
    }
}

impl Placement {
    /// An object was written or discovered: it starts with the popularity of the one that was the newest of its dataset,
    /// and goes to a random worker at once where its mount is `eager` (Getafix, section 4.2). `at` may have its bytes.
    pub(crate) fn fresh(&mut self, now: Duration, at: WorkerId, version: &ObjectVersion, eager: bool) {
        let count = segment_count(version.size).min(SEGMENTS_MAX);
        if count == 0 || check_object_bytes(version.size).is_err() {
            return;
        }
        let root = self.datasets.of(version.mount, version.key.as_str());
        let dataset = (version.mount, root.to_string());
        let newest = self.arrivals.newest.get(&dataset).copied();
        for index in 0..count {
            let route = RouteKey::of(version.mount, &version.key, index);
            let segment = SegmentId::of(version, index);
            if self.segments.contains_key(&route) {
                self.replace_version(route, version);
            } else if let Some(newest) = newest {
                self.plans.wanted |= self.popularity.start_like(segment, newest);
            }
            if !eager && self.popularity.of(segment).accesses == 0.0 {
                continue;
            }
            let key = self.track(version, index);
            if eager && self.settings.policy.is_some() && self.segments[&key].planned.is_empty() {
                self.place_at_random(now, key, segment, at);
            }
        }
        self.arrivals.set_newest(dataset, version);
    }

    /// An object came, of a mount that asks for the age of what it has. What its names say of that goes before.
    pub(crate) fn heard_of(&mut self, now: Duration, version: &ObjectVersion) {
        if period_end(version.key.as_str()).is_none() {
            self.arrivals.note(now, version);
        }
    }

    /// Objects whose coming is remembered, for tests.
    #[cfg(test)]
    pub(crate) fn heard_count(&self) -> usize {
        self.arrivals.heard.len()
    }

    fn place_at_random(&mut self, now: Duration, key: RouteKey, segment: SegmentId, at: WorkerId) {
        let workers: Vec<_> = self.workers.iter().copied().collect();
        // Another hash than that of rendezvous hashing: the worker is any, and the same whoever computes it.
        let random = RouteKey((segment.0 >> 64) as u64 ^ self.plans.seed);
        let Some(chosen) = holder(random, &workers) else { return };
        self.segments.get_mut(&key).expect("it is tracked").planned = vec![(chosen, 1)];
        self.order_hold(segment, chosen, None);
        // The writer may have the bytes in its tiers still.
        self.orders.prefer(chosen, segment, at);
        self.reroute(now, key);
    }
}
