use std::sync::Arc;

use forebay_coordinator::Coordinator;
use forebay_protocol::{ClusterStatus, PlacementStatus, WorkerState};
use forebay_types::{Error, Result};
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
        self.handle.render()
    }
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
