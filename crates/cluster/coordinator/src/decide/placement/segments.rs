//! What is known of every placed segment: who holds how much of it, and so to whom clients are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_placement::{Heat, folder, holder};
use forebay_types::{Cell, MountId, ObjectVersion, RouteKey, SegmentId, WorkerId, digest, segment_bytes};

use super::Placement;
use super::replicas::{ReplicaState, Replicas};

/// A route that is popular enough to be placed, with the version of its object that is read most.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) version: ObjectVersion,
    pub(super) index: u32,
    pub(super) segment: SegmentId,
    /// Names the folder that it is in: who sums all up by folders need not read each key.
    pub(super) folder: u128,
    /// Where rendezvous hashing puts it; none without workers.
    pub(super) home: Option<WorkerId>,
    /// What is known of its popularity, so that it need not be looked up to look through all.
    pub(super) heat: Heat,
    pub(super) counted: Counted,
    /// Who is to hold it, and the part of the accesses that each is to serve.
    pub(super) planned: Vec<(WorkerId, u32)>,
    /// Where clients read it.
    pub(super) routed: Vec<(WorkerId, u32)>,
    pub(super) replicas: Replicas,
    /// When clients were last sent to workers to which they aren't any more.
    pub(super) left: BTreeMap<WorkerId, Duration>,
}

/// What was counted of a route in the last window.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) operations: u64,
    pub(super) reads: u64,
    pub(super) bytes_read: u64,
    /// Most reads under way at once, as far as workers' peaks may come together.
    pub(super) peak: u32,
    /// Time that workers took to answer.
    pub(super) service: Duration,
}

impl Tracked {
    pub(super) fn bytes(&self) -> u64 {
        if Cell::of_index(self.index).is_some() { self.used_bytes() } else { segment_bytes(self.version.size, self.index) }
    }

    /// The most that any worker holds of it: what is in use of it.
    pub(super) fn used_bytes(&self) -> u64 {
        self.replicas.iter().map(|(_, replica)| replica.held_bytes).max().unwrap_or(0)
    }

    /// Whether a worker has the better part of what is in use.
    pub(super) fn is_ready(&self, worker: WorkerId) -> bool {
        self.replicas.get(worker).is_some_and(|replica| {
            replica.state == ReplicaState::Held && replica.held_bytes > 0 && replica.held_bytes * 2 >= self.used_bytes()
        })
    }

    /// Whether a client may go to a worker with the table that it has.
    pub(super) fn is_named(&self, worker: WorkerId, since: Option<Duration>) -> bool {
        self.routed.iter().any(|(routed, _)| *routed == worker)
            || self.left.get(&worker).is_some_and(|left| since.is_none_or(|since| *left >= since))
    }

    /// What clients should be told: the planned workers that are ready; while some are not, also those of before, who take
    /// over the part of the missing ones (make before break).
    fn wanted_routing(&self, counts: impl Fn(WorkerId) -> bool) -> Vec<(WorkerId, u32)> {
        let home = || self.home.map(|home| (home, 1)).into_iter().collect();
        let planned: Vec<_> = self.planned.iter().copied().filter(|(worker, _)| counts(*worker)).collect();
        let (ready, missing): (Vec<_>, Vec<_>) = planned.into_iter().partition(|(worker, _)| self.is_ready(*worker));
        if missing.is_empty() && !ready.is_empty() {
            return ready;
        }
        let still_there = |worker: &WorkerId| self.replicas.get(*worker).is_some_and(|replica| replica.held_bytes > 0);
        let before = self.routed.iter().map(|(worker, _)| *worker);
        let old: Vec<WorkerId> = before
            .filter(|worker| counts(*worker) && ready.iter().all(|(it, _)| it != worker))
            .filter(|worker| still_there(worker) || Some(*worker) == self.home)
            .collect();
        let part: u64 = missing.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let each = u32::try_from((part / old.len().max(1) as u64).max(1)).unwrap_or(u32::MAX);
        let mut routing = ready;
        routing.extend(old.into_iter().map(|worker| (worker, each)));
        routing.sort_unstable();
        if routing.is_empty() { home() } else { routing }
    }
}

fn folder_of(version: &ObjectVersion) -> u128 {
    digest(&[&version.mount.0.to_le_bytes(), folder(version.key.as_str()).as_bytes()])
}

impl Placement {
    /// The route of an object's segment, known from now on.
    pub(super) fn track(&mut self, version: &ObjectVersion, index: u32) -> RouteKey {
        let key = RouteKey::of(version.mount, &version.key, index);
        if !self.segments.contains_key(&key) {
            let segment = SegmentId::of(version, index);
            let workers: Vec<_> = self.workers.iter().copied().collect();
            let home = holder(key, &workers);
            let tracked = Tracked {
                version: version.clone(),
                index,
                segment,
                folder: folder_of(version),
                home,
                heat: self.popularity.heat(segment),
                counted: Counted::default(),
                planned: Vec::new(),
                routed: home.map(|home| (home, 1)).into_iter().collect(),
                replicas: Replicas::default(),
                left: BTreeMap::new(),
            };
            self.segments.insert(key, tracked);
            self.by_id.insert(segment, key);
            self.check_ids();
        }
        key
    }

