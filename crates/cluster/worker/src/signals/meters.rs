//! The worker's numbers for reports and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forebay_metrics::{Counter, Gauge, Gauges, Histogram, table};
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

/// The gauges of a worker, one of several in the process maybe: found once, as they are set with each heartbeat.
pub(crate) struct Shown {
    /// Capacity, used and pinned bytes, of DRAM and of the disk.
    tiers: [[Arc<Gauge>; 3]; 2],
    decoded_room: Arc<Gauge>,
    segments: Arc<Gauge>,
    warnings: Arc<Gauge>,
    in_place_bytes: Arc<Gauge>,
    nodes: [Arc<Gauge>; 2],
    shard_queue: Arc<Gauge>,
    /// Claimed shards, and the bytes and seconds that shared storage is behind.
    shard_claims: [Arc<Gauge>; 3],
    disks_out: Arc<Gauge>,
}

impl Shown {
    /// Those of a worker.
    pub(crate) fn of(id: WorkerId) -> Self {
        let worker = id.to_string();
        let of_tier = |gauges: &Gauges<2>, tier: &str| gauges.with([tier, &worker]);
        let of = |gauges: &Gauges<1>| gauges.with([&worker]);
        let tier = |tier: &str| {
            [
                of_tier(&table::WORKER_TIER_CAPACITY_BYTES, tier),
                of_tier(&table::WORKER_TIER_USED_BYTES, tier),
                of_tier(&table::WORKER_TIER_PINNED_BYTES, tier),
            ]
        };
        Self {
            tiers: [tier("dram"), tier("disk")],
            decoded_room: of(&table::WORKER_DECODED_ROOM_BYTES),
            segments: of(&table::WORKER_SEGMENTS),
            warnings: of(&table::WORKER_WARNINGS),
            in_place_bytes: of(&table::WORKER_IN_PLACE_PINNED_BYTES),
            nodes: [of(&table::WORKER_TEMPORARY_NODES), of(&table::WORKER_TEMPORARY_BYTES)],
            shard_queue: of(&table::WORKER_SHARD_QUEUE),
            shard_claims: [
                of(&table::WORKER_SHARD_CLAIMED),
                of(&table::WORKER_SHARD_BEHIND_BYTES),
                of(&table::WORKER_SHARD_BEHIND_SECONDS),
            ],
            disks_out: of(&table::WORKER_DISKS_OUT),
        }
    }

    /// Sets them.
    #[expect(clippy::cast_precision_loss, reason = "gauges are floats; bytes above 2^53 are shown as nearly as they can be")]
    pub(crate) fn set(&self, report: &WorkerReport, standing: &Standing) {
        let set = |gauge: &Gauge, value: u64| gauge.set(value as f64);
        for ([capacity, used, pinned], bytes) in self.tiers.iter().zip([report.dram, report.disk]) {
            set(capacity, bytes.0);
            set(used, bytes.1);
            set(pinned, bytes.2);
        }
        set(&self.decoded_room, report.form_room_bytes);
        set(&self.segments, report.segments);
        set(&self.warnings, report.warnings.len() as u64);
        set(&self.in_place_bytes, standing.in_place_bytes);
        set(&self.nodes[0], standing.nodes.0);
        set(&self.nodes[1], standing.nodes.1);
        set(&self.shard_queue, standing.shard_queue);
        let (claimed, behind_bytes, behind) = standing.shard_claims;
        set(&self.shard_claims[0], claimed);
        set(&self.shard_claims[1], behind_bytes);
        self.shard_claims[2].set(behind.as_secs_f64());
        set(&self.disks_out, standing.disks_out);
    }
}
