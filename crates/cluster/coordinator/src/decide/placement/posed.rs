//! What a plan is to be made of: the state as numbers, once for what lies in the tiers as it is and once for decoded columns, which
//! have a room of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forebay_placement::{SegmentDemand, Usage, WorkerRoom, period_end};
use forebay_protocol::{WorkerInfo, WorkerReport};
use forebay_types::{Cell, Mount, MountId, WorkerId, Young};

use super::problem::Age;
use super::replicas::ReplicaState;
use super::rooms::{Room, held, room};
use super::segments::Tracked;
use super::{Placement, Problem};

/// Replicas of what is pinned, at least.
const KEPT_REPLICAS: u32 = 2;

impl Placement {
    pub(crate) fn problem(
        &self,
        now: Duration,
        infos: &BTreeMap<WorkerId, (&WorkerInfo, &WorkerReport)>,
        mount: impl Fn(MountId) -> Option<Mount>,
        pinned: impl Fn(MountId, &str) -> bool,
    ) -> Problem {
        let ids: Vec<WorkerId> = self.workers.iter().copied().collect();
        let kept_for = |it: &Tracked| pinned(it.version.mount, it.version.key.as_str());
        let (mine, share) = (held(self.segments.values(), kept_for), self.settings.storage_share);
        let of = |worker| room(infos.get(worker).copied(), share, mine.get(worker).copied().unwrap_or_default());
        let rooms: Vec<Room> = ids.iter().map(of).collect();
        let place = |worker: &WorkerId| match infos.get(worker) {
            Some((info, _)) => (info.host.0.clone(), info.location.clone()),
            None => (worker.to_string(), worker.to_string()),
        };
        let mounts: BTreeSet<MountId> = self.segments.values().map(|tracked| tracked.version.mount).collect();
        let asked = |mount: Mount| {
            let young = mount.options.young.map_or(0, |young| young.replicas);
            mount.options.replicas.unwrap_or(KEPT_REPLICAS).max(young)
        };
        let wanted = mounts.into_iter().filter_map(&mount).map(asked).max();
        let domains = domains(&ids.iter().map(place).collect::<Vec<_>>(), wanted.unwrap_or(0));
        let shares = self.speeds.shares(&ids);
        let blank = |part: fn(&Room) -> (u64, forebay_placement::Storage)| {
            let workers = shares.iter().zip(&domains).zip(&rooms).map(|((share, (host, domain)), room)| WorkerRoom {
                capacity: None,
                speed: *share,
                bytes: part(room).0,
                host: *host,
                domain: *domain,
            });
            Problem {
                settings: self.settings.plan(ids.len(), self.plans.seed),
                ids: Vec::new(),
                segments: Vec::new(),
                workers: workers.collect(),
                storage: rooms.iter().map(|room| part(room).1).collect(),
                storage_share: self.settings.storage_share,
                held: Vec::new(),
                loading: Vec::new(),
                named: Vec::new(),
                ages: Vec::new(),
                worker_ids: ids.clone(),
                decoded: None,
            }
        };
        let mut raw = blank(|room| room.raw);
        let mut decoded = blank(|room| room.decoded);
        // In the order of names: neighbours are read by the same queries.
        let mut order: Vec<_> = self.segments.values().collect();
        order.sort_by(|one, other| {
            let name = |it: &Tracked| (it.version.mount, it.version.key.clone(), it.index);
            name(one).cmp(&name(other))
        });
        let mut datasets = BTreeMap::new();
        let since = now.saturating_sub(self.named());
        for tracked in order {
            let usage = self.popularity.of(tracked.segment);
            let options = mount(tracked.version.mount).map(|mount| mount.options).unwrap_or_default();
            let least = options.replicas.unwrap_or(if kept_for(tracked) { KEPT_REPLICAS } else { 1 });
            let (least, age) = self.young(now, tracked, least, options.young);
            let next = datasets.len() as u32;
            let root = self.datasets.of(tracked.version.mount, tracked.version.key.as_str());
            let dataset = *datasets.entry((tracked.version.mount, root)).or_insert(next);
            let part = if Cell::of_index(tracked.index).is_some() { &mut decoded } else { &mut raw };
            let demand = self.demand(tracked, usage, least, dataset);
            part.add(tracked, demand, since, age);
        }
        raw.decoded = (!decoded.ids.is_empty()).then(|| Box::new(decoded));
        raw
    }

    /// The least replicas with a mount's rule for what is young; and how it stands with that where the time of the day decides, which the plan
    /// is told when it is made.
    fn young(&self, now: Duration, tracked: &Tracked, least: u32, rule: Option<Young>) -> (u32, Option<Age>) {
        let Some(Young { replicas, lasts }) = rule.filter(|young| young.replicas > least) else { return (least, None) };
        let version = &tracked.version;
        if let Some(end) = period_end(version.key.as_str()) {
            let until = end.saturating_add(i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX));
            let replicas = replicas.min(self.workers.len() as u32);
            return (least, Some(Age { until, replicas }));
        }
        let heard = self.arrivals.came(version);
        let is_young = heard.is_some_and(|heard| now.saturating_sub(heard) < lasts);
        (if is_young { replicas } else { least }, None)
    }

    fn demand(&self, tracked: &Tracked, usage: Usage, least: u32, dataset: u32) -> SegmentDemand {
        let bytes = match tracked.used_bytes() {
            0 => tracked.bytes(),
            used => used,
        };
        SegmentDemand {
            count: self.settings.weigh().of(usage),
            bytes,
            minimum: if usage.accesses > 0.0 { least.min(self.workers.len() as u32) } else { 0 },
            dataset,
            order: 0,
            concurrent_peak: f64::from(tracked.counted.peak),
            concurrent_mean: tracked.counted.service.as_secs_f64() / self.settings.window.as_secs_f64(),
        }
    }
}

