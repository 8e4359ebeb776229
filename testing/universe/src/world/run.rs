//! A world from its beginning to its end: turns of hosts, deliveries between them, faults when it is time for them, and the verdict.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_demo::{S3Server, S3Settings};
use forebay_metadata::Memory;
use forebay_oracle::{Losses, Rule, Violation, errors, judge};
use forebay_runtime::simulated;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use tempfile::TempDir;

use super::course::{Course, Crowd};
use super::gateway;
use super::host::{Folder, Host, in_memory, set_clock};
use super::hosts::{self, BUCKET, COORDINATOR_ADDRESS, STANDBY_ADDRESS, Seen};
use super::load;
use super::plan::{COORDINATOR, Plan, STORE};
use super::wrong::{Wrong, without_room};
use crate::outside::disks::{self, Disks};
use crate::outside::door::door;
use crate::outside::network::Network;
use crate::outside::packet::{HostId, bit};
use crate::outside::points::Point;
use crate::outside::system;
use crate::trace::Trace;

/// How long hosts are run in a turn. Nothing that a host says is heard before the turn's end.
const TURN_US: u64 = 5_000;
/// A client that hears nothing is run once in so long, and any other host: those say little by themselves.
const CLIENT_BEHIND_US: u64 = 40_000;
const BEHIND_US: u64 = 100_000;
/// Load begins within this time, and all calls end within it.
const BEGINS_WITHIN_US: u64 = 60_000_000;
const ENDS_WITHIN_US: u64 = 120_000_000;
/// Workers are back after this time: two leases.
const BACK_US: u64 = 10_000_000;
/// What is held for somebody is given back within this time.
const RESTS_US: u64 = 15_000_000;
/// Violations that are told.
const TOLD: usize = 5;

/// What a world came to.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) seed: u64,
    pub(crate) hash: String,
    pub(crate) simulated_seconds: u64,
    pub(crate) operations: u64,
    /// Of these, calls on records of a dataset of shards.
    pub(crate) of_records: u64,
    /// Objects of its log that were on two workers' disks before they were in the store.
    pub(crate) on_two_disks: u64,
    /// Requests that the S3 gateway has served, by kind: none where there is no gateway.
    pub(crate) of_s3: BTreeMap<&'static str, u64>,
    /// What queries came to, and how often they were run again.
    pub(crate) queries: BTreeMap<&'static str, u64>,
    /// Tasks that schedulers and executors have at rest.
    pub(crate) tasks: BTreeMap<String, usize>,
    /// Calls of who may not that were refused.
    pub(crate) refused: u64,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    /// Connections that broke with a packet that was lost.
    pub(crate) broken: u64,
    /// Versions of the cluster's view that clients were shown.
    pub(crate) views: u64,
    /// What went wrong with disks, call by call, and page by page.
    pub(crate) disks: BTreeMap<&'static str, u64>,
    /// Points of the code at which something rare may happen, how often they were passed, and how often it did.
    pub(crate) points: BTreeMap<&'static str, Point>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) violations: u64,
    pub(crate) first_violations: Vec<Violation>,
}

pub(super) struct World<'a> {
    pub(super) plan: &'a Plan,
    pub(super) now_us: u64,
    pub(super) hosts: Vec<Host>,
    pub(super) network: Arc<Network>,
    pub(super) trace: Arc<Trace>,
    pub(super) course: Arc<Course>,
    pub(super) seen: Arc<Seen>,
    pub(super) faults: Faults,
    /// Hosts at which something has arrived that they have not looked at, a bit each.
    heard: u64,
    pub(super) folder: Folder,
    pub(super) shared: SharedStorage,
    pub(super) chance: StdRng,
}

/// What faults have come to so far.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) wrong: Wrong,
    /// When a worker may have been lost, and when connections broke.
    pub(super) losses: Losses,
}

/// What outlives all processes: objects and metadata.
pub(super) struct SharedStorage {
    pub(super) server: Arc<S3Server>,
    pub(super) metadata: Memory,
    _objects: TempDir,
}

