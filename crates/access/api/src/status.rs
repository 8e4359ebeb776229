//! The cluster: mounts, workers, tiers.

use forebay_protocol::{ClusterStatus, StorageCounters, WorkerReport, WorkerState};
use schemars::JsonSchema;
use serde::Serialize;

/// A cluster's status for programs.
#[derive(JsonSchema, Serialize)]
pub struct Status<'a> {
    version: &'a str,
    epoch: u64,
    uptime_secs: f64,
    metadata: &'a str,
    mounts: Vec<MountNow<'a>>,
    pins: Vec<String>,
    workers: Vec<WorkerNow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct MountNow<'a> {
    name: &'a str,
    url: &'a str,
    requests: u64,
    /// Bound on its traffic in bytes a second, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_bytes_per_sec: Option<u64>,
    counters: StorageCounters,
}

#[derive(JsonSchema, Serialize)]
struct WorkerNow<'a> {
    id: String,
    address: &'a str,
    location: &'a str,
    state: &'static str,
    dram: Tier,
    decoded_bytes: u64,
    disk: Tier,
    segments: u64,
    reads: u64,
    served_bytes: u64,
    hit_bytes: u64,
    warnings: &'a [String],
}

#[derive(JsonSchema, Serialize)]
struct Tier {
    capacity_bytes: u64,
    used_bytes: u64,
    kept_bytes: u64,
}

impl From<(u64, u64, u64)> for Tier {
    fn from((capacity_bytes, used_bytes, kept_bytes): (u64, u64, u64)) -> Self {
        Self { capacity_bytes, used_bytes, kept_bytes }
    }
}

/// A worker's state in a word.
pub fn state_name(state: WorkerState, draining: bool, report: &WorkerReport) -> &'static str {
    match state {
        WorkerState::Live if report.drain.is_some_and(|drain| drain.done) => "drained",
        WorkerState::Live if draining => "draining",
        WorkerState::Live => "live",
        WorkerState::Lost => "lost",
    }
}

/// Requests to shared storage, of all kinds.
pub fn storage_requests(counters: &StorageCounters) -> u64 {
    counters.gets + counters.heads + counters.lists + counters.puts + counters.deletes
}

impl<'a> Status<'a> {
    /// What a coordinator says.
    pub fn of(status: &'a ClusterStatus) -> Self {
        let mounts = status.mounts.iter().map(|mount| MountNow {
            name: mount.mount.name.as_str(),
            url: &mount.mount.url,
            requests: storage_requests(&mount.counters),
            bound_bytes_per_sec: mount.mount.options.bandwidth.map(|bound| bound.bytes_per_sec()),
            counters: mount.counters,
        });
        let workers = status.workers.iter().map(|(info, state, report)| WorkerNow {
            id: info.id.to_string(),
            address: &info.address,
            location: &info.location,
            state: state_name(*state, info.draining, report),
            dram: report.dram.into(),
            decoded_bytes: report.form_bytes,
            disk: report.disk.into(),
            segments: report.segments,
            reads: report.reads,
            served_bytes: report.bytes_served,
            hit_bytes: report.bytes_hit,
            warnings: &report.warnings,
        });
        Self {
            version: &status.forebay_version,
            epoch: status.epoch,
            uptime_secs: status.uptime.as_secs_f64(),
            metadata: &status.metadata,
            mounts: mounts.collect(),
            pins: status.pins.iter().map(ToString::to_string).collect(),
            workers: workers.collect(),
        }
    }
}