    /// From now on the route means this version of its object. What was held of the one before is of no use.
    pub(super) fn replace_version(&mut self, key: RouteKey, version: &ObjectVersion) {
        let Some(tracked) = self.segments.get_mut(&key) else { return };
        let (old, new) = (tracked.segment, SegmentId::of(version, tracked.index));
        if old == new {
            return;
        }
        (tracked.version, tracked.segment) = (version.clone(), new);
        // Two keys with one route are hardly ever found, but nothing rules them out.
        tracked.folder = folder_of(version);
        tracked.replicas.clear();
        self.popularity.start_like(new, old);
        self.popularity.forget(old);
        tracked.heat = self.popularity.heat(new);
        self.by_id.remove(&old);
        self.by_id.insert(new, key);
        self.orders.cancel(old);
        self.check_ids();
    }

    pub(super) fn forget(&mut self, key: RouteKey) {
        if let Some(tracked) = self.segments.remove(&key) {
            self.by_id.remove(&tracked.segment);
            self.orders.cancel(tracked.segment);
            self.routes.set(key, Vec::new());
            self.check_ids();
        }
    }

    /// Looks up anew what is kept of popularity beside each segment, where more than age has changed it: the past counts less than by halving,
    /// or the least popular of too many were forgotten as a window closed. O(segments).
    pub(super) fn look_up_heat(&mut self) {
        for tracked in self.segments.values_mut() {
            tracked.heat = self.popularity.heat(tracked.segment);
        }
    }

    /// What is kept of popularity beside each segment is what would be found. O(segments).
    pub(super) fn check_heat(&self) {
        let window = self.popularity.window();
        let is_so = |tracked: &Tracked| tracked.heat.at(window) == self.popularity.of(tracked.segment).accesses;
        debug_assert!(self.segments.values().all(is_so), "each segment's popularity is kept beside it");
    }

    fn check_ids(&self) {
        assert_eq!(self.by_id.len(), self.segments.len(), "each segment is found by its id");
    }

    /// Brings a route's line of the table up to date.
    pub(super) fn reroute(&mut self, now: Duration, key: RouteKey) {
        let Some(tracked) = self.segments.get_mut(&key) else { return };
        let workers = &self.workers;
        let wanted = tracked.wanted_routing(|worker| workers.contains(&worker));
        if wanted != tracked.routed {
            for (worker, _) in &tracked.routed {
                if wanted.iter().all(|(it, _)| it != worker) {
                    tracked.left.insert(*worker, now);
                }
            }
            tracked.routed = wanted;
        }
        let at_home = matches!(tracked.routed[..], [(only, _)] if Some(only) == tracked.home);
        let line = if at_home || tracked.routed.is_empty() { Vec::new() } else { tracked.routed.clone() };
        self.routes.set(key, line);
    }

    pub(crate) fn joined(&mut self, now: Duration, worker: WorkerId) {
        if !self.workers.insert(worker) {
            return;
        }
        // It is empty, and others may be full.
        self.plans.wanted = true;
        let mut moved = Vec::new();
        for (key, tracked) in &mut self.segments {
            let home = if let Some(home) = tracked.home { holder(*key, &[home, worker]) } else { Some(worker) };
            if home != tracked.home {
                tracked.home = home;
                moved.push(*key);
            }
        }
        moved.into_iter().for_each(|key| self.reroute(now, key));
        self.check_homes();
    }

    /// A worker is gone, and what it held with it.
    pub(crate) fn gone(&mut self, now: Duration, worker: WorkerId) {
        if !self.workers.remove(&worker) {
            return;
        }
        self.period.lost_counts = true;
        // What it held is to be elsewhere before the window ends.
        self.plans.wanted = true;
        self.period.counted.remove(&worker);
        self.orders.forget(worker);
        self.speeds.forget(worker);
        let workers: Vec<_> = self.workers.iter().copied().collect();
        let mut moved = Vec::new();
        for (key, tracked) in &mut self.segments {
            let was_here = tracked.replicas.remove(worker);
            tracked.left.remove(&worker);
            if tracked.home == Some(worker) {
                tracked.home = holder(*key, &workers);
            } else if !was_here && tracked.routed.iter().all(|(routed, _)| *routed != worker) {
                continue;
            }
            moved.push(*key);
        }
        moved.into_iter().for_each(|key| self.reroute(now, key));
        self.check_homes();
    }

