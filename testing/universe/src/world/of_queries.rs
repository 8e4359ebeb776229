//! Schedulers and executors among the hosts of a world: how many there are, what happens to them, their processes, and what must be at rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_oracle::{Rule, Violation};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::plan::{COORDINATOR, FAULT_EVERY_MS, Fault, Plan};
use super::queries;
use super::run::World;
use super::what::{Disk, What};
use crate::outside::packet::HostId;

/// What of a seed their faults follow from: the others are the same without them.
const OF_QUERIES: u64 = 0x7175_6572;
/// The same of connections that break, those of all other hosts too.
const OF_BREAKS: u64 = 0x6272_6561;
/// One in so many packets breaks one.
const BREAKS_ONE_IN: [u32; 3] = [5, 20, 100];
const BREAKS_FOR_MS_MAX: u64 = 8_000;
/// The same of workers that open no file.
const OF_FILES: u64 = 0x6669_6c65;
/// Longer than an executor is silent before it is lost.
const FOR_MS_MAX: u64 = 16_000;
const SCHEDULERS: usize = 2;
/// Tasks that a process of theirs has at rest at most: its own, and those of connections that it keeps, by host.
const TASKS_MAX: usize = 32;
const TASKS_BY_HOST_MAX: usize = 4;

/// Whose host it is, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Scheduler(usize),
    Executor(usize),
}

impl Plan {
    /// The same with two schedulers, of which one serves, executors, and faults of these: to be said last, since they are behind all others.
    pub(crate) fn with_queries(mut self) -> Self {
        self.has_queries = true;
        let mut chance = StdRng::seed_from_u64(self.seed ^ OF_QUERIES);
        for period in 0..self.for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..FOR_MS_MAX));
            let what = self.draw_of_queries(&mut chance);
            self.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
        }
        let mut chance = StdRng::seed_from_u64(self.seed ^ OF_BREAKS);
        for period in 0..self.for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..BREAKS_FOR_MS_MAX));
            let what = self.draw_of_breaks(&mut chance);
            self.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
        }
        let mut chance = StdRng::seed_from_u64(self.seed ^ OF_FILES);
        for period in 0..self.for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..BREAKS_FOR_MS_MAX));
            let what = What::NoFiles { host: self.worker(chance.random_range(0..self.workers)) };
            if chance.random() {
                self.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
            }
        }
        self.faults.sort_by_key(|fault| fault.at_ms);
        self
    }

    pub(super) fn names_of_queries(&self) -> Vec<String> {
        if !self.has_queries {
            return Vec::new();
        }
        let executors = 2 + (self.seed % 2) as usize;
        let schedulers = (0..SCHEDULERS).map(|number| format!("scheduler{number}"));
        schedulers.chain((0..executors).map(|number| format!("executor{number}"))).collect()
    }

    /// What is on a host of theirs; none for any other.
    pub(super) fn part(&self, host: HostId) -> Option<Part> {
        let parts = self.names_of_queries().len();
        let number = (host + parts).checked_sub(self.names().len())?;
        Some(number.checked_sub(SCHEDULERS).map_or(Part::Scheduler(number), Part::Executor))
    }

    /// Whether a fault is of theirs alone: no worker is lost by it.
    pub(super) fn is_of_queries(&self, what: &What) -> bool {
        match what {
            What::Crash { host, .. } | What::Stop { host } | What::ReadsNothing { host } => self.part(*host).is_some(),
            What::Partition { a, b } | What::Breaks { a, b, .. } => self.part(*a).is_some() || self.part(*b).is_some(),
            _ => false,
        }
    }

    fn draw_of_queries(&self, chance: &mut StdRng) -> What {
        let (all, parts) = (self.names().len(), self.names_of_queries().len());
        let host = chance.random_range(all - parts..all);
        // Of any kind but a store, which schedulers and executors do not reach.
        let other = chance.random_range(COORDINATOR..all - 1);
        let other = if other >= host { other + 1 } else { other };
        match chance.random_range(0..8) {
            0..3 => What::Crash { host, with_host: chance.random(), disk: Disk::Kept },
            3 | 4 => What::Stop { host },
            5 => What::Partition { a: host, b: other },
            6 => What::Cut { a: host, b: other },
            _ => What::ReadsNothing { host },
        }
    }

    /// Mostly between a scheduler and an executor, or two executors: what these tell each other is told once.
    fn draw_of_breaks(&self, chance: &mut StdRng) -> What {
        let one_in = BREAKS_ONE_IN[chance.random_range(0..BREAKS_ONE_IN.len())];
        let (all, parts) = (self.names().len(), self.names_of_queries().len());
        let (a, b) = match chance.random_ratio(3, 4) {
            true => {
                let (a, by) = (chance.random_range(0..parts), chance.random_range(1..parts));
                (all - parts + a, all - parts + (a + by) % parts)
            }
            false => self.pair(chance),
        };
        What::Breaks { a, b, one_in }
    }
}

