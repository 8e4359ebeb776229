//! How each mount's bound is split among the workers, by what each has use for, and who asks again at once after a new split.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forebay_protocol::{AheadNeed, MountShare};
use forebay_scheduling::{Ahead, Need, share_bound_by_need};
use forebay_types::{Mount, MountId, PlanTurn, WorkerId};

use super::State;
use super::ledger::{Holder, Wanted};

/// Least burst of one holder: a few packets.
pub(super) const BURST_BYTES_MIN: u64 = 64 << 10;
/// This part of the bound is kept for clients while one of them has a budget.
pub(super) const CLIENTS_PART: u64 = 20;
/// What matters enough to be put right before the next heartbeats: this part of a bound. No more workers than this can be
/// so far from their parts.
const MUCH: u64 = 32;

impl State {
    /// A worker says what each mount with a bound would give it, or its background work. Such that differs much has the bounds split anew.
    pub(super) fn demand_moved(&mut self, before: &BTreeMap<MountId, u64>, now: &BTreeMap<MountId, u64>) {
        let of =
            |demands: &BTreeMap<MountId, u64>, mount: &Mount, bound: u64| demands.get(&mount.id).copied().unwrap_or(0).min(bound);
        let moved = self
            .catalogue
            .mounts
            .values()
            .filter_map(|mount| Some((mount, bound(mount)?)))
            .any(|(mount, bound)| of(before, mount, bound).abs_diff(of(now, mount, bound)) > bound / MUCH);
        self.targets.moved |= moved;
    }

    /// A worker says what it would take to bring what plans will read. Another first plan has the bounds split anew, too: it may have its turn
    /// before those of other workers.
    pub(super) fn plans_moved(&mut self, before: &ByPlan, now: &ByPlan) {
        let sums = |of: &ByPlan| -> BTreeMap<MountId, u64> {
            let sum = |plans: &BTreeMap<PlanTurn, u64>| plans.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
            of.iter().map(|(mount, plans)| (*mount, sum(plans))).collect()
        };
        self.demand_moved(&sums(before), &sums(now));
        let first = |of: &ByPlan, mount: &Mount, bound: u64| {
            let first = of.get(&mount.id).and_then(BTreeMap::first_key_value);
            first.filter(|(_, bytes)| **bytes > bound / MUCH).map(|(turn, _)| *turn)
        };
        let mut bounded = self.catalogue.mounts.values().filter_map(|mount| Some((mount, bound(mount)?)));
        self.targets.moved |= bounded.any(|(mount, bound)| first(before, mount, bound) != first(now, mount, bound));
    }

    /// The worker's shares of all mounts, which hold for a lease, and the workers that are to ask for theirs at once: those
    /// who hold much that is another's, and those for whom there is room now.
    pub(super) fn grant_shares(&mut self, now: Duration, worker: WorkerId) -> (Vec<MountShare>, Vec<WorkerId>) {
        let mut wake = self.split_bounds(now);
        let count = self.targets.workers;
        // Those of the coordinator before may hold all until they are back, or their lease is over: who joins meanwhile gets as little as each
        // of all has when it is at rest, and not nothing, or who asks it would wait for so long.
        let all = count + self.members.presumed().count() as u64;
        let mut shares = Vec::with_capacity(self.catalogue.mounts.len());
        let (mut is_short, mut gave_back) = (false, false);
        for mount in self.catalogue.mounts.values() {
            let bytes_per_sec = bound(mount).map(|bound| {
                let (holder, target) = (Holder::Worker(worker), self.targets.of(mount.id, worker));
                let before = self.ledger.held(mount.id, holder);
                let wanted = Wanted {
                    holder,
                    target: target.max(1),
                    floor: (bound / (20 * all.max(1))).max(1),
                    bound,
                    until: now + self.lease,
                };
                let granted = self.ledger.grant(mount.id, wanted);
                is_short |= granted + bound / MUCH < target;
                gave_back |= granted + bound / MUCH < before;
                granted
            });
            // The bursts of all together are the mount's.
            let burst = mount.options.burst_bytes();
            let burst_bytes = (burst / count.max(1)).max(BURST_BYTES_MIN.min(burst));
            shares.push(MountShare { mount: mount.id, bytes_per_sec, burst_bytes });
        }
        self.targets.short.remove(&worker);
        if gave_back {
            wake.extend(std::mem::take(&mut self.targets.short));
        }
        if is_short {
            self.targets.short.insert(worker);
        }
        wake.remove(&worker);
        (shares, wake.into_iter().collect())
    }

