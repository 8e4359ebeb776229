//! The S3 gateway as a process of a world: which worlds have one and what goes wrong with it, who may come in, what it holds, and what
//! clients have asked it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use forebay_runtime::time::sleep;
use forebay_s3::{AccessRule, GatewaySettings};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::hosts::{self, Seen};
use super::plan::{FAULT_EVERY_MS, Fault, GATEWAY, Plan, STORE};
use super::what::{Disk, What};
use crate::outside::packet::HostId;

/// An access key's id and secret.
pub(super) type Credentials = (&'static str, &'static str);

/// Where it listens on its host.
pub(super) const ADDRESS: &str = "gateway:7490";
/// May read and write everything, only read, or only use one mount; and one that nobody gave.
pub(super) const WRITER: Credentials = ("writer", "what the writer's program knows");
pub(super) const READER: Credentials = ("reader", "what the reader's program knows");
pub(super) const ELSEWHERE: Credentials = ("elsewhere", "what another team's program knows");
pub(super) const STRANGER: Credentials = ("writer", "what somebody thinks that it is");

/// What of a seed its faults follow from, of which there is one in every second ten seconds: all others are as they are without it.
const OF_GATEWAY: u64 = 0x6761_7465;
/// Worlds of seeds that leave this by so many have one.
const WITH_GATEWAY: (u64, u64) = (2, 3);
const STARTED_AGAIN_AFTER: Duration = Duration::from_secs(1);
const HELD_TOLD_EVERY: Duration = Duration::from_secs(1);

/// The gateway, over a client of its own, started until it is there. Of one key all but this mount is not its own.
pub(super) async fn gateway(seen: Arc<Seen>, has_standby: bool, elsewhere: &str) {
    let mut node = hosts::joined(has_standby);
    let rule = |(id, secret): Credentials| AccessRule::new(id, secret);
    let elsewhere = rule(ELSEWHERE).only(vec![elsewhere.parse().expect("a name")]);
    let keys = vec![rule(WRITER), rule(READER).read_only(), elsewhere];
    let settings = GatewaySettings { keys, ..GatewaySettings::new(ADDRESS) };
    let client = hosts::client(has_standby).await;
    loop {
        match node.serve_s3(client.clone(), settings.clone()).await {
            Ok(gateway) => loop {
                *seen.held.lock() = gateway.holding();
                sleep(HELD_TOLD_EVERY).await;
            },
            Err(error) => tracing::warn!(%error, "gateway not started"),
        }
        sleep(STARTED_AGAIN_AFTER).await;
    }
}

/// An upload in parts that its client has begun: completed by then, or to be given up at the end.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) bucket: &'static str,
    pub(super) key: String,
    pub(super) id: String,
}

/// What clients have asked the gateway.
#[derive(Default)]
pub(super) struct Asked {
    /// Requests that were served, by kind.
    served: Mutex<BTreeMap<&'static str, u64>>,
    unfinished: Mutex<Vec<Unfinished>>,
    /// Uploads that may have been begun without a word to who has asked.
    unanswered: AtomicU64,
}

impl Asked {
    pub(super) fn note_served(&self, kind: &'static str) {
        *self.served.lock().entry(kind).or_default() += 1;
    }

    pub(super) fn served(&self) -> BTreeMap<&'static str, u64> {
        self.served.lock().clone()
    }

    /// An upload is asked for: it counts as one that nobody was told of until it is known.
    pub(super) fn note_begins(&self) {
        self.unanswered.fetch_add(1, SeqCst);
    }

    pub(super) fn note_unfinished(&self, upload: Unfinished) {
        self.unanswered.fetch_sub(1, SeqCst);
        self.unfinished.lock().push(upload);
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.load(SeqCst)
    }

    /// All of them, and none is left here.
    pub(super) fn take_unfinished(&self) -> Vec<Unfinished> {
        std::mem::take(&mut self.unfinished.lock())
    }
}

impl Plan {
    /// The same with a gateway, and faults of it, where the seed is one of those whose worlds have one. Behind the second coordinator: the
    /// gateway's host is the last one then, and stays where it is when others come behind it.
    pub(crate) fn with_gateway(mut self) -> Self {
        let (left, by) = WITH_GATEWAY;
        self.has_gateway = self.seed % by == left;
        let Some(gateway) = self.gateway() else { return self };
        assert_eq!(gateway + 1, self.names().len(), "hosts that come behind the gateway are added after it");
        let mut chance = StdRng::seed_from_u64(self.seed ^ OF_GATEWAY);
        for fault in &mut self.faults {
            if let What::Split { side, .. } = &mut fault.what
                && chance.random()
            {
                side.push(gateway);
            }
        }
        for period in 0..self.for_ms / FAULT_EVERY_MS {
            let (at_ms, for_ms) = (chance.random_range(0..FAULT_EVERY_MS), chance.random_range(100..8_000));
            let what = self.draw_of_gateway(gateway, &mut chance);
            if chance.random() {
                self.faults.push(Fault { at_ms: period * FAULT_EVERY_MS + at_ms, for_ms, what });
            }
        }
        self.faults.sort_by_key(|fault| fault.at_ms);
        self
    }

    /// The gateway's host, where there is one.
    pub(crate) fn gateway(&self) -> Option<HostId> {
        self.names().iter().position(|name| name == GATEWAY)
    }

    fn draw_of_gateway(&self, gateway: HostId, chance: &mut StdRng) -> What {
        let (other, with_host) = (chance.random_range(STORE..self.client(self.clients)), chance.random());
        match chance.random_range(0..12) {
            0..=3 => What::Crash { host: gateway, with_host, disk: Disk::Kept },
            4 => What::Stop { host: gateway },
            5 => What::Partition { a: gateway, b: other },
            6 => What::OneWay { from: gateway, to: other },
            7 => What::OneWay { from: other, to: gateway },
            8 => What::Cut { a: gateway, b: other },
            9 => What::ReadsNothing { host: gateway },
            10 => What::NoDescriptors { host: gateway },
            _ => What::ClockJumps { host: gateway, by_ms: chance.random_range(-600_000..600_000) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_in_three_has_a_gateway_with_all_of_its_faults_and_each_other_fault_as_before() {
        let with: Vec<Plan> = (0..180).map(|seed| Plan::of(seed, 60_000).with_standby().with_gateway()).collect();
        assert_eq!(with.iter().filter(|plan| plan.has_gateway).count(), 60);
        let mut kinds = std::collections::BTreeSet::new();
        for plan in &with {
            let before = Plan::of(plan.seed, 60_000).with_standby();
            let Some(gateway) = plan.gateway() else {
                assert_eq!((&plan.faults, plan.names()), (&before.faults, before.names()));
                continue;
            };
            assert_eq!((plan.names()[gateway].as_str(), gateway), ("gateway", before.names().len()));
            let is_new = |fault: &&Fault| !before.faults.contains(fault) && !matches!(fault.what, What::Split { .. });
            let new: Vec<&Fault> = plan.faults.iter().filter(is_new).collect();
            assert_eq!(new.len(), plan.faults.len() - before.faults.len(), "{new:?}");
            kinds.extend(new.iter().map(|fault| fault.what.kind()));
        }
        let all = ["clock_jumps", "crash", "cut", "no_descriptors", "one_way", "partition", "reads_nothing", "stop"];
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
    }
}
