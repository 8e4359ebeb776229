//! What happens a second: what counters say at two looks.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use forebay_api::storage_requests;
use forebay_protocol::{StorageCounters, WorkerReport};
use forebay_types::WorkerId;
use serde::Serialize;

use super::sample::Sample;

/// Looks that are remembered.
pub(super) const KEPT: usize = 120;

/// Of what something is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    Cluster,
    Worker(WorkerId),
    Mount(String),
}

/// What is counted, or how much of it comes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Rates {
    /// Reads of workers.
    pub(super) reads: u64,
    /// Bytes given to readers.
    pub(super) served_bytes: u64,
    /// Of these, bytes that were in a tier when asked for.
    pub(super) hit_bytes: u64,
    /// Bytes from shared storage.
    pub(super) received_bytes: u64,
    /// Bytes to shared storage.
    pub(super) sent_bytes: u64,
    /// Requests to shared storage.
    pub(super) requests: u64,
}

impl Rates {
    fn of_report(report: &WorkerReport) -> Self {
        let storage = report.storage.iter().fold(Self::default(), |sum, (_, counters)| sum.and(Self::of_storage(counters)));
        Self { reads: report.reads, served_bytes: report.bytes_served, hit_bytes: report.bytes_hit, ..storage }
    }

    fn of_storage(counters: &StorageCounters) -> Self {
        let (received_bytes, sent_bytes) = (counters.bytes_in, counters.bytes_out);
        Self { received_bytes, sent_bytes, requests: storage_requests(counters), ..Self::default() }
    }

    fn and(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// What came since `old`, a second. What counts from zero again, as a worker that was started anew, has done nothing.
    fn since(self, old: Self, time: Duration) -> Self {
        let seconds = time.as_secs_f64().max(1e-3);
        self.with(old, |now, then| (now.saturating_sub(then) as f64 / seconds) as u64)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            reads: of(self.reads, other.reads),
            served_bytes: of(self.served_bytes, other.served_bytes),
            hit_bytes: of(self.hit_bytes, other.hit_bytes),
            received_bytes: of(self.received_bytes, other.received_bytes),
            sent_bytes: of(self.sent_bytes, other.sent_bytes),
            requests: of(self.requests, other.requests),
        }
    }
}

/// What happened a second between the last looks.
#[derive(Default)]
pub(super) struct History {
    last: Option<(Instant, BTreeMap<Of, Rates>)>,
    rates: BTreeMap<Of, VecDeque<Rates>>,
}

impl History {
    /// Remembers a look. What is not there any more is forgotten.
    pub(super) fn note(&mut self, sample: &Sample) {
        let counted = counted(sample);
        if let Some((then, old)) = &self.last {
            let time = sample.taken.saturating_duration_since(*then);
            for (of, now) in &counted {
                let Some(old) = old.get(of) else { continue };
                let rates = self.rates.entry(of.clone()).or_default();
                if rates.len() == KEPT {
                    rates.pop_front();
                }
                rates.push_back(now.since(*old, time));
            }
        }
        self.rates.retain(|of, _| counted.contains_key(of));
        self.last = Some((sample.taken, counted));
    }

    /// What happened a second before the last look; none until there were two.
    pub(super) fn now(&self, of: &Of) -> Option<Rates> {
        self.rates.get(of)?.back().copied()
    }

    /// The same of all looks, the oldest first.
    pub(super) fn series(&self, of: &Of, what: impl Fn(&Rates) -> u64) -> Vec<u64> {
        self.rates.get(of).map(|rates| rates.iter().map(what).collect()).unwrap_or_default()
    }
}

/// The counters of all.
fn counted(sample: &Sample) -> BTreeMap<Of, Rates> {
    let mut all = BTreeMap::new();
    let mut cluster = Rates::default();
    for (info, _, report) in &sample.status.workers {
        let counted = Rates::of_report(report);
        let of_workers = Rates { received_bytes: 0, sent_bytes: 0, requests: 0, ..counted };
        cluster = cluster.and(of_workers);
        all.insert(Of::Worker(info.id), counted);
    }
    for mount in &sample.status.mounts {
        let counted = Rates::of_storage(&mount.counters);
        cluster = cluster.and(counted);
        all.insert(Of::Mount(mount.mount.name.to_string()), counted);
    }
    all.insert(Of::Cluster, cluster);
    all
}
