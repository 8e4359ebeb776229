use std::collections::BTreeMap;
use std::time::Duration;

use forebay_types::{MountId, WorkerId};

/// Who takes bytes from shared storage.
// The order matters: all workers stand before all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    Worker(WorkerId),
    /// A client that reads shared storage itself, by its random number.
    Client(u64),
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    bytes_per_sec: u64,
    until: Duration,
    /// Taken by the worker's own rule, not given by an answer.
    assumed: bool,
}

/// What is granted of each mount's bound and still holds: nothing is granted twice, whoever was given too much before
/// gives it back first.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    mounts: BTreeMap<MountId, Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    grants: BTreeMap<Holder, Grant>,
    total: u64,
    clients: usize,
}

/// What is wanted for a holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) holder: Holder,
    /// Its part, were all others at theirs.
    pub(super) target: u64,
    /// The first time it gets this much in any case, so that it can start.
    pub(super) floor: u64,
    /// What all together may hold.
    pub(super) bound: u64,
    pub(super) until: Duration,
}

impl Ledger {
    /// Grants as much of the target as others don't hold any more. More than before only where there is room.
    pub(super) fn grant(&mut self, mount: MountId, wanted: Wanted) -> u64 {
        let accounts = self.mounts.entry(mount).or_default();
        let before = accounts.grants.get(&wanted.holder).copied();
        let others = accounts.total - before.map_or(0, |grant| grant.bytes_per_sec);
        let held = before.filter(|grant| !grant.assumed).map_or(wanted.floor, |grant| grant.bytes_per_sec);
        let room = wanted.bound.saturating_sub(others);
        let bytes_per_sec = wanted.target.min(held.max(room)).max(1);
        accounts.put(wanted.holder, Grant { bytes_per_sec, until: wanted.until, assumed: false });
        bytes_per_sec
    }

    /// Notes what a worker takes without having been answered.
    pub(super) fn assume(&mut self, mount: MountId, holder: Holder, bytes_per_sec: u64, until: Duration) {
        self.mounts.entry(mount).or_default().put(holder, Grant { bytes_per_sec, until, assumed: true });
    }

    /// Bytes a second that all clients hold.
    pub(super) fn clients_bytes_per_sec(&self, mount: MountId) -> u64 {
        let Some(accounts) = self.mounts.get(&mount) else { return 0 };
        accounts.grants.range(Holder::Client(0)..).map(|(_, grant)| grant.bytes_per_sec).sum()
    }

    /// Bytes a second that all workers hold.
    pub(super) fn workers_bytes_per_sec(&self, mount: MountId) -> u64 {
        self.mounts.get(&mount).map_or(0, |accounts| accounts.total) - self.clients_bytes_per_sec(mount)
    }

    /// How many clients hold something.
    pub(super) fn clients(&self, mount: MountId) -> usize {
        self.mounts.get(&mount).map_or(0, |accounts| accounts.clients)
    }

    /// Bytes a second that this one holds.
    pub(super) fn held(&self, mount: MountId, holder: Holder) -> u64 {
        self.mounts.get(&mount).and_then(|accounts| accounts.grants.get(&holder)).map_or(0, |grant| grant.bytes_per_sec)
    }

    /// Bytes a second of the bound that nobody holds.
    pub(super) fn room(&self, mount: MountId, bound: u64) -> u64 {
        bound.saturating_sub(self.mounts.get(&mount).map_or(0, |accounts| accounts.total))
    }

    pub(super) fn holds(&self, mount: MountId, holder: Holder) -> bool {
        self.mounts.get(&mount).is_some_and(|accounts| accounts.grants.contains_key(&holder))
    }

    /// Whether any worker holds something.
    pub(super) fn any_worker(&self, mount: MountId) -> bool {
        self.mounts.get(&mount).is_some_and(|accounts| accounts.grants.len() > accounts.clients)
    }

    /// Takes out what holds no longer.
    pub(super) fn expire(&mut self, now: Duration) {
        for accounts in self.mounts.values_mut() {
            accounts.retain(|_, grant| now <= grant.until);
        }
    }

    pub(super) fn release(&mut self, holder: Holder) {
        for accounts in self.mounts.values_mut() {
            accounts.retain(|other, _| *other != holder);
        }
    }

    pub(super) fn remove_mount(&mut self, mount: MountId) {
        self.mounts.remove(&mount);
    }
}

impl Accounts {
    fn put(&mut self, holder: Holder, grant: Grant) {
        let before = self.grants.insert(holder, grant);
        self.total = self.total - before.map_or(0, |grant| grant.bytes_per_sec) + grant.bytes_per_sec;
        self.clients += usize::from(before.is_none() && matches!(holder, Holder::Client(_)));
    }

    fn retain(&mut self, keep: impl Fn(&Holder, &Grant) -> bool) {
        self.grants.retain(|holder, grant| keep(holder, grant));
        self.total = self.grants.values().map(|grant| grant.bytes_per_sec).sum();
        self.clients = self.grants.range(Holder::Client(0)..).count();
    }
}
