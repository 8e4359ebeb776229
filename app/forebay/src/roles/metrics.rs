use std::fmt::Write;
use std::sync::Arc;

use forebay_coordinator::Coordinator;
use forebay_protocol::{ClusterStatus, PlacementStatus, StorageCounters, WorkerState};
use forebay_types::{Error, MountName, Result, WorkerId};
use forebay_worker::Worker;
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The recorder of this process. Made before the roles start, as they record from then on.
pub(crate) fn install() -> Result<PrometheusHandle> {
    PrometheusBuilder::new().install_recorder().map_err(|error| Error::internal(format!("can't record metrics: {error}")))
}

/// The process' metrics: what the roles recorded, and what the coordinator reports when it is asked.
pub(crate) struct Metrics {
    pub(crate) handle: PrometheusHandle,
    pub(crate) coordinator: Option<Arc<Coordinator>>,
    pub(crate) workers: Vec<Arc<Worker>>,
}

impl Metrics {
    /// The text that Prometheus reads.
    pub(crate) fn render(&self) -> String {
        gauge!("forebay_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        if let Some(coordinator) = &self.coordinator {
            record_cluster(&coordinator.status());
            record_placement(&coordinator.placement(0));
        }
        self.handle.run_upkeep();
        let storage: Vec<_> = self.workers.iter().map(|worker| (worker.id(), worker.storage())).collect();
        self.handle.render() + &storage_text(&storage)
    }
}

/// What workers asked of shared storage. A recorder keeps every series for ever, and mounts come and go.
fn storage_text(workers: &[(WorkerId, Vec<(MountName, StorageCounters)>)]) -> String {
    let requests = |counters: &StorageCounters| {
        vec![
            ("get", counters.gets),
            ("head", counters.heads),
            ("list", counters.lists),
            ("put", counters.puts),
            ("delete", counters.deletes),
            ("retry", counters.retries),
        ]
    };
    let bytes = |counters: &StorageCounters| vec![("in", counters.bytes_in), ("out", counters.bytes_out)];
    let mut text = String::new();
    let mut family = |name: &str, label: &str, numbers: &dyn Fn(&StorageCounters) -> Vec<(&'static str, u64)>| {
        let of_mounts = workers.iter().flat_map(|(worker, mounts)| mounts.iter().map(move |of_mount| (worker, of_mount)));
        let lines = of_mounts.flat_map(|(worker, (mount, counters))| {
            let series = move |(kind, number): (&str, u64)| {
                format!("{name}{{mount=\"{mount}\",{label}=\"{kind}\",worker=\"{worker}\"}} {number}\n")
            };
            numbers(counters).into_iter().map(series).collect::<Vec<_>>()
        });
        let lines: String = lines.collect();
        if !lines.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(text, "# TYPE {name} counter\n{lines}\n");
        }
    };
    family("forebay_worker_storage_requests", "kind", &requests);
    family("forebay_worker_storage_bytes", "direction", &bytes);
    text
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of mounts and workers are small")]
fn record_cluster(status: &ClusterStatus) {
    gauge!("forebay_coordinator_epoch").set(status.epoch as f64);
    gauge!("forebay_coordinator_uptime_seconds").set(status.uptime.as_secs_f64());
    gauge!("forebay_coordinator_mounts").set(status.mounts.len() as f64);
    gauge!("forebay_coordinator_pins").set(status.pins.len() as f64);
    for (name, state) in [("live", WorkerState::Live), ("lost", WorkerState::Lost)] {
        let count = status.workers.iter().filter(|(_, is, _)| *is == state).count();
        gauge!("forebay_coordinator_workers", "state" => name).set(count as f64);
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of segments are small")]
fn record_placement(status: &PlacementStatus) {
    gauge!("forebay_coordinator_segments").set(status.segments_known as f64);
    gauge!("forebay_coordinator_routes").set(status.routes as f64);
    gauge!("forebay_coordinator_replicas_lower_bound").set(status.lower_bound as f64);
    let replicas = [("planned", status.replicas_planned), ("held", status.replicas_held), ("loading", status.replicas_loading)];
    for (state, count) in replicas {
        gauge!("forebay_coordinator_replicas", "state" => state).set(count as f64);
    }
    gauge!("forebay_coordinator_planning_seconds").set(status.planning.as_secs_f64());
    gauge!("forebay_coordinator_unsatisfied").set(status.unsatisfied.len() as f64);
    counter!("forebay_coordinator_plans").absolute(status.runs);
    counter!("forebay_coordinator_replicas_ordered").absolute(status.replicas_ordered);
    counter!("forebay_coordinator_replicas_dropped").absolute(status.replicas_dropped);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_storage_end_with_their_mount() {
        let counters = StorageCounters { gets: 3, bytes_in: 7, ..StorageCounters::default() };
        let of = |names: &[&str]| names.iter().map(|name| (name.parse().unwrap(), counters)).collect::<Vec<_>>();
        let text = storage_text(&[(WorkerId(1), of(&["lake", "nas"])), (WorkerId(2), of(&["lake"]))]);
        assert_eq!(text.matches("# TYPE").count(), 2, "once a name: {text}");
        let worker = WorkerId(2);
        assert!(
            text.contains(&format!("forebay_worker_storage_requests{{mount=\"lake\",kind=\"get\",worker=\"{worker}\"}} 3\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("forebay_worker_storage_bytes{{mount=\"lake\",direction=\"in\",worker=\"{worker}\"}} 7\n")),
            "{text}"
        );
        assert!(!storage_text(&[(WorkerId(1), of(&["nas"]))]).contains("lake"));
        assert_eq!(storage_text(&[(WorkerId(1), Vec::new())]), "");
    }
}
