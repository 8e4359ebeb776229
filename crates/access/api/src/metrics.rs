//! What is looked up when somebody scrapes: the rest was recorded as it happened.

use std::sync::{Arc, OnceLock};

use forebay_metrics::{Counter, Gauge, table};
use forebay_protocol::{ClusterStatus, PlacementStatus, StorageCounters, WorkerState};
use forebay_types::{MountName, WorkerId};

use crate::Cluster;

/// What the workers of a process asked of the shared storage of each mount.
type OfStorage = Box<dyn Fn() -> Vec<(WorkerId, Vec<(MountName, StorageCounters)>)> + Send + Sync>;

/// Where numbers of a process come from that are not recorded; each is there when its role has started.
#[derive(Default)]
pub(crate) struct Numbers {
    cluster: OnceLock<Arc<dyn Cluster>>,
    storage: OnceLock<OfStorage>,
}

impl Numbers {
    /// The coordinator of this process has started. Nothing happens the second time.
    pub(crate) fn of_cluster(&self, cluster: Arc<dyn Cluster>) {
        let _ = self.cluster.set(cluster);
    }

    /// The workers of this process have started. Nothing happens the second time.
    pub(crate) fn of_storage(&self, storage: OfStorage) {
        let _ = self.storage.set(storage);
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self) -> String {
        table::BUILD_INFO.with([env!("CARGO_PKG_VERSION")]).set(1.0);
        if let Some(cluster) = self.cluster.get() {
            show_cluster(&cluster.status());
            show_placement(&cluster.placement(0));
        }
        if let Some(storage) = self.storage.get() {
            show_storage(&storage());
        }
        forebay_metrics::text()
    }
}

/// What workers asked of shared storage. Mounts come and go, and their series with them.
fn show_storage(workers: &[(WorkerId, Vec<(MountName, StorageCounters)>)]) {
    let mounts = || {
        workers.iter().flat_map(|(worker, mounts)| {
            mounts.iter().map(move |(mount, counters)| (mount.to_string(), worker.to_string(), counters))
        })
    };
    table::WORKER_STORAGE_REQUESTS.show(mounts().flat_map(|(mount, worker, counters)| {
        let methods = [
            ("get", counters.gets),
            ("head", counters.heads),
            ("list", counters.lists),
            ("put", counters.puts),
            ("delete", counters.deletes),
        ];
        methods.map(|(method, count)| ([mount.clone(), method.to_string(), worker.clone()], Counter::at(count)))
    }));
    let of_mounts = |number: fn(&StorageCounters) -> u64| {
        mounts().map(move |(mount, worker, counters)| ([mount, worker], Counter::at(number(counters))))
    };
    table::WORKER_STORAGE_RETRIES.show(of_mounts(|counters| counters.retries));
    table::WORKER_STORAGE_RECEIVED_BYTES.show(of_mounts(|counters| counters.bytes_in));
    table::WORKER_STORAGE_SENT_BYTES.show(of_mounts(|counters| counters.bytes_out));
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of mounts and workers are small")]
fn show_cluster(status: &ClusterStatus) {
    table::COORDINATOR_EPOCH.only().set(status.epoch as f64);
    table::COORDINATOR_UPTIME_SECONDS.only().set(status.uptime.as_secs_f64());
    table::COORDINATOR_MOUNTS.only().set(status.mounts.len() as f64);
    table::COORDINATOR_PINS.only().set(status.pins.len() as f64);
    table::COORDINATOR_BOUND_BYTES_PER_SECOND.show(status.mounts.iter().filter_map(|mount| {
        let bound = mount.mount.options.bandwidth?;
        Some(([mount.mount.name.to_string()], Gauge::at(bound.bytes_per_sec() as f64)))
    }));
    for (name, state) in [("live", WorkerState::Live), ("lost", WorkerState::Lost)] {
        let count = status.workers.iter().filter(|(_, is, _)| *is == state).count();
        table::COORDINATOR_WORKERS.with([name]).set(count as f64);
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of segments are small")]
fn show_placement(status: &PlacementStatus) {
    table::COORDINATOR_SEGMENTS.only().set(status.segments_known as f64);
    table::COORDINATOR_ROUTES.only().set(status.routes as f64);
    table::COORDINATOR_REPLICAS_LOWER_BOUND.only().set(status.lower_bound as f64);
    let replicas = [("planned", status.replicas_planned), ("held", status.replicas_held), ("loading", status.replicas_loading)];
    for (state, count) in replicas {
        table::COORDINATOR_REPLICAS.with([state]).set(count as f64);
    }
    table::COORDINATOR_PLANNING_SECONDS.only().set(status.planning.as_secs_f64());
    table::COORDINATOR_UNSATISFIED.only().set(status.unsatisfied.len() as f64);
    table::COORDINATOR_PLANS.show([([], Counter::at(status.runs))]);
    table::COORDINATOR_REPLICAS_ORDERED.show([([], Counter::at(status.replicas_ordered))]);
    table::COORDINATOR_REPLICAS_DROPPED.show([([], Counter::at(status.replicas_dropped))]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_storage_end_with_their_mount() {
        let counters = StorageCounters { gets: 3, retries: 2, bytes_in: 7, ..StorageCounters::default() };
        let of = |names: &[&str]| names.iter().map(|name| (name.parse().unwrap(), counters)).collect::<Vec<_>>();
        show_storage(&[(WorkerId(1), of(&["lake", "nas"])), (WorkerId(2), of(&["lake"]))]);
        let (text, worker) = (forebay_metrics::text(), WorkerId(2));
        for line in [
            "# TYPE forebay_worker_storage_requests_total counter".to_string(),
            format!("forebay_worker_storage_requests_total{{mount=\"lake\",method=\"get\",worker=\"{worker}\"}} 3"),
            format!("forebay_worker_storage_retries_total{{mount=\"lake\",worker=\"{worker}\"}} 2"),
            format!("forebay_worker_storage_received_bytes_total{{mount=\"lake\",worker=\"{worker}\"}} 7"),
        ] {
            assert_eq!(text.lines().filter(|given| *given == line).count(), 1, "{line} in {text}");
        }
        show_storage(&[(WorkerId(1), of(&["nas"]))]);
        assert!(!forebay_metrics::text().contains("mount=\"lake\""));
        show_storage(&[]);
        assert!(!forebay_metrics::text().contains("forebay_worker_storage_"));
    }
}
