//! The book of grants: how many bytes a second of each bound workers and clients hold, until when, and what is left.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_types::{MountId, WorkerId};

use super::whole::{Kept, failpoint};

/// A book of at most so many grants is added up after each change, where debug assertions are on.
const SMALL_GRANTS: usize = 64;

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
    grants: Kept<(MountId, Holder), Grant>,
    sums: Kept<MountId, Sums>,
}

/// Of one mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// Bytes a second that all hold together.
    total: u64,
    clients: usize,
    workers: usize,
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
    pub(super) fn begin(&mut self) {
        self.grants.begin();
        self.sums.begin();
    }

    pub(super) fn put_back(&mut self) {
        self.grants.put_back();
        self.sums.put_back();
    }

    /// Grants as much of the target as others don't hold any more. More than before only where there is room.
    pub(super) fn grant(&mut self, mount: MountId, wanted: Wanted) -> u64 {
        let before = self.grants.get(&(mount, wanted.holder)).copied();
        let (total, mine) = (self.sums(mount).total, before.map_or(0, |grant| grant.bytes_per_sec));
        assert!(total >= mine, "of {total} bytes a second that are granted, {mine} are this holder's");
        let others = total - mine;
        let held = before.filter(|grant| !grant.assumed).map_or(wanted.floor, |grant| grant.bytes_per_sec);
        let room = wanted.bound.saturating_sub(others);
        let bytes_per_sec = wanted.target.min(held.max(room)).max(1);
        assert!(bytes_per_sec <= held.max(room).max(1), "more than {held} bytes a second only within the room of {room}");
        self.put(mount, wanted.holder, Grant { bytes_per_sec, until: wanted.until, assumed: false });
        bytes_per_sec
    }

    /// Notes what a worker takes without having been answered.
    pub(super) fn assume(&mut self, mount: MountId, holder: Holder, bytes_per_sec: u64, until: Duration) {
        self.put(mount, holder, Grant { bytes_per_sec, until, assumed: true });
    }

    pub(super) fn clients_bytes_per_sec(&self, mount: MountId) -> u64 {
        let clients = (mount, Holder::Client(0))..=(mount, Holder::Client(u64::MAX));
        self.grants.range(clients).map(|(_, grant)| grant.bytes_per_sec).sum()
    }

    pub(super) fn workers_bytes_per_sec(&self, mount: MountId) -> u64 {
        let (total, clients) = (self.sums(mount).total, self.clients_bytes_per_sec(mount));
        assert!(total >= clients, "of {total} bytes a second that are granted, {clients} are clients'");
        total - clients
    }

    pub(super) fn clients(&self, mount: MountId) -> usize {
        self.sums(mount).clients
    }

    /// Bytes a second that this one holds.
    pub(super) fn held(&self, mount: MountId, holder: Holder) -> u64 {
        self.grants.get(&(mount, holder)).map_or(0, |grant| grant.bytes_per_sec)
    }

    /// Bytes a second of the bound that nobody holds.
    pub(super) fn room(&self, mount: MountId, bound: u64) -> u64 {
        bound.saturating_sub(self.sums(mount).total)
    }

    pub(super) fn holds(&self, mount: MountId, holder: Holder) -> bool {
        self.grants.contains_key(&(mount, holder))
    }

    pub(super) fn any_worker(&self, mount: MountId) -> bool {
        self.sums(mount).workers > 0
    }

    pub(super) fn expire(&mut self, now: Duration) {
        self.take_out(|_, grant| now > grant.until);
    }

    pub(super) fn release(&mut self, holder: Holder) {
        self.take_out(|(_, other), _| *other == holder);
    }

    pub(super) fn remove_mount(&mut self, mount: MountId) {
        self.take_out(|(other, _), _| *other == mount);
    }

    fn sums(&self, mount: MountId) -> Sums {
        self.sums.get(&mount).copied().unwrap_or_default()
    }

    fn put(&mut self, mount: MountId, holder: Holder, grant: Grant) {
        let before = self.grants.insert((mount, holder), grant);
        failpoint(format_args!("share of {holder:?}"));
        let mut sums = self.sums(mount);
        let less = before.map_or(0, |grant| grant.bytes_per_sec);
        assert!(sums.total >= less, "what is given up was granted: {less} bytes a second of {}", sums.total);
        sums.total = sums.total - less + grant.bytes_per_sec;
        if before.is_none() {
            *sums.of(holder) += 1;
        }
        self.sums.insert(mount, sums);
        self.check_small();
    }

    fn take_out(&mut self, goes: impl Fn(&(MountId, Holder), &Grant) -> bool) {
        let gone = self.grants.iter().filter(|(key, grant)| goes(key, grant));
        for ((mount, holder), grant) in gone.map(|(key, grant)| (*key, *grant)).collect::<Vec<_>>() {
            self.grants.remove(&(mount, holder));
            let mut sums = self.sums(mount);
            let count = sums.of(holder);
            assert!(*count > 0, "who is taken out was counted in");
            *count -= 1;
            assert!(sums.total >= grant.bytes_per_sec, "what is taken out was granted");
            sums.total -= grant.bytes_per_sec;
            if sums.clients + sums.workers == 0 {
                self.sums.remove(&mount);
            } else {
                self.sums.insert(mount, sums);
            }
        }
        self.check_small();
    }

    fn check_small(&self) {
        if cfg!(debug_assertions) && self.grants.len() <= SMALL_GRANTS {
            self.check();
        }
    }

    /// The sums are those of the grants. O(grants).
    fn check(&self) {
        let mut sums: BTreeMap<MountId, Sums> = BTreeMap::new();
        for ((mount, holder), grant) in self.grants.iter() {
            let of_mount = sums.entry(*mount).or_default();
            of_mount.total += grant.bytes_per_sec;
            *of_mount.of(*holder) += 1;
        }
        assert_eq!(*self.sums, sums, "sums are those of the grants");
    }
}