/// What panicked, of all hosts.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs the world of a plan, on a thread that is nothing else's.
pub(crate) fn run(plan: &Plan, tells: bool) -> Outcome {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.lock().push(panic.to_string());
        tell(panic);
    }));
    let mut chance = StdRng::seed_from_u64(plan.seed ^ 0x75_6e69_7665_7273);
    system::follow(chance.random());
    let _series = forebay_runtime::repeat(chance.random());
    set_clock(0, 0);
    let trace = Arc::new(Trace::new(tells));
    let network = Arc::new(Network::new(plan.names(), StdRng::seed_from_u64(chance.random()), Arc::clone(&trace)));
    let _simulation = simulated::simulate(door(&network));
    let mut world = World::new(plan, network, trace, chance);
    disks::install(Disks::new(world.folder.path(), world.hosts.len(), plan.seed, &plan.lose_power()));
    let violations = world.pass();
    let calls = world.course.calls.recorder.take();
    for call in &calls {
        world.trace.event(call.end_us, format_args!("{call:?}"));
    }
    let breaks = world.network.breaks();
    let mut losses = world.faults.losses.clone();
    // Nothing that a client asks workers for goes by those of schedulers and executors.
    let of_others = breaks.iter().filter(|(_, from, to)| plan.part(*from).is_none() || plan.part(*to).is_none());
    losses.cuts.extend(of_others.map(|(at_us, ..)| *at_us));
    // On a thread whose time is the machine's, since the search for an order is given up by it.
    let records = std::mem::take(&mut *world.course.records.calls.lock());
    let judging = || [judge(&calls, load::promise, &losses), forebay_oracle::records(&records)].concat();
    let judged = std::thread::scope(|scope| scope.spawn(judging).join());
    let mut violations: Vec<_> = violations.into_iter().chain(judged.expect("the oracle has an answer")).collect();
    violations.extend(world.course.take_wrong());
    violations.extend(without_room(&calls));
    violations.extend(PANICS.lock().iter().map(|panic| Violation::new(Rule::StaysUp, panic.clone())));
    let mut faults = BTreeMap::new();
    plan.faults.iter().for_each(|fault| *faults.entry(fault.what.kind()).or_default() += 1);
    let count = violations.len() as u64;
    violations.truncate(TOLD);
    let outcome = Outcome {
        seed: plan.seed,
        hash: format!("{:016x}", world.trace.hash()),
        simulated_seconds: world.now_us / 1_000_000,
        operations: (calls.len() + records.len()) as u64,
        of_records: records.len() as u64,
        on_two_disks: world.course.on_two_disks(),
        of_s3: world.course.asked.served(),
        queries: world.course.queries.counts(),
        tasks: world.tasks_of_queries(),
        refused: world.course.refused(),
        faults,
        broken: breaks.len() as u64,
        views: world.course.views(),
        disks: disks::happened(),
        points: world.network.points(),
        errors: errors(&calls),
        violations: count,
        first_violations: violations,
    };
    world.hosts.iter_mut().for_each(|host| host.crash(world.now_us));
    outcome
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, network: Arc<Network>, trace: Arc<Trace>, mut chance: StdRng) -> Self {
        let objects = in_memory();
        let (buckets, folder) = (vec![BUCKET.into()], objects.path().to_owned());
        let settings = S3Settings { buckets, folder, in_memory: true, anonymous: true, ..S3Settings::default() };
        let server = Arc::new(S3Server::without_thread(settings).expect("a folder for the store"));
        let hosts: Vec<Host> = (0..plan.names().len()).map(|id| Host::new(id, &network)).collect();
        let seen = Seen { pinned: Mutex::new(vec![0; plan.workers]), ..Seen::default() };
        let folder = Folder::new();
        let Plan { workers, clients, pace, has_standby, has_shards, has_queries, .. } = *plan;
        let has_two_disks = plan.has_two_disks();
        let (seed, has_gateway) = (chance.random(), plan.gateway().is_some());
        let crowd = Crowd { workers, clients, seed, pace, has_standby, has_shards, has_queries, has_two_disks, has_gateway };
        let course = Course::new(crowd, folder.path().to_owned());
        Self {
            plan,
            now_us: 0,
            heard: 0,
            hosts,
            network,
            trace,
            course: Arc::new(course),
            seen: Arc::new(seen),
            faults: Faults::default(),
            folder,
            shared: SharedStorage { server, metadata: Memory::new(), _objects: objects },
            chance,
        }
    }

    /// All of it; what does not hold of the processes themselves.
    fn pass(&mut self) -> Vec<Violation> {
        (STORE..self.hosts.len()).for_each(|host| self.start(host));
        if !self.go_on_until(BEGINS_WITHIN_US, |world| world.course.has_begun()) {
            return vec![Violation::new(Rule::Recovers, "the load does not begin, though nothing is wrong")];
        }
        let began_us = self.now_us;
        self.weather(began_us);
        self.course.calls.end();
        self.network.calm();
        let ended_us = self.now_us;
        self.go_on_until(BACK_US, |_| false);
        let mut violations: Vec<_> = self.not_back().into_iter().collect();
        if !self.go_on_until(ENDS_WITHIN_US, |world| world.course.is_done()) {
            violations.push(Violation::new(Rule::Recovers, "calls do not end"));
        }
        self.go_on_until(RESTS_US, |_| false);
        violations.extend(self.left_over());
        violations.extend(self.held_by_gateway());
        violations.extend(self.left_of_queries());
        violations.extend(self.beyond_bound(ended_us));
        violations
    }

    /// The faults of the plan, each for its time, and all of them over at the end.
    fn weather(&mut self, began_us: u64) {
        let mut changes: BTreeMap<(u64, usize), bool> = BTreeMap::new();
        for (place, fault) in self.plan.faults.iter().enumerate() {
            let at_us = began_us + fault.at_ms * 1000;
            changes.insert((at_us, place), true);
            let over_us = at_us + fault.for_ms * 1000;
            changes.insert((over_us.min(began_us + self.plan.for_ms * 1000), place), false);
        }
        for ((at_us, place), begins) in changes {
            self.go_on_until(at_us.saturating_sub(self.now_us), |_| false);
            let fault = &self.plan.faults[place];
            if begins { self.strike(fault) } else { self.heal(fault) }
        }
        self.go_on_until((began_us + self.plan.for_ms * 1000).saturating_sub(self.now_us), |_| false);
    }

    /// Turn after turn for so long, or until something holds; whether it does. At its end all hosts have come to now.
    pub(super) fn go_on_until(&mut self, for_us: u64, holds: impl Fn(&Self) -> bool) -> bool {
        let until_us = self.now_us + for_us;
        while self.now_us < until_us && !holds(self) {
            self.turn(until_us);
        }
        self.run_hosts(self.now_us, |_, _| true);
        holds(self)
    }

    /// Hosts that have heard something are run for a while, then what is due arrives. Others follow when they hear something, or have
    /// not been run for long: what they do meanwhile is as if their packets took longer.
    fn turn(&mut self, until_us: u64) {
        let ends_us = |host: HostId| {
            let behind_us = self.hosts[host].behind(self.now_us)?;
            Some(self.now_us + self.behind_at_most_us(host).saturating_sub(behind_us))
        };
        let next_us = match self.heard == 0 {
            true => (0..self.hosts.len()).filter_map(ends_us).chain(self.network.next_us()).min().unwrap_or(until_us),
            false => self.now_us,
        };
        let next_us = next_us.max(self.now_us + TURN_US).min(until_us);
        let is_late = |world: &Self, host: HostId| world.hosts[host].behind(next_us) >= Some(world.behind_at_most_us(host));
        self.run_hosts(next_us, |world, host| world.heard & bit(host) != 0 || is_late(world, host));
        self.now_us = next_us;
        // Who hears something has come to now before.
        loop {
            let hearing = self.network.hearing(next_us);
            if !self.run_hosts(next_us, |_, host| hearing & bit(host) != 0) {
                break;
            }
        }
        set_clock(self.now_us, 0);
        self.heard = self.network.deliver(self.now_us);
    }

    /// How far a host may be behind that hears nothing.
    fn behind_at_most_us(&self, host: HostId) -> u64 {
        let is_client = (self.plan.client(0)..self.plan.client(self.plan.clients)).contains(&host);
        if is_client { CLIENT_BEHIND_US } else { BEHIND_US }
    }

    /// Runs some of those hosts that have not come to a time; whether there were any.
    fn run_hosts(&mut self, until_us: u64, which: impl Fn(&Self, HostId) -> bool) -> bool {
        let count = self.hosts.len();
        // Who is first differs.
        let first = self.chance.random_range(0..count);
        let mut any = false;
        for host in (0..count).map(|place| (first + place) % count) {
            if self.hosts[host].behind(until_us) > Some(0) && which(self, host) {
                self.hosts[host].run(until_us);
                any = true;
            }
        }
        any
    }

    /// Starts the process of a host.
    pub(super) fn start(&mut self, host: HostId) {
        if let Some(part) = self.plan.part(host) {
            return self.start_part(host, part);
        }
        let (worker, client) = (host.checked_sub(self.plan.worker(0)), host.checked_sub(self.plan.client(0)));
        let (now_us, seen) = (self.now_us, Arc::clone(&self.seen));
        let process = &mut self.hosts[host];
        match (worker, client) {
            _ if Some(host) == self.plan.standby() => {
                process.start(now_us, hosts::coordinator(STANDBY_ADDRESS, self.shared.metadata.url().to_owned(), seen));
            }
            _ if Some(host) == self.plan.gateway() => {
                process.start(now_us, gateway::gateway(seen, self.plan.has_standby, load::MOUNTS[1]));
            }
            (_, Some(number)) => process.start(now_us, load::client(Arc::clone(&self.course), number)),
            (Some(number), None) => {
                let folder = self.folder.path().join(format!("{host}"));
                let worker = hosts::worker(number, folder, seen, self.plan.has_standby);
                let course = (number == 0).then(|| Arc::clone(&self.course));
                process.start(now_us, async move {
                    let beside = async move {
                        if let Some(course) = course {
                            load::resident(course).await;
                        }
                    };
                    futures::future::join(worker, beside).await;
                });
            }
            _ if host == COORDINATOR => {
                process.start(now_us, hosts::coordinator(COORDINATOR_ADDRESS, self.shared.metadata.url().to_owned(), seen));
            }
            _ => process.start(now_us, hosts::store(Arc::clone(&self.shared.server))),
        }
    }
}
