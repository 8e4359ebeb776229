//! What is looked up when somebody scrapes: the rest was recorded as it happened.

use std::sync::{Arc, OnceLock};

use forebay_metrics::{Counter, Gauge, table};
use forebay_protocol::{ClusterStatus, ExecutorNumbers, PlacementStatus, SchedulerNumbers, StorageCounters, WorkerState};
use forebay_types::{MountName, WorkerId};

use crate::Cluster;

/// What the workers of a process asked of the shared storage of each mount.
type OfStorage = Box<dyn Fn() -> Vec<(WorkerId, Vec<(MountName, StorageCounters)>)> + Send + Sync>;

/// What a scheduler has come to.
type OfScheduler = Box<dyn Fn() -> SchedulerNumbers + Send + Sync>;
/// What the executors of a process have come to.
type OfExecutors = Box<dyn Fn() -> ExecutorNumbers + Send + Sync>;

/// Where numbers of a process come from that are not recorded; each is there when its role has started.
#[derive(Default)]
pub(crate) struct Numbers {
    cluster: OnceLock<Arc<dyn Cluster>>,
    storage: OnceLock<OfStorage>,
    scheduler: OnceLock<OfScheduler>,
    executors: OnceLock<OfExecutors>,
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

    /// The scheduler of this process has started. Nothing happens the second time.
    pub(crate) fn of_scheduler(&self, scheduler: OfScheduler) {
        let _ = self.scheduler.set(scheduler);
    }

    /// The executors of this process have started. Nothing happens the second time.
    pub(crate) fn of_executors(&self, executors: OfExecutors) {
        let _ = self.executors.set(executors);
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self) -> String {
        table::BUILD_INFO.with([env!("CARGO_PKG_VERSION")]).set(1.0);
        show_tasks();
        if let Some(cluster) = self.cluster.get() {
            show_cluster(&cluster.status());
            show_placement(&cluster.placement(0));
        }
        if let Some(storage) = self.storage.get() {
            show_storage(&storage());
        }
        if let Some(scheduler) = self.scheduler.get() {
            show_scheduler(scheduler());
        }
        if let Some(executors) = self.executors.get() {
            show_executors(executors());
        }
        forebay_metrics::text()
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of tasks are small")]
fn show_tasks() {
    if let Some(tasks) = forebay_runtime::alive_tasks() {
        table::PROCESS_TASKS.only().set(tasks as f64);
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

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of jobs and tasks are small")]
fn show_scheduler(numbers: SchedulerNumbers) {
    table::SCHEDULER_EXECUTORS.only().set(numbers.executors as f64);
    table::SCHEDULER_SLOTS.only().set(numbers.slots as f64);
    table::SCHEDULER_JOBS.only().set(numbers.jobs_running as f64);
    table::SCHEDULER_TASKS.only().set(numbers.tasks_running as f64);
    table::SCHEDULER_ARRIVING_BYTES.only().set(numbers.arriving_bytes as f64);
    table::SCHEDULER_JOBS_OVER.show(outcomes(numbers.jobs_done, numbers.jobs_failed));
    table::SCHEDULER_TASKS_OVER.show(outcomes(numbers.tasks_done, numbers.tasks_failed));
    table::SCHEDULER_TASK_COPIES.show([([], Counter::at(numbers.tasks_copied))]);
    table::SCHEDULER_TASK_COPIES_FIRST.show([([], Counter::at(numbers.tasks_copied_first))]);
    table::SCHEDULER_TASK_INPUT_BYTES.show([([], Counter::at(numbers.task_bytes))]);
    table::SCHEDULER_TASK_LOCAL_BYTES.show([([], Counter::at(numbers.task_bytes_local))]);
    table::SCHEDULER_BROUGHT_BYTES.show([([], Counter::at(numbers.brought_bytes))]);
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts of tasks are small")]
fn show_executors(numbers: ExecutorNumbers) {
    table::EXECUTOR_SLOTS.only().set(numbers.slots as f64);
    table::EXECUTOR_TASKS.only().set(numbers.tasks_running as f64);
    table::EXECUTOR_TASKS_OVER.show(outcomes(numbers.tasks_done, numbers.tasks_failed));
}

fn outcomes(done: u64, failed: u64) -> [([String; 1], Counter); 2] {
    [("done", done), ("failed", failed)].map(|(outcome, count)| ([outcome.to_string()], Counter::at(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_tasks_are_shown_where_a_scheduler_or_an_executor_runs() {
        let numbers = Numbers::default();
        assert!(!numbers.text().contains("forebay_scheduler_") && !numbers.text().contains("forebay_executor_"));
        let so_far = SchedulerNumbers { slots: 8, jobs_failed: 2, tasks_done: 40, task_bytes: 7, ..SchedulerNumbers::default() };
        numbers.of_scheduler(Box::new(move || so_far));
        numbers.of_executors(Box::new(|| ExecutorNumbers { tasks_running: 3, tasks_done: 5, ..ExecutorNumbers::default() }));
        let text = numbers.text();
        for line in [
            "# TYPE forebay_scheduler_jobs_over_total counter",
            "forebay_scheduler_slots 8",
            "forebay_scheduler_jobs_over_total{outcome=\"done\"} 0",
            "forebay_scheduler_jobs_over_total{outcome=\"failed\"} 2",
            "forebay_scheduler_tasks_over_total{outcome=\"done\"} 40",
            "forebay_scheduler_task_input_bytes_total 7",
            "forebay_executor_tasks 3",
            "forebay_executor_tasks_over_total{outcome=\"done\"} 5",
        ] {
            assert!(text.lines().any(|given| given == line), "{line} is not in {text}");
        }
    }

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