impl Problem {
    /// One segment more, behind all others.
    fn add(&mut self, tracked: &Tracked, demand: SegmentDemand, since: Duration, age: Option<Age>) {
        let place = self.ids.len() as u32;
        // What nobody reads has no replicas that it needs.
        self.ages.extend(age.filter(|_| demand.minimum > 0).map(|age| (place, age)));
        self.ids.push(tracked.segment);
        self.segments.push(SegmentDemand { order: place, ..demand });
        let number = |worker: &WorkerId| self.worker_ids.binary_search(worker).ok().map(|at| at as u32);
        let ready = tracked.replicas.iter().filter(|(worker, _)| tracked.is_ready(*worker)).count();
        for (worker, replica) in tracked.replicas.iter() {
            let Some(number) = number(&worker) else { continue };
            match replica.state {
                ReplicaState::Held if tracked.is_ready(worker) => self.held.push((place, number)),
                ReplicaState::Loading => self.loading.push((place, number)),
                _ => {}
            }
        }
        if ready == 0
            && let Some(home) = tracked.home.and_then(|home| number(&home))
        {
            // Nobody is known to have it: where it is read it comes by itself.
            self.held.push((place, home));
        }
        let left = tracked.left.iter().filter(|(_, left)| **left >= since).map(|(worker, _)| worker);
        let named = tracked.routed.iter().map(|(worker, _)| worker).chain(left);
        self.named.extend(named.filter_map(number).map(|at| (place, at)));
    }
}

/// The host of each worker, by number, and what fails together, by host and location: those of one location, and those of one host. Where
/// one such part is so large that the others would take more than twice their share of `wanted` replicas, the most that a mount asks for,
/// it is the host alone.
fn domains(places: &[(String, String)], wanted: u32) -> Vec<(u32, u32)> {
    let (mut hosts, mut locations) = (BTreeMap::new(), BTreeMap::new());
    let mut of_host = Vec::with_capacity(places.len());
    let mut parents: Vec<usize> = (0..places.len()).collect();
    for (at, (host, location)) in places.iter().enumerate() {
        let beside = *hosts.entry(host.as_str()).or_insert(at);
        join(&mut parents, beside, at);
        of_host.push(beside as u32);
        let near = *locations.entry(location.as_str()).or_insert(at);
        join(&mut parents, near, at);
    }
    let of_both: Vec<u32> = (0..places.len()).map(|at| root(&mut parents, at) as u32).collect();
    let mut parts = BTreeMap::new();
    of_both.iter().for_each(|part| *parts.entry(*part).or_insert(0) += 1);
    // One replica at most of each segment is in the largest.
    let (replicas, largest) = (parts.len().min(wanted as usize), parts.values().max().copied().unwrap_or(0));
    let is_even = replicas.saturating_sub(1) * places.len() <= 2 * replicas * (places.len() - largest);
    let domains = if is_even { of_both } else { of_host.clone() };
    let is_one = |(host, domain): (&u32, &u32)| domains[*host as usize] == *domain;
    assert!(of_host.iter().zip(&domains).all(is_one), "a host is in one domain");
    of_host.into_iter().zip(domains).collect()
}

/// The first of those that are joined with this one.
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        let above = parents[parents[at]];
        parents[at] = above;
        at = above;
    }
    at
}

fn join(parents: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(parents, one), root(parents, other));
    parents[one.max(other)] = one.min(other);
}

#[cfg(test)]
mod tests {
    use super::domains;

    #[test]
    fn workers_of_a_location_or_a_host_fail_together() {
        let of = |places: &[(&str, &str)], wanted| {
            domains(&places.iter().map(|(host, location)| (host.to_string(), location.to_string())).collect::<Vec<_>>(), wanted)
        };
        let racks = [("a", "rack1"), ("b", "rack1"), ("c", "rack2"), ("d", "rack2"), ("e", "rack3")];
        let in_racks = [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4)];
        assert_eq!(of(&racks, 3), in_racks);
        assert_eq!(of(&racks, 4), in_racks, "there are too few racks, and hosts enough for the fourth");
        let both = of(&[("a", "x"), ("b", "y"), ("a", "y"), ("c", "z")], 2);
        assert_eq!(both, [(0, 0), (1, 0), (0, 0), (3, 3)], "a host is in no two domains");
        assert_eq!(of(&[("a", "x"), ("a", "y")], 2), [(0, 0), (0, 0)]);
        assert_eq!(of(&[("a", "here"), ("b", "here")], 2), [(0, 0), (1, 0)], "all say the same");
        let kinds = [("a", "cpu"), ("b", "cpu"), ("c", "cpu"), ("d", "cpu"), ("e", "gpu")];
        assert_eq!(of(&kinds, 2), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)], "one is not to have a copy of everything");
        assert_eq!(of(&kinds[1..], 2), [(0, 0), (1, 0), (2, 0), (3, 3)], "twice its share it may");
        assert!(of(&[], 2).is_empty());
    }
}
