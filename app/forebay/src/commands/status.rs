use forebay_client::Client;
use forebay_protocol::{ClusterStatus, ControlReply, ControlRequest, StorageCounters, WorkerReport, WorkerState};
use forebay_types::{Result, format_bytes, format_duration};
use serde::Serialize;

use super::connect::unexpected;
use super::mount::describe;
use crate::exit::Outcome;
use crate::output::{Output, format_table};

/// Shows the cluster.
pub(crate) async fn run(client: &Client, json: bool) -> Outcome {
    let status = ask(client).await?;
    let mut output = Output::new(json);
    if json {
        output.record(&Status::of(&status))?;
    } else {
        for line in lines(&status) {
            output.line(&line)?;
        }
    }
    output.finish()
}

/// The cluster's status.
pub(crate) async fn ask(client: &Client) -> Result<Box<ClusterStatus>> {
    match client.control(ControlRequest::Status).await? {
        ControlReply::Status(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

/// The status for people.
pub(crate) fn lines(status: &ClusterStatus) -> Vec<String> {
    let mut lines = vec![format!(
        "forebay {}, up {}, metadata in {}, epoch {}",
        status.forebay_version,
        format_duration(std::time::Duration::from_secs(status.uptime.as_secs())),
        status.metadata,
        status.epoch
    )];
    section(
        &mut lines,
        "worker",
        &["worker", "address", "location", "state", "dram", "decoded", "disk", "segments", "reads", "served", "from tiers"],
        &[5, 7, 8, 9, 10],
        {
            status
                .workers
                .iter()
                .map(|(info, state, report)| {
                    let share = (report.bytes_hit * 100).checked_div(report.bytes_served).unwrap_or(0);
                    vec![
                        info.id.to_string(),
                        info.address.clone(),
                        info.location.clone(),
                        state_name(*state, info.draining, report).to_string(),
                        format!("{} of {}", format_bytes(report.dram.1), format_bytes(report.dram.0)),
                        format_bytes(report.form_bytes),
                        format!("{} of {}", format_bytes(report.disk.1), format_bytes(report.disk.0)),
                        report.segments.to_string(),
                        report.reads.to_string(),
                        format_bytes(report.bytes_served),
                        format!("{share} %"),
                    ]
                })
                .collect()
        },
    );
    section(&mut lines, "mount", &["mount", "url", "requests", "received", "sent", "options"], &[2, 3, 4], {
        status
            .mounts
            .iter()
            .map(|mount| {
                vec![
                    format!("/{}/", mount.mount.name),
                    mount.mount.url.clone(),
                    requests(&mount.counters).to_string(),
                    format_bytes(mount.counters.bytes_in),
                    format_bytes(mount.counters.bytes_out),
                    describe(&mount.mount),
                ]
            })
            .collect()
    });
    lines.extend(status.pins.iter().map(|pin| format!("pinned: {pin}")));
    for (info, _, report) in &status.workers {
        lines.extend(report.warnings.iter().map(|warning| format!("warning: {}: {warning}", info.id)));
    }
    lines
}

fn section(lines: &mut Vec<String>, what: &str, titles: &[&str], right: &[usize], rows: Vec<Vec<String>>) {
    lines.push(String::new());
    if rows.is_empty() {
        lines.push(format!("no {what} yet"));
    } else {
        lines.extend(format_table(titles, right, &rows));
    }
}

fn state_name(state: WorkerState, draining: bool, report: &WorkerReport) -> &'static str {
    match state {
        WorkerState::Live if report.drain.is_some_and(|drain| drain.done) => "drained",
        WorkerState::Live if draining => "draining",
        WorkerState::Live => "live",
        WorkerState::Lost => "lost",
    }
}

fn requests(counters: &StorageCounters) -> u64 {
    counters.gets + counters.heads + counters.lists + counters.puts + counters.deletes
}

/// The status for programs.
#[derive(Serialize)]
struct Status<'a> {
    version: &'a str,
    epoch: u64,
    uptime_secs: f64,
    metadata: &'a str,
    mounts: Vec<MountNow<'a>>,
    pins: Vec<String>,
    workers: Vec<WorkerNow<'a>>,
}

#[derive(Serialize)]
struct MountNow<'a> {
    name: &'a str,
    url: &'a str,
    requests: u64,
    counters: StorageCounters,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
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

impl<'a> Status<'a> {
    fn of(status: &'a ClusterStatus) -> Self {
        let mounts = status.mounts.iter().map(|mount| MountNow {
            name: mount.mount.name.as_str(),
            url: &mount.mount.url,
            requests: requests(&mount.counters),
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
