use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::MountShare;
use forebay_scheduling::share_bound;
use forebay_types::{Mount, MountId, WorkerId};

use super::State;
use super::ledger::{Holder, Wanted};

/// Bytes that may be taken at once where the mount does not say.
const BURST_BYTES: u64 = 1 << 20;
/// Least burst of one holder: a few packets.
pub(super) const BURST_BYTES_MIN: u64 = 64 << 10;
/// This part of the bound is kept for clients while one of them has a budget.
pub(super) const CLIENTS_PART: u64 = 20;
/// How old a split may be: with many workers it is too much work for every heartbeat.
const TARGETS_AGE_MAX: Duration = Duration::from_millis(200);

/// The last split of every bound.
#[derive(Debug, Default)]
pub(super) struct Targets {
    by_mount: BTreeMap<MountId, BTreeMap<WorkerId, u64>>,
    /// Live workers then.
    workers: u64,
    made_at: Option<Duration>,
}

impl Targets {
    pub(super) fn forget(&mut self) {
        self.made_at = None;
    }
}

impl State {
    /// The worker's shares of all mounts, which hold for a lease.
    pub(super) fn grant_shares(&mut self, now: Duration, worker: WorkerId) -> Vec<MountShare> {
        self.split_bounds(now);
        let count = self.targets.workers;
        let mut shares = Vec::with_capacity(self.catalogue.mounts.len());
        for mount in self.catalogue.mounts.values() {
            let bytes_per_sec = bound(mount).map(|bound| {
                let target = self.targets.by_mount.get(&mount.id).and_then(|targets| targets.get(&worker)).copied().unwrap_or(0);
                let wanted = Wanted {
                    holder: Holder::Worker(worker),
                    target: target.max(1),
                    floor: (bound / (20 * count.max(1))).max(1),
                    bound,
                    until: now + self.lease,
                };
                self.ledger.grant(mount.id, wanted)
            });
            // The bursts of all together are the mount's.
            let burst_bytes = (burst(mount) / count.max(1)).max(BURST_BYTES_MIN.min(burst(mount)));
            shares.push(MountShare { mount: mount.id, bytes_per_sec, burst_bytes });
        }
        shares
    }

    /// What a worker takes between its registration and its first heartbeat: an equal part of each bound.
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

    /// Splits the bounds anew where the last split is too old.
    fn split_bounds(&mut self, now: Duration) {
        if self.targets.made_at.is_some_and(|at| now < at + TARGETS_AGE_MAX) {
            return;
        }
        self.targets.made_at = Some(now);
        self.targets.workers = self.members.live().count() as u64;
        self.targets.by_mount.clear();
        for mount in self.catalogue.mounts.values() {
            let Some(bound) = bound(mount) else { continue };
            // Those who may still hold a share of the coordinator before count as if they wanted everything.
            let presumed = self.members.presumed().map(|worker| (worker, u64::MAX));
            let live = self.members.live().map(|(worker, member)| (worker, member.demand.get(&mount.id).copied().unwrap_or(0)));
            let demands: Vec<_> = live.chain(presumed).collect();
            // Clients that came when there was no worker may hold more than their part until their leases end.
            let clients = self.ledger.clients_bytes_per_sec(mount.id);
            let kept = if clients > 0 { clients.max(bound / CLIENTS_PART).min(bound) } else { 0 };
            self.targets.by_mount.insert(mount.id, share_bound(bound - kept, &demands).into_iter().collect());
        }
    }
}

/// The mount's bound in bytes a second.
pub(super) fn bound(mount: &Mount) -> Option<u64> {
    mount.options.bandwidth.map(|bound| bound.bytes_per_sec())
}

/// The mount's burst in bytes.
pub(super) fn burst(mount: &Mount) -> u64 {
    mount.options.burst.map_or(BURST_BYTES, |burst| burst.0)
}
