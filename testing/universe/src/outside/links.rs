//! Links from one host to another: which are blocked, refuse, are slow or lose packets, and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand::rngs::StdRng;

use super::packet::{HostId, Packet};

/// When nothing got through for so long, a connection is given up.
const GIVEN_UP_US: u64 = 15_000_000;

/// From which host to which.
type Link = (HostId, HostId);

/// What is wrong with which links.
#[derive(Default)]
pub(super) struct Links {
    /// Those that let nothing through, since when, and whether their connections were given up.
    blocked: BTreeMap<Link, (u64, bool)>,
    /// Packets that wait until those let them through.
    held: Vec<Packet>,
    /// Those by which whoever wants a connection is told at once that there is none.
    refusing: BTreeSet<Link>,
    slow_us: BTreeMap<Link, u64>,
    /// Those by which one in so many packets is lost, and its connection breaks; faults may overlap.
    breaking: BTreeMap<Link, Vec<u32>>,
    /// When connections broke so, and between whom.
    pub(super) breaks: Vec<(u64, HostId, HostId)>,
}

impl Links {
    pub(super) fn block(&mut self, link: Link, now_us: u64) {
        self.blocked.entry(link).or_insert((now_us, false));
    }

    /// A link lets everything through again; what it held, in its order.
    pub(super) fn unblock(&mut self, link: Link) -> Vec<Packet> {
        self.blocked.remove(&link);
        self.held.extract_if(.., |packet| (packet.from, packet.to) == link).collect()
    }

    pub(super) fn is_blocked(&self, link: Link) -> bool {
        self.blocked.contains_key(&link)
    }

    /// A packet waits until its link lets it through.
    pub(super) fn hold(&mut self, packet: Packet) {
        self.held.push(packet);
    }

    /// The links that have let nothing through for so long that their connections are given up, each once. What they held is gone.
    pub(super) fn give_up(&mut self, now_us: u64) -> BTreeSet<Link> {
        let mut over = BTreeSet::new();
        for (link, (since_us, given_up)) in &mut self.blocked {
            if !*given_up && *since_us + GIVEN_UP_US <= now_us {
                *given_up = true;
                over.insert(*link);
            }
        }
        self.held.retain(|packet| !over.contains(&(packet.from, packet.to)));
        over
    }

    pub(super) fn refuses(&self, link: Link) -> bool {
        self.refusing.contains(&link)
    }

    pub(super) fn set_refusing(&mut self, link: Link, refuses: bool) {
        match refuses {
            true => self.refusing.insert(link),
            false => self.refusing.remove(&link),
        };
    }

    /// Adds so much to what a packet takes.
    pub(super) fn slow(&mut self, link: Link, by_us: u64) {
        self.slow_us.insert(link, by_us);
    }

    pub(super) fn slow_us(&self, link: Link) -> u64 {
        self.slow_us.get(&link).copied().unwrap_or(0)
    }

    /// One in so many packets is lost from now on, or no longer.
    pub(super) fn set_breaking(&mut self, link: Link, one_in: u32, is_breaking: bool) {
        let all = self.breaking.entry(link).or_default();
        if is_breaking {
            all.push(one_in);
        } else {
            let place = all.iter().position(|each| *each == one_in).expect("what ends has begun");
            all.remove(place);
        }
    }

    /// Whether a packet is lost that arrives by a link.
    pub(super) fn loses(&mut self, link: Link, now_us: u64, chance: &mut StdRng) -> bool {
        let Some(one_in) = self.breaking.get(&link).and_then(|all| all.iter().min().copied()) else { return false };
        let is_lost = chance.random_ratio(1, one_in);
        if is_lost {
            self.breaks.push((now_us, link.0, link.1));
        }
        is_lost
    }
}
