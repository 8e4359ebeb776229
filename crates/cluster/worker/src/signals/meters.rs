//! The worker's numbers for reports and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forebay_metrics::{Counter, Gauges, Histogram, table};
use forebay_protocol::{ReadCounters, WorkerReport};
use forebay_types::WorkerId;

/// The slowest place that the bytes of a read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedFrom {
    Dram,
    Disk,
    Storage,
}

/// Reads since the start: all of this worker, or those of one mount.
#[derive(Default)]
pub(crate) struct ReadSums {
    reads: AtomicU64,
    bytes_served: AtomicU64,
    bytes_hit: AtomicU64,
    /// By [`ServedFrom`], in its order: reads, and microseconds of all of them.
    times: [(AtomicU64, AtomicU64); 3],
}

impl ReadSums {
    fn read(&self, reads: u64, bytes: u64, hit_bytes: u64) {
        self.reads.fetch_add(reads, Relaxed);
        self.bytes_served.fetch_add(bytes, Relaxed);
        self.bytes_hit.fetch_add(hit_bytes, Relaxed);
    }

    fn took(&self, served: ServedFrom, time: Duration) {
        let (reads, micros) = &self.times[served as usize];
        reads.fetch_add(1, Relaxed);
        micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn times(&self, served: ServedFrom) -> (u64, u64) {
        let (reads, micros) = &self.times[served as usize];
        (reads.load(Relaxed), micros.load(Relaxed))
    }

    /// As a report has them.
    pub(crate) fn counters(&self) -> ReadCounters {
        let (storage_reads, storage_read_us) = self.times(ServedFrom::Storage);
        ReadCounters {
            reads: self.reads.load(Relaxed),
            bytes_served: self.bytes_served.load(Relaxed),
            bytes_hit: self.bytes_hit.load(Relaxed),
            storage_reads,
            storage_read_us,
            tier_read_us: self.times(ServedFrom::Dram).1.saturating_add(self.times(ServedFrom::Disk).1),
        }
    }
}

/// The worker's numbers: those of its report, and the same for whoever scrapes metrics.
pub(crate) struct Meters {
    all: ReadSums,
    reads_counter: Arc<Counter>,
    served_counter: Arc<Counter>,
    hit_counter: Arc<Counter>,
    /// Bytes that came from shared storage.
    pub(crate) fetched: Arc<Counter>,
    /// Bytes that went to who asked without staying in a tier.
    pub(crate) passed: Arc<Counter>,
    /// Bytes that were written to shared storage.
    pub(crate) written: Arc<Counter>,
    /// Objects that were found new or changed.
    pub(crate) discovered: Arc<Counter>,
    /// By [`ServedFrom`], in its order.
    read_seconds: [Arc<Histogram>; 3],
}

impl Meters {
    /// Numbers from 0.
    pub(crate) fn new() -> Self {
        forebay_metrics::begin("worker");
        Self {
            all: ReadSums::default(),
            reads_counter: table::WORKER_READS.only(),
            served_counter: table::WORKER_SERVED_BYTES.only(),
            hit_counter: table::WORKER_HIT_BYTES.only(),
            fetched: table::WORKER_FETCHED_BYTES.only(),
            passed: table::WORKER_PASSED_THROUGH_BYTES.only(),
            written: table::WORKER_WRITTEN_BYTES.only(),
            discovered: table::WORKER_DISCOVERED_OBJECTS.only(),
            read_seconds: ["dram", "disk", "storage"].map(|served| table::WORKER_READ_SECONDS.with([served])),
        }
    }

    /// So many reads of a mount, where it is known, gave so many bytes, of which some were in a tier.
    pub(crate) fn read(&self, mount: Option<&ReadSums>, reads: u64, bytes: u64, hit_bytes: u64) {
        debug_assert!(hit_bytes <= bytes, "what is found is a part of what is given");
        [Some(&self.all), mount].into_iter().flatten().for_each(|sums| sums.read(reads, bytes, hit_bytes));
        self.reads_counter.add(reads);
        self.served_counter.add(bytes);
        self.hit_counter.add(hit_bytes);
    }

    /// A read of a mount took so long here.
    pub(crate) fn took(&self, mount: Option<&ReadSums>, served: ServedFrom, time: Duration) {
        self.read_seconds[served as usize].record(time);
        [Some(&self.all), mount].into_iter().flatten().for_each(|sums| sums.took(served, time));
    }

    /// How often reads were served from somewhere since the start, and how many microseconds all of them took.
    pub(crate) fn times(&self, served: ServedFrom) -> (u64, u64) {
        self.all.times(served)
    }

    /// Reads since the start, of all mounts.
    pub(crate) fn totals(&self) -> ReadCounters {
        self.all.counters()
    }
}

/// What stands in no report of a worker.
pub(crate) struct Standing {
    pub(crate) in_place_bytes: u64,
    /// Temporary nodes, and their bytes.
    pub(crate) nodes: (u64, u64),
    /// Calls under way or waiting at its shards.
    pub(crate) shard_queue: u64,
    /// Shards that it writes under a claim, the bytes that shared storage has not of them, and how long it has not the first.
    pub(crate) shard_claims: (u64, u64, Duration),
    /// Disks of its disk tier that are left out.
    pub(crate) disks_out: u64,
}

/// Sets the gauges of a worker, one of several in the process maybe.
#[expect(clippy::cast_precision_loss, reason = "gauges are floats; bytes above 2^53 are shown as nearly as they can be")]
pub(crate) fn publish(id: WorkerId, report: &WorkerReport, standing: &Standing) {
    let worker = id.to_string();
    for (tier, (capacity, used, pinned)) in [("dram", report.dram), ("disk", report.disk)] {
        let set = |gauges: &Gauges<2>, value: u64| gauges.with([tier, &worker]).set(value as f64);
        set(&table::WORKER_TIER_CAPACITY_BYTES, capacity);
        set(&table::WORKER_TIER_USED_BYTES, used);
        set(&table::WORKER_TIER_PINNED_BYTES, pinned);
    }
    let set = |gauges: &Gauges<1>, value: u64| gauges.with([&worker]).set(value as f64);
    set(&table::WORKER_SEGMENTS, report.segments);
    set(&table::WORKER_WARNINGS, report.warnings.len() as u64);
    set(&table::WORKER_IN_PLACE_PINNED_BYTES, standing.in_place_bytes);
    set(&table::WORKER_TEMPORARY_NODES, standing.nodes.0);
    set(&table::WORKER_TEMPORARY_BYTES, standing.nodes.1);
    set(&table::WORKER_SHARD_QUEUE, standing.shard_queue);
    let (claimed, behind_bytes, behind) = standing.shard_claims;
    set(&table::WORKER_SHARD_CLAIMED, claimed);
    set(&table::WORKER_SHARD_BEHIND_BYTES, behind_bytes);
    table::WORKER_SHARD_BEHIND_SECONDS.with([&worker]).set(behind.as_secs_f64());
    set(&table::WORKER_DISKS_OUT, standing.disks_out);
}
