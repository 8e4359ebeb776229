//! What a seed makes of a world: how many hosts, and which faults when.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use super::what::{Disk, What};
use crate::outside::packet::HostId;

/// There is a fault within each such time, in milliseconds.
pub(super) const FAULT_EVERY_MS: u64 = 10_000;
/// Faults in that time at most, beside one of a disk.
const FAULTS_MAX: u32 = 3;
/// What of a seed faults of disks follow from: the others are the same without them.
const OF_DISKS: u64 = 0x6469_736b;
/// The same of what is wrong with processes, their clocks and their database.
const OF_PROCESSES: u64 = 0x7072_6f63;
/// Clocks go so much faster or slower at most, in millionths. Of a host there are two such faults at a time at most: those of two differ by less
/// than what a worker does not count on of its lease.
const DRIFT_PPM: i64 = 10_000;
/// The same of where a process ends, and how many packets it sends before at most.
const OF_STEPS: u64 = 0x7374_6570;
const PACKETS_MAX: u32 = 24;
/// The same of crashes of the two coordinators, of which there is one in so many ten seconds.
const OF_COORDINATORS: u64 = 0x636f_6f72;
const CRASHES_ONE_IN: u32 = 3;

/// Calls of clients in ten seconds where their pauses are as long as they are said to be, about.
const OPS: f64 = 280.0;

/// The store's host, the coordinator's, then workers, then clients.
pub(crate) const STORE: HostId = 0;
pub(crate) const COORDINATOR: HostId = 1;
/// The name of the S3 gateway's host.
pub(super) const GATEWAY: &str = "gateway";

/// A world before it begins.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// How long faults and load go on, in milliseconds.
    pub(crate) for_ms: u64,
    pub(crate) workers: usize,
    pub(crate) clients: usize,
    /// Clients' pauses are so many times as long as they are where they make [`OPS`] calls.
    pub(crate) pace: f64,
    /// A second coordinator stands by.
    pub(crate) has_standby: bool,
    /// Clients change, merge and refresh datasets of shards, and give them others.
    pub(crate) has_shards: bool,
    /// An S3 gateway is there, and clients ask it too.
    pub(crate) has_gateway: bool,
    /// Clients ask queries, which schedulers give to executors.
    pub(crate) has_queries: bool,
    pub(crate) faults: Vec<Fault>,
}

/// Something that goes wrong, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fault {
    pub(crate) at_ms: u64,
    pub(crate) for_ms: u64,
    pub(crate) what: What,
}

