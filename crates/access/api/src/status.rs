//! The cluster: mounts, workers, tiers.

use forebay_protocol::{ClusterStatus, StorageCounters, WorkerReport, WorkerState};
use forebay_types::{MountName, Scope, TokenInfo};
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
    /// Of `dram`, decoded columns.
    decoded_bytes: u64,
    /// What these may take; 0 where the worker does not say.
    decoded_room_bytes: u64,
    /// Picoseconds that each byte more of them would save in a second.
    decoded_saves_ps: u64,
    /// The same of cached blocks in `dram`.
    blocks_save_ps: u64,
    disk: Tier,
    segments: u64,
    reads: u64,
    served_bytes: u64,
    hit_bytes: u64,
    warnings: Vec<&'a str>,
}

#[derive(JsonSchema, Serialize)]
struct Tier {
    capacity_bytes: u64,
    used_bytes: u64,
    /// Of these, what can't be evicted now: what pins and readers in place hold, and temporary nodes.
    kept_bytes: u64,
    /// Of these, blocks of temporary nodes.
    temporary_bytes: u64,
    /// Of these, decoded columns.
    decoded_bytes: u64,
    /// Of these, layers of shards, which the disk tier lends room.
    layer_bytes: u64,
}

impl Tier {
    /// `own` is what is no copy of shared storage.
    fn of((capacity_bytes, used_bytes, kept_bytes): (u64, u64, u64), own: u64, decoded_bytes: u64, layer_bytes: u64) -> Self {
        let temporary_bytes = own.saturating_sub(decoded_bytes).saturating_sub(layer_bytes);
        Self { capacity_bytes, used_bytes, kept_bytes, temporary_bytes, decoded_bytes, layer_bytes }
    }
}

/// A token, as it is listed: nothing of it shows what its holder shows.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub struct Token {
    /// Its name, and a number.
    id: String,
    /// `read`, `write` or `admin`, each with all that stands before it.
    role: String,
    /// Where: null for all mounts; `tmp` stands for temporary data.
    mounts: Option<Vec<String>>,
    /// When it was made.
    created: String,
    /// When it ends, where it does.
    expires: Option<String>,
}

impl Token {
    /// What a coordinator says of one; `time` writes seconds since 1970.
    pub fn of(token: &TokenInfo, time: impl Fn(u64) -> String) -> Self {
        let mounts = match &token.grant.scope {
            Scope::All => None,
            Scope::Only { mounts, temporary } => {
                let names = mounts.iter().map(MountName::to_string);
                Some(names.chain(temporary.then(|| MountName::temporary().to_string())).collect())
            }
        };
        let (role, expires) = (token.grant.role.to_string(), token.grant.expires.map(&time));
        Self { id: token.id.clone(), role, mounts, created: time(token.created), expires }
    }

    /// For people: what it is, what it lets its holder do, where, since when, and how long.
    pub fn row(&self) -> Vec<String> {
        let mounts = self.mounts.as_ref().map_or("all".to_string(), |mounts| mounts.join(" "));
        let expires = self.expires.clone().unwrap_or("never".to_string());
        vec![self.id.clone(), self.role.clone(), mounts, self.created.clone(), expires]
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
    [counters.heads, counters.lists, counters.puts, counters.deletes].into_iter().fold(counters.gets, u64::saturating_add)
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
            dram: Tier::of(report.dram, report.own.0, report.form_bytes, 0),
            decoded_bytes: report.form_bytes,
            decoded_room_bytes: report.form_room_bytes,
            decoded_saves_ps: report.form_saves_ps,
            blocks_save_ps: report.block_saves_ps,
            disk: Tier::of(report.disk, report.own.1, report.disk_form_bytes, report.layer_bytes),
            segments: report.segments,
            reads: report.reads,
            served_bytes: report.bytes_served,
            hit_bytes: report.bytes_hit,
            warnings: report.warnings.iter().map(|warning| warning.text.as_str()).collect(),
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

#[cfg(test)]
mod tests {
    use forebay_protocol::WorkerInfo;
    use forebay_types::{HostId, WorkerId};
    use serde_json::json;

    use super::*;

    #[test]
    fn temporary_nodes_decoded_columns_and_layers_are_told_apart() {
        let info = WorkerInfo::new(WorkerId(1), HostId(String::new()), "");
        let (dram, disk) = ((100, 80, 30), (200, 150, 60));
        let report = WorkerReport {
            dram,
            disk,
            form_bytes: 10,
            own: (25, 40),
            disk_form_bytes: 7,
            layer_bytes: 3,
            form_room_bytes: 40,
            ..WorkerReport::default()
        };
        let workers = vec![(info, WorkerState::Live, report)];
        let cluster = ClusterStatus { workers, ..ClusterStatus::default() };
        let shown = json!(Status::of(&cluster));
        let worker = &shown["workers"][0];
        let of = |tier: &str| ["temporary_bytes", "decoded_bytes", "layer_bytes"].map(|what| worker[tier][what].as_u64());
        assert_eq!((of("dram"), of("disk")), ([15, 10, 0].map(Some), [30, 7, 3].map(Some)));
        assert_eq!((&worker["dram"]["kept_bytes"], &worker["decoded_bytes"]), (&json!(30), &json!(10)));
        assert_eq!(worker["decoded_room_bytes"], 40);
    }
}