    /// What a worker takes at most between its registration and its first heartbeat: an equal part of each bound.
    pub(super) fn assume_first_shares(&mut self, now: Duration, worker: WorkerId) {
        let count = self.members.live().count().max(1) as u64;
        for mount in self.catalogue.mounts.values() {
            let holder = Holder::Worker(worker);
            if let Some(bound) = bound(mount)
                && !self.ledger.holds(mount.id, holder)
            {
                self.ledger.assume(mount.id, holder, bound / count, now + self.lease);
            }
        }
    }

    /// What the workers of the coordinator before may hold for one more lease.
    pub(super) fn presume_shares(&mut self) {
        let count = self.members.presumed().count().max(1) as u64;
        for mount in self.catalogue.mounts.values() {
            for worker in self.members.presumed() {
                if let Some(bound) = bound(mount) {
                    self.ledger.assume(mount.id, Holder::Worker(worker), bound / count, self.lease);
                }
            }
        }
    }

    /// Splits the bounds anew where the last split is too old; gives the workers that now hold much too much, or much too
    /// little where there is room.
    fn split_bounds(&mut self, now: Duration) -> BTreeSet<WorkerId> {
        let mut wake = BTreeSet::new();
        if !self.targets.is_due(now) {
            return wake;
        }
        self.targets.made_at = Some(now);
        self.targets.moved = false;
        self.targets.workers = self.members.live().count() as u64;
        self.targets.by_mount.clear();
        for mount in self.catalogue.mounts.values() {
            let Some(bound) = bound(mount) else { continue };
            // Those who may still hold a share of the coordinator before count as if they wanted everything.
            let presumed = self.members.presumed().map(|who| Need { who, demand: u64::MAX, background: 0 });
            let live = self.members.live().map(|(who, member)| {
                let of = |rates: &BTreeMap<MountId, u64>| rates.get(&mount.id).copied().unwrap_or(0);
                Need { who, demand: of(&member.demand), background: of(&member.background) }
            });
            let needs: Vec<_> = live.chain(presumed).collect();
            let ahead: Vec<_> = self.members.live().flat_map(|(who, member)| plans_of(who, &member.ahead, mount.id)).collect();
            // Clients that came when there was no worker may hold more than their part until their leases end.
            let clients = self.ledger.clients_bytes_per_sec(mount.id);
            let kept = if clients > 0 { clients.max(bound / CLIENTS_PART).min(bound) } else { 0 };
            let targets: BTreeMap<_, _> = share_bound_by_need(bound - kept, &needs, &ahead).into_iter().collect();
            let (much, has_room) = (bound / MUCH, self.ledger.room(mount.id, bound) > bound / MUCH);
            for (worker, target) in &targets {
                let held = self.ledger.held(mount.id, Holder::Worker(*worker));
                if held > target + much || (has_room && held + much < *target) {
                    wake.insert(*worker);
                }
            }
            self.targets.by_mount.insert(mount.id, targets);
        }
        wake
    }
}

/// What a worker would take of each mount to bring what plans will read, by plan.
pub(super) type ByPlan = BTreeMap<MountId, BTreeMap<PlanTurn, u64>>;

/// What was told of plans, by mount.
pub(super) fn by_mount(told: &[AheadNeed]) -> ByPlan {
    let mut by_mount = ByPlan::new();
    for AheadNeed { mount, turn, bytes_per_sec } in told {
        let bytes = by_mount.entry(*mount).or_default().entry(*turn).or_default();
        *bytes = bytes.saturating_add(*bytes_per_sec);
    }
    by_mount
}

fn plans_of(who: WorkerId, ahead: &ByPlan, mount: MountId) -> impl Iterator<Item = Ahead<WorkerId>> {
    let plans = ahead.get(&mount).into_iter().flatten();
    plans.map(move |(turn, bytes_per_sec)| Ahead { who, turn: *turn, bytes_per_sec: *bytes_per_sec })
}

/// The mount's bound in bytes a second.
pub(super) fn bound(mount: &Mount) -> Option<u64> {
    mount.options.bandwidth.map(|bound| bound.bytes_per_sec())
}