    /// Each segment is at home at a worker that counts, as long as there is one. O(segments).
    fn check_homes(&self) {
        let is_there = |home: Option<WorkerId>| home.map_or(self.workers.is_empty(), |home| self.workers.contains(&home));
        debug_assert!(self.segments.values().all(|tracked| is_there(tracked.home)), "a home is a worker that counts");
    }

    /// A worker came back with nothing of what it held.
    pub(crate) fn emptied(&mut self, now: Duration, worker: WorkerId) {
        let held = self.segments.iter_mut().filter_map(|(key, tracked)| tracked.replicas.remove(worker).then_some(*key));
        let held: Vec<_> = held.collect();
        self.orders.forget(worker);
        held.into_iter().for_each(|key| self.reroute(now, key));
    }

    pub(crate) fn retain_mounts(&mut self, stays: impl Fn(MountId) -> bool) {
        let gone = self.segments.iter().filter(|(_, tracked)| !stays(tracked.version.mount));
        let gone: Vec<_> = gone.map(|(key, tracked)| (*key, tracked.segment)).collect();
        for (key, segment) in gone {
            self.popularity.forget(segment);
            self.forget(key);
        }
        self.arrivals.retain(&stays);
        self.datasets.retain(stays);
    }
}

#[cfg(test)]
mod tests {
    use forebay_protocol::{SegmentUse, WindowReport};
    use forebay_types::{Key, VersionTag};
    use proptest::prelude::*;

    use super::super::Checkpoint;
    use super::*;
    use crate::PlacementSettings;

    const WORKERS: [WorkerId; 2] = [WorkerId(1), WorkerId(2)];

    fn version(mount: u64, key: &str, tag: u32) -> ObjectVersion {
        let (key, tag) = (Key::new(key).unwrap(), VersionTag::etag(&tag.to_string()));
        ObjectVersion { mount: MountId(mount), key, tag, size: 1 << 20 }
    }

    fn used(version: ObjectVersion, operations: u32) -> SegmentUse {
        let (reads, service, held_bytes) = (operations.into(), Duration::ZERO, 1 << 20);
        SegmentUse { version, index: 0, operations, reads, bytes: 0, service, peak: 1, held_bytes }
    }

    fn coordinator(epoch: u64) -> Placement {
        Placement::new(PlacementSettings::default(), epoch, 7, &WORKERS)
    }

    /// Workers tell the same of the window that closed last.
    fn tell(placement: &mut Placement, now: Duration, workers: &[WorkerId], uses: &[SegmentUse]) {
        let (window, lasted) = (placement.window(), placement.settings.window);
        for worker in workers {
            placement.report(now, *worker, WindowReport { window, lasted, uses: uses.to_vec(), ..WindowReport::default() });
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_beside_segments_is_what_would_be_found(
            steps in prop::collection::vec((0u8..12, 1u64..3, 0u8..3, 0u32..3, 0u32..5000), 1..60),
        ) {
            let (mut placement, mut now, mut epoch) = (coordinator(1), Duration::ZERO, 1);
            let mut uses = Vec::new();
            for (step, mount, object, tag, operations) in steps {
                let version = version(mount, &format!("t{object}/a"), tag);
                match step {
                    0..=4 => uses.push(used(version, operations)),
                    5 => tell(&mut placement, now, &WORKERS, &std::mem::take(&mut uses)),
                    6 => {
                        tell(&mut placement, now, &WORKERS[..1], &std::mem::take(&mut uses));
                        // The other one is late.
                        now += Duration::from_secs(3);
                    }
                    7 | 8 => {
                        now += placement.settings.window;
                        placement.close_when_over(now);
                    }
                    9 => placement.fresh(now, WORKERS[0], &version, operations.is_multiple_of(2)),
                    10 => placement.retain_mounts(|it| it.0 != mount),
                    _ => {
                        let checkpoint = Checkpoint::of(&placement);
                        epoch += 1;
                        placement = coordinator(epoch);
                        placement.restore(&checkpoint).unwrap();
                    }
                }
                placement.round_when_due(now);
                let window = placement.popularity.window();
                for tracked in placement.segments.values() {
                    prop_assert_eq!(tracked.heat.at(window), placement.popularity.of(tracked.segment).accesses);
                    prop_assert_eq!(tracked.folder, folder_of(&tracked.version));
                }
            }
        }
    }

    #[test]
    fn of_two_keys_with_one_route_the_one_that_is_placed_is_in_its_own_table() {
        let mut placement = coordinator(1);
        let route = placement.track(&version(1, "a/x", 0), 0);
        placement.track(&version(1, "a/y", 0), 0);
        placement.replace_version(route, &version(1, "b/x", 0));
        assert_eq!(placement.filled(10, |_| None).tables_known, 2, "a and b");
    }
}