impl Sums {
    fn of(&mut self, holder: Holder) -> &mut usize {
        match holder {
            Holder::Worker(_) => &mut self.workers,
            Holder::Client(_) => &mut self.clients,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: MountId = MountId(1);
    const ONE: Holder = Holder::Worker(WorkerId(1));
    const CLIENT: Holder = Holder::Client(7);

    fn wanted(holder: Holder) -> Wanted {
        Wanted { holder, target: 40, floor: 10, bound: 100, until: Duration::from_secs(5) }
    }

    /// A worker and a client that hold 40 each, with the sums of both spoiled before what comes next.
    fn spoiled(spoil: impl FnOnce(&mut Sums), next: impl FnOnce(&mut Ledger)) {
        let mut ledger = Ledger::default();
        assert_eq!([ONE, CLIENT].map(|holder| ledger.grant(MOUNT, wanted(holder))), [40, 40]);
        spoil(ledger.sums.get_mut(&MOUNT).unwrap());
        next(&mut ledger);
        ledger.check();
    }

    #[test]
    fn what_is_sound_passes() {
        spoiled(|_| {}, |ledger| ledger.release(ONE));
    }

    #[test]
    #[should_panic(expected = "are this holder's")]
    fn a_grant_that_is_in_no_sum_is_caught() {
        spoiled(|sums| sums.total = 39, |ledger| _ = ledger.grant(MOUNT, wanted(ONE)));
    }

    #[test]
    #[should_panic(expected = "what is given up was granted")]
    fn a_share_that_is_given_up_twice_is_caught() {
        spoiled(|sums| sums.total = 39, |ledger| ledger.assume(MOUNT, ONE, 20, Duration::ZERO));
    }

    #[test]
    #[should_panic(expected = "what is taken out was granted")]
    fn a_share_that_is_released_twice_is_caught() {
        spoiled(|sums| sums.total = 39, |ledger| ledger.release(ONE));
    }

    #[test]
    #[should_panic(expected = "who is taken out was counted in")]
    fn a_client_that_was_not_counted_is_caught() {
        spoiled(|sums| sums.clients = 0, |ledger| ledger.release(CLIENT));
    }

    #[test]
    #[should_panic(expected = "are clients'")]
    fn clients_that_hold_more_than_all_are_caught() {
        spoiled(|sums| sums.total = 39, |ledger| _ = ledger.workers_bytes_per_sec(MOUNT));
    }

    #[test]
    #[should_panic(expected = "sums are those of the grants")]
    fn bytes_that_nobody_holds_are_caught() {
        spoiled(|sums| sums.total += 1, |_| {});
    }
}