impl Plan {
    /// What a seed says.
    pub(crate) fn of(seed: u64, for_ms: u64) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        let (workers, clients) = (chance.random_range(3..=7), chance.random_range(2..=3));
        let (has_standby, has_shards, has_gateway, has_queries) = (false, false, false, false);
        let faults = Vec::new();
        let mut plan =
            Self { seed, for_ms, workers, clients, pace: 1.0, has_standby, has_shards, has_gateway, has_queries, faults };
        for period in 0..for_ms / FAULT_EVERY_MS {
            for _ in 0..chance.random_range(1..=FAULTS_MAX) {
                let at_ms = period * FAULT_EVERY_MS + chance.random_range(0..FAULT_EVERY_MS);
                let what = plan.draw(&mut chance);
                // A side is told apart from the other when its leases are over, and not before.
                let most_ms = if matches!(what, What::Split { .. }) { 16_000 } else { 8_000 };
                let for_ms = chance.random_range(100..most_ms);
                plan.faults.push(Fault { at_ms, for_ms, what });
            }
        }
        let mut chance = StdRng::seed_from_u64(seed ^ OF_DISKS);
        for period in 0..for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..8_000));
            let what = plan.draw_of_disk(&mut chance);
            if chance.random() {
                plan.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
            }
        }
        let mut chance = StdRng::seed_from_u64(seed ^ OF_PROCESSES);
        for period in 0..for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..8_000));
            let what = plan.draw_of_process(&mut chance);
            if chance.random() {
                plan.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
            }
        }
        plan.faults.sort_by_key(|fault| fault.at_ms);
        plan
    }

    /// How many packets a process sends that ends by a fault, before it does.
    pub(crate) fn packets_before(&self, fault: &Fault) -> u32 {
        StdRng::seed_from_u64(self.seed ^ OF_STEPS ^ fault.at_ms).random_range(0..PACKETS_MAX)
    }

    /// Hosts that lose their power and find their own disk again.
    pub(crate) fn lose_power(&self) -> Vec<HostId> {
        let loses = |fault: &Fault| match fault.what {
            What::Crash { host, with_host: true, disk: Disk::Kept } => Some(host),
            _ => None,
        };
        self.faults.iter().filter_map(loses).collect()
    }

    /// The same with about so many calls of clients in each ten seconds.
    pub(crate) fn with_ops(self, ops: u64) -> Self {
        Self { pace: OPS / ops as f64, ..self }
    }

    /// The same with clients of datasets of shards.
    pub(crate) fn with_shards(mut self) -> Self {
        self.has_shards = true;
        if self.has_two_disks() {
            self.keep_all_disks_but_one();
        }
        self
    }

    /// Whether changes of the dataset of records are acknowledged by two workers' disks: in every second world that has one.
    pub(crate) fn has_two_disks(&self) -> bool {
        self.has_shards && self.seed % 2 == 1
    }

    /// Of two disks one is always there: no other is lost than the first worker's.
    fn keep_all_disks_but_one(&mut self) {
        let first = self.worker(0);
        for fault in &mut self.faults {
            if let What::Crash { host, disk, .. } = &mut fault.what
                && ![first, COORDINATOR].contains(host)
                && *disk == Disk::Lost
            {
                *disk = Disk::Kept;
            }
        }
    }

    /// The same with a second coordinator, and crashes of the two of them.
    pub(crate) fn with_standby(mut self) -> Self {
        self.has_standby = true;
        let mut chance = StdRng::seed_from_u64(self.seed ^ OF_COORDINATORS);
        for period in 0..self.for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..8_000));
            let host = if chance.random() { COORDINATOR } else { self.client(self.clients) };
            let what = What::Crash { host, with_host: chance.random(), disk: Disk::Kept };
            if chance.random_ratio(1, CRASHES_ONE_IN) {
                self.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
            }
        }
        self.faults.sort_by_key(|fault| fault.at_ms);
        self
    }

    /// The host of the second coordinator, behind all others; where there is one.
    pub(crate) fn standby(&self) -> Option<HostId> {
        self.has_standby.then(|| self.client(self.clients))
    }

    /// The same without some of its faults, by their places.
    pub(crate) fn without(mut self, places: &[usize]) -> Self {
        let mut place = 0;
        self.faults.retain(|_| {
            place += 1;
            !places.contains(&(place - 1))
        });
        self
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let workers = (0..self.workers).map(|number| format!("worker{number}"));
        let clients = (0..self.clients).map(|number| format!("client{number}"));
        let standby = self.has_standby.then(|| "standby".to_owned());
        let gateway = self.has_gateway.then(|| GATEWAY.to_owned());
        let first = ["store".to_owned(), "coordinator".to_owned()];
        first.into_iter().chain(workers).chain(clients).chain(standby).chain(gateway).chain(self.names_of_queries()).collect()
    }

    pub(crate) fn worker(&self, number: usize) -> HostId {
        COORDINATOR + 1 + number
    }

    pub(crate) fn client(&self, number: usize) -> HostId {
        self.worker(self.workers) + number
    }

    fn draw(&self, chance: &mut StdRng) -> What {
        let worker = self.worker(chance.random_range(0..self.workers));
        let process = if chance.random_ratio(1, 6) { COORDINATOR } else { worker };
        let (a, b) = self.pair(chance);
        match chance.random_range(0..17) {
            0 | 1 => {
                let with_host = chance.random();
                let disk = [Disk::Kept, Disk::Lost, Disk::Rotten][chance.random_range(0..3)];
                What::Crash { host: process, with_host, disk }
            }
            2 | 3 => What::Stop { host: process },
            4 => What::Partition { a, b },
            5 => What::OneWay { from: a, to: b },
            6 => What::Cut { a, b },
            7 => What::SlowLink { a, b, by_ms: chance.random_range(20..400) },
            8 => What::SlowStore { by_ms: chance.random_range(50..3_000) },
            9 => What::StoreRefuses { requests: chance.random_range(1..20) },
            10 => match chance.random() {
                true => What::StoreLosesAnswers { requests: chance.random_range(1..6) },
                false => {
                    let (requests, after_bytes) = (chance.random_range(1..6), chance.random_range(0..60_000));
                    What::StoreBreaksOff { requests, after_bytes }
                }
            },
            11..=13 => {
                let side = (COORDINATOR..self.client(self.clients)).filter(|_| chance.random()).collect();
                let reached = [(STORE, chance.random_ratio(3, 4)), (COORDINATOR, chance.random_ratio(1, 3))];
                let all_reach = reached.into_iter().filter(|(_, is_reached)| *is_reached).map(|(host, _)| host).collect();
                What::Split { side, all_reach, breaks: chance.random() }
            }
            14 | 15 => What::DiskRots { host: worker },
            _ => What::ClockJumps { host: process, by_ms: chance.random_range(-600_000..600_000) },
        }
    }

    fn draw_of_disk(&self, chance: &mut StdRng) -> What {
        let host = self.worker(chance.random_range(0..self.workers));
        let (one_in, by_ms) = ([1, 4, 20][chance.random_range(0..3)], chance.random_range(50..3_000));
        match chance.random_range(0..4) {
            0 => What::DiskFails { host, reads: true, one_in },
            1 => What::DiskFails { host, reads: false, one_in },
            2 => What::DiskFull { host },
            _ => What::DiskSlow { host, by_ms },
        }
    }

    fn draw_of_process(&self, chance: &mut StdRng) -> What {
        let worker = self.worker(chance.random_range(0..self.workers));
        let process = if chance.random_ratio(1, 4) { COORDINATOR } else { worker };
        let any = chance.random_range(COORDINATOR..self.client(self.clients));
        let by_ppm = chance.random_range(-DRIFT_PPM..=DRIFT_PPM);
        match chance.random_range(0..4) {
            0 => What::ClockDrifts { host: process, by_ppm },
            1 => What::ReadsNothing { host: any },
            2 => What::NoDescriptors { host: process },
            _ => What::MetadataAway,
        }
    }

    /// The links that a split blocks, in both directions.
    pub(crate) fn across(&self, side: &[HostId], all_reach: &[HostId]) -> Vec<(HostId, HostId)> {
        let hosts = || (STORE..self.client(self.clients)).chain(self.gateway());
        let links = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
        let is_across = |(from, to): &(HostId, HostId)| {
            side.contains(from) != side.contains(to) && !all_reach.contains(from) && !all_reach.contains(to)
        };
        links.filter(is_across).collect()
    }

    /// Two hosts that talk with each other.
    pub(super) fn pair(&self, chance: &mut StdRng) -> (HostId, HostId) {
        let a = self.worker(chance.random_range(0..self.workers));
        let others: Vec<HostId> = (STORE..self.client(self.clients)).filter(|other| *other != a).collect();
        let b = *others.choose(chance).expect("there are other hosts");
        if chance.random() { (a, b) } else { (b, a) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_the_same_and_there_is_a_fault_in_all_ten_seconds() {
        let (one, again, other) = (Plan::of(7, 60_000), Plan::of(7, 60_000), Plan::of(8, 60_000));
        assert_eq!(one.faults, again.faults);
        assert_ne!(one.faults, other.faults);
        for period in 0..6 {
            assert!(one.faults.iter().any(|fault| fault.at_ms / FAULT_EVERY_MS == period), "{period}");
        }
        let fewer = one.clone().without(&[0]);
        assert_eq!(fewer.faults, one.faults[1..]);
    }

    #[test]
    fn each_fault_of_a_disk_comes_and_hits_a_worker() {
        let plans: Vec<Plan> = (0..20).map(|seed| Plan::of(seed, 60_000)).collect();
        let all = || plans.iter().flat_map(|plan| plan.faults.iter().map(move |fault| (plan, &fault.what)));
        for kind in ["disk_fails_reads", "disk_fails_writes", "disk_full", "disk_slow"] {
            assert!(all().any(|(_, what)| what.kind() == kind), "{kind}");
        }
        for (plan, what) in all() {
            if let What::DiskFails { host, .. } | What::DiskFull { host } | What::DiskSlow { host, .. } = what {
                assert!((plan.worker(0)..plan.client(0)).contains(host), "{what:?}");
            }
        }
        assert!(plans.iter().any(|plan| !plan.lose_power().is_empty()));
    }

    #[test]
    fn each_fault_of_a_process_comes_and_clocks_are_those_of_processes_that_take_no_times_down() {
        let plans: Vec<Plan> = (0..20).map(|seed| Plan::of(seed, 60_000)).collect();
        let all = || plans.iter().flat_map(|plan| plan.faults.iter().map(move |fault| (plan, fault)));
        for kind in ["clock_drifts", "reads_nothing", "no_descriptors", "metadata_away"] {
            assert!(all().any(|(_, fault)| fault.what.kind() == kind), "{kind}");
        }
        for (plan, fault) in all() {
            if let What::ClockDrifts { host, .. } | What::NoDescriptors { host } = &fault.what {
                assert!((COORDINATOR..plan.client(0)).contains(host), "{fault:?}");
            }
        }
        let crashes = || all().filter(|(_, fault)| matches!(fault.what, What::Crash { .. }));
        let packets: std::collections::BTreeSet<u32> = crashes().map(|(plan, fault)| plan.packets_before(fault)).collect();
        assert!(packets.len() > 5 && packets.iter().all(|packets| *packets < PACKETS_MAX), "{packets:?}");
    }

    #[test]
    fn a_second_coordinator_comes_behind_all_others_and_takes_no_fault_away() {
        let (one, two) = (Plan::of(9, 600_000), Plan::of(9, 600_000).with_standby());
        let standby = two.standby().unwrap();
        assert_eq!((one.standby(), standby, two.names()[standby].as_str()), (None, one.names().len(), "standby"));
        assert!(one.faults.iter().all(|fault| two.faults.contains(fault)) && two.faults.len() > one.faults.len());
        for coordinator in [COORDINATOR, standby] {
            let crashes = |fault: &Fault| matches!(fault.what, What::Crash { host, .. } if host == coordinator);
            assert!(two.faults.iter().any(crashes), "{coordinator}");
        }
    }

    #[test]
    fn where_two_disks_have_changes_no_two_are_lost() {
        let lost = |plan: &Plan| -> Vec<HostId> {
            let lost = |fault: &Fault| match fault.what {
                What::Crash { host, disk: Disk::Lost, .. } if host != COORDINATOR => Some(host),
                _ => None,
            };
            plan.faults.iter().filter_map(lost).collect()
        };
        let plan = |seed| Plan::of(seed, 3_600_000);
        for (seed, has_two) in [(8, false), (9, true)] {
            let (before, after) = (plan(seed), plan(seed).with_shards());
            assert_eq!((before.has_two_disks(), after.has_two_disks()), (false, has_two));
            assert!(lost(&before).iter().any(|host| *host != before.worker(0)), "{seed}");
            assert_eq!(lost(&after).iter().all(|host| *host == after.worker(0)), has_two, "{seed}");
            assert_eq!(before.faults.len(), after.faults.len(), "no fault is left out");
        }
    }
}
