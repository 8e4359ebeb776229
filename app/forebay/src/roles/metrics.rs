use std::sync::Arc;

use forebay_coordinator::Coordinator;
use forebay_protocol::{ClusterStatus, StorageCounters, WorkerReport, WorkerState};
use forebay_types::{Error, Result};
use forebay_worker::Worker;
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The recorder of this process. Made before the roles start, as they record from then on.
pub(crate) fn install() -> Result<PrometheusHandle> {
    PrometheusBuilder::new().install_recorder().map_err(|error| Error::internal(format!("can't record metrics: {error}")))
}

/// The process' metrics: what the roles recorded, and what they report when they are asked.
pub(crate) struct Metrics {
    pub(crate) handle: PrometheusHandle,
    pub(crate) coordinator: Option<Arc<Coordinator>>,
    pub(crate) worker: Option<Arc<Worker>>,
}

impl Metrics {
    /// The text that Prometheus reads.
    pub(crate) fn render(&self) -> String {
        gauge!("forebay_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        if let Some(worker) = &self.worker {
            record_worker(&worker.report());
        }
        if let Some(coordinator) = &self.coordinator {
            record_cluster(&coordinator.status());
        }
        self.handle.run_upkeep();
        self.handle.render()
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; past 2^53 bytes the last ones don't matter")]
fn record_worker(report: &WorkerReport) {
    for (tier, (capacity, used, kept)) in [("dram", report.dram), ("disk", report.disk)] {
        gauge!("forebay_tier_capacity_bytes", "tier" => tier).set(capacity as f64);
        gauge!("forebay_tier_used_bytes", "tier" => tier).set(used as f64);
        gauge!("forebay_tier_kept_bytes", "tier" => tier).set(kept as f64);
    }
    gauge!("forebay_segments").set(report.segments as f64);
    gauge!("forebay_warnings").set(report.warnings.len() as f64);
    for (mount, counters) in &report.storage {
        record_storage(&mount.0.to_string(), counters);
    }
}

fn record_storage(mount: &str, counters: &StorageCounters) {
    let requests = [
        ("get", counters.gets),
        ("head", counters.heads),
        ("list", counters.lists),
        ("put", counters.puts),
        ("delete", counters.deletes),
    ];
    for (kind, count) in requests {
        counter!("forebay_storage_requests_total", "mount" => mount.to_string(), "kind" => kind).absolute(count);
    }
    counter!("forebay_storage_retries_total", "mount" => mount.to_string()).absolute(counters.retries);
    counter!("forebay_storage_received_bytes_total", "mount" => mount.to_string()).absolute(counters.bytes_in);
    counter!("forebay_storage_sent_bytes_total", "mount" => mount.to_string()).absolute(counters.bytes_out);
    counter!("forebay_storage_socket_received_bytes_total", "mount" => mount.to_string()).absolute(counters.socket_bytes_in);
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of mounts and workers are small")]
fn record_cluster(status: &ClusterStatus) {
    gauge!("forebay_epoch").set(status.epoch as f64);
    gauge!("forebay_uptime_seconds").set(status.uptime.as_secs_f64());
    gauge!("forebay_mounts").set(status.mounts.len() as f64);
    gauge!("forebay_pins").set(status.pins.len() as f64);
    for (name, state) in [("live", WorkerState::Live), ("lost", WorkerState::Lost)] {
        let count = status.workers.iter().filter(|(_, is, _)| *is == state).count();
        gauge!("forebay_workers", "state" => name).set(count as f64);
    }
}
