//! The worker's numbers for reports and metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forebay_protocol::WorkerReport;
use forebay_types::WorkerId;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// The worker's numbers: those of its report, and the same for whoever scrapes metrics.
pub(crate) struct Meters {
    reads: AtomicU64,
    bytes_served: AtomicU64,
    bytes_hit: AtomicU64,
    reads_counter: Counter,
    served_counter: Counter,
    hit_counter: Counter,
    fetched_counter: Counter,
    passed_counter: Counter,
    written_counter: Counter,
    discovered_counter: Counter,
    read_seconds: Histogram,
}

impl Meters {
    /// Numbers from 0. The process's recorder of metrics must be in place before.
    pub(crate) fn new() -> Self {
        Self {
            reads: AtomicU64::new(0),
            bytes_served: AtomicU64::new(0),
            bytes_hit: AtomicU64::new(0),
            reads_counter: counter!("forebay_worker_reads"),
            served_counter: counter!("forebay_worker_served_bytes"),
            hit_counter: counter!("forebay_worker_hit_bytes"),
            fetched_counter: counter!("forebay_worker_fetched_bytes"),
            passed_counter: counter!("forebay_worker_passed_through_bytes"),
            written_counter: counter!("forebay_worker_written_bytes"),
            discovered_counter: counter!("forebay_worker_discovered_objects"),
            read_seconds: histogram!("forebay_worker_read_seconds"),
        }
    }

    /// So many reads gave so many bytes, of which some were in a tier.
    pub(crate) fn read(&self, reads: u64, bytes: u64, hit_bytes: u64) {
        self.reads.fetch_add(reads, Relaxed);
        self.bytes_served.fetch_add(bytes, Relaxed);
        self.bytes_hit.fetch_add(hit_bytes, Relaxed);
        self.reads_counter.increment(reads);
        self.served_counter.increment(bytes);
        self.hit_counter.increment(hit_bytes);
    }

    /// A read took so long here.
    pub(crate) fn took(&self, time: Duration) {
        self.read_seconds.record(time.as_secs_f64());
    }

    /// Bytes came from shared storage.
    pub(crate) fn fetched(&self, bytes: u64) {
        self.fetched_counter.increment(bytes);
    }

    /// Bytes went to who asked without staying in a tier.
    pub(crate) fn passed(&self, bytes: u64) {
        self.passed_counter.increment(bytes);
    }

    /// Bytes were written to shared storage.
    pub(crate) fn written(&self, bytes: u64) {
        self.written_counter.increment(bytes);
    }

    /// Objects were found new or changed.
    pub(crate) fn discovered(&self, objects: u64) {
        self.discovered_counter.increment(objects);
    }

    /// Reads, bytes served and bytes hit since start.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        (self.reads.load(Relaxed), self.bytes_served.load(Relaxed), self.bytes_hit.load(Relaxed))
    }
}

/// Sets the gauges of a worker, one of several in the process maybe, to what its report says; `nodes` are its temporary nodes, and
/// their bytes.
pub(crate) fn publish(id: WorkerId, report: &WorkerReport, in_place_bytes: u64, nodes: (u64, u64)) {
    let worker = id.to_string();
    let set = |gauge: Gauge, value: u64| gauge.set(value as f64);
    for (tier, (capacity, used, pinned)) in [("dram", report.dram), ("disk", report.disk)] {
        set(gauge!("forebay_worker_tier_capacity_bytes", "tier" => tier, "worker" => worker.clone()), capacity);
        set(gauge!("forebay_worker_tier_used_bytes", "tier" => tier, "worker" => worker.clone()), used);
        set(gauge!("forebay_worker_tier_pinned_bytes", "tier" => tier, "worker" => worker.clone()), pinned);
    }
    set(gauge!("forebay_worker_segments", "worker" => worker.clone()), report.segments);
    set(gauge!("forebay_worker_warnings", "worker" => worker.clone()), report.warnings.len() as u64);
    set(gauge!("forebay_worker_in_place_pinned_bytes", "worker" => worker.clone()), in_place_bytes);
    set(gauge!("forebay_worker_temporary_nodes", "worker" => worker.clone()), nodes.0);
    set(gauge!("forebay_worker_temporary_bytes", "worker" => worker.clone()), nodes.1);
}