impl World<'_> {
    /// Starts the process of a scheduler or an executor.
    pub(super) fn start_part(&mut self, host: HostId, part: Part) {
        let (now_us, course) = (self.now_us, Arc::clone(&self.course));
        let folder = self.folder.path().join(format!("{host}"));
        match part {
            Part::Scheduler(number) => self.hosts[host].start(now_us, queries::scheduler(number, course)),
            Part::Executor(number) => self.hosts[host].start(now_us, queries::executor(number, folder, course)),
        }
    }

    /// Tasks of the runtime, by process of theirs.
    pub(super) fn tasks_of_queries(&self) -> BTreeMap<String, usize> {
        let hosts = self.plan.names().into_iter().zip(&self.hosts).enumerate();
        hosts.filter(|(id, _)| self.plan.part(*id).is_some()).map(|(_, (name, host))| (name, host.tasks())).collect()
    }

    /// No job, task, word or transfer is left over, nor anything that a process began beside these.
    pub(super) fn left_of_queries(&self) -> Option<Violation> {
        let mut left = self.course.queries.left();
        let most = TASKS_MAX + TASKS_BY_HOST_MAX * self.hosts.len();
        let many = self.tasks_of_queries().into_iter().filter(|(_, tasks)| *tasks > most);
        left.extend(many.map(|(name, tasks)| format!("{name} has {tasks} tasks of its runtime at rest, {most} are the most")));
        (!left.is_empty()).then(|| Violation::new(Rule::NothingLeft, left.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::plan::STORE;

    #[test]
    fn schedulers_and_executors_come_behind_all_others_and_take_no_fault_away() {
        for seed in [8, 9] {
            let one = Plan::of(seed, 600_000).with_standby();
            let two = one.clone().with_queries();
            let names = two.names();
            assert_eq!(names[..one.names().len()], one.names());
            for (host, name) in names.iter().enumerate() {
                let part = match two.part(host) {
                    Some(Part::Scheduler(number)) => format!("scheduler{number}"),
                    Some(Part::Executor(number)) => format!("executor{number}"),
                    None => one.names()[host].clone(),
                };
                assert_eq!(*name, part);
            }
            assert!((0..one.names().len()).all(|host| one.part(host).is_none()), "there are none without them");
            assert!(one.faults.iter().all(|fault| two.faults.contains(fault)));
            let theirs = two.faults.iter().filter(|fault| !one.faults.contains(fault));
            let (of_workers, theirs): (Vec<&Fault>, Vec<&Fault>) =
                theirs.partition(|fault| matches!(fault.what, What::NoFiles { .. }));
            let theirs = theirs.into_iter();
            let is_of_worker = |fault: &&Fault| match fault.what {
                What::NoFiles { host } => (two.worker(0)..two.client(0)).contains(&host),
                _ => false,
            };
            assert!((1..60).contains(&of_workers.len()) && of_workers.iter().all(is_of_worker), "{of_workers:?}");
            let kinds: std::collections::BTreeSet<&str> = theirs.clone().map(|fault| fault.what.kind()).collect();
            assert!(kinds.is_superset(&["crash", "stop", "partition", "cut", "reads_nothing", "breaks"].into()), "{kinds:?}");
            let is_between = |what: &What| matches!(what, What::Cut { .. } | What::Breaks { .. });
            assert!(theirs.clone().all(|fault| is_between(&fault.what) || two.is_of_queries(&fault.what)));
            let (mut among_them, mut among_others) = (0, 0);
            for fault in theirs.clone() {
                if let What::Breaks { a, b, .. } = fault.what {
                    assert!(a != b && two.part(a).is_some() == two.part(b).is_some(), "{fault:?}");
                    *(if two.part(a).is_some() { &mut among_them } else { &mut among_others }) += 1;
                }
            }
            assert!(among_them > among_others && among_others > 0, "{among_them}, {among_others}");
            assert!(!one.faults.iter().any(|fault| two.is_of_queries(&fault.what)));
            let touches = |fault: &&Fault| match fault.what {
                What::Partition { a, b } | What::Cut { a, b } => a == b || a == STORE || b == STORE,
                _ => false,
            };
            assert_eq!(theirs.filter(touches).count(), 0);
        }
    }
}
