//! The tiers of all workers around a working set: who has which segment as a whole, and when a disk has read it.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::{OperationId, PageRun, SegmentId, WorkerId};

use super::settings::MixApartSettings;
use super::tiers::{Counts, Tiers};
use crate::workload::Micros;

/// What has left a worker's tiers.
pub(super) type Gone = Vec<(SegmentId, PageRun)>;

pub(super) struct Cache {
    workers: Vec<Tiers>,
    /// Of each segment, the workers that have all of it.
    holders: BTreeMap<u64, BTreeSet<WorkerId>>,
    /// When each worker's disk has done what it was asked.
    disk_free: Vec<Micros>,
    disk_bytes_per_sec: f64,
}

impl Cache {
    /// Empty tiers; none where they have no bounds.
    pub(super) fn new(settings: &MixApartSettings) -> Option<Self> {
        let (dram, disk) = settings.worker_bytes()?;
        Some(Self {
            workers: (0..settings.workers).map(|_| Tiers::new(dram, disk, settings.pages())).collect(),
            holders: BTreeMap::new(),
            disk_free: vec![0; settings.workers as usize],
            disk_bytes_per_sec: settings.disk_bytes_per_sec,
        })
    }

    pub(super) fn holders(&self, segment: u64) -> Vec<WorkerId> {
        self.holders.get(&segment).into_iter().flatten().copied().collect()
    }

    pub(super) fn has(&self, at: WorkerId, segment: u64) -> bool {
        self.workers[at.0 as usize].has(segment)
    }

    /// A transfer begins; returns how many bytes it has to bring.
    pub(super) fn begin(&mut self, to: WorkerId, segment: u64) -> u64 {
        self.workers[to.0 as usize].begin(segment)
    }

    /// A transfer has ended; returns what it took out.
    pub(super) fn arrive(&mut self, to: WorkerId, segment: u64, ahead_for: Option<OperationId>, now: Micros) -> Gone {
        self.workers[to.0 as usize].arrive(segment, ahead_for, now);
        self.renew(to, segment)
    }

    /// An operation reads a segment at a worker; returns how much of it is on disk, when that has been read, and what it took out.
    pub(super) fn read(&mut self, at: WorkerId, segment: u64, operation: OperationId, now: Micros) -> (u64, Micros, Gone) {
        let worker = &mut self.workers[at.0 as usize];
        let bytes = worker.on_disk_bytes(segment);
        worker.read(segment, operation);
        let mut ready = now;
        if bytes > 0 {
            let free = &mut self.disk_free[at.0 as usize];
            *free = now.max(*free) + (bytes as f64 / self.disk_bytes_per_sec * 1e6) as Micros;
            ready = *free;
        }
        (bytes, ready, self.renew(at, segment))
    }

    /// An operation reads nothing any more.
    pub(super) fn ended(&mut self, operation: OperationId, now: Micros) {
        self.workers.iter_mut().for_each(|worker| worker.ended(operation, now));
    }

    /// Segments of all workers, each as often as it is there.
    pub(super) fn copies(&self) -> usize {
        self.holders.values().map(BTreeSet::len).sum()
    }

    /// Of all workers, since the start.
    pub(super) fn counts(&self) -> Counts {
        self.workers.iter().fold(Counts::default(), |sum, worker| sum.with(worker.counts))
    }

    /// Notes whether a worker has a segment, and what it has no more.
    fn renew(&mut self, at: WorkerId, segment: u64) -> Gone {
        let worker = &mut self.workers[at.0 as usize];
        let gone = worker.gone();
        if worker.has(segment) {
            self.holders.entry(segment).or_default().insert(at);
        }
        for (left, _) in &gone {
            let left = left.0 as u64;
            if !worker.has(left)
                && let Some(holders) = self.holders.get_mut(&left)
            {
                holders.remove(&at);
            }
        }
        gone
    }
}
