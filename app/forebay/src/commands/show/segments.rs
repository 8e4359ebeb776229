//! `forebay status --segments`: what placement knows of popular segments, and where their replicas are.

use forebay_api::Placement;
use forebay_client::Client;
use forebay_protocol::{ControlReply, ControlRequest, PlacementStatus, SegmentStatus};
use forebay_types::{Cell, Result, WorkerId, format_bytes, format_duration};

use crate::exit::Outcome;
use crate::output::{format_table, show};

/// Shows what placement knows of the most popular segments.
pub(crate) async fn run(client: &Client, limit: u32, json: bool) -> Outcome {
    let status = ask(client, limit).await?;
    show(json, &Placement::of(&status), |output| output.lines(&lines(&status)))
}

pub(crate) async fn ask(client: &Client, limit: u32) -> Result<Box<PlacementStatus>> {
    match client.control(ControlRequest::Placement { limit }).await? {
        ControlReply::Placement(status) => Ok(status),
        other => Err(other.unexpected()),
    }
}

fn lines(status: &PlacementStatus) -> Vec<String> {
    let mut lines = vec![
        format!(
            "placement {}, window {}, {} plans made, the last in {:.1} ms",
            status.policy,
            format_duration(status.window),
            status.runs,
            status.planning.as_secs_f64() * 1e3
        ),
        format!(
            "{} segments, {} replicas planned (no plan goes below {}), {} held, {} loading, {} routed otherwise than by hashing",
            status.segments_known,
            status.replicas_planned,
            status.lower_bound,
            status.replicas_held,
            status.replicas_loading,
            status.routes
        ),
    ];
    lines.extend(status.unsatisfied.iter().map(|what| format!("not satisfied: {what}")));
    lines.push(String::new());
    if status.segments.is_empty() {
        lines.push("nothing was read in the windows before this one".to_string());
        return lines;
    }
    let rows: Vec<_> = status.segments.iter().map(row).collect();
    let titles = ["path", "segment", "popularity", "operations", "read", "planned", "held", "loading", "routing", "by"];
    lines.extend(format_table(&titles, &[1, 2, 3, 4], &rows));
    lines
}

fn row(segment: &SegmentStatus) -> Vec<String> {
    let ids = |ids: &mut dyn Iterator<Item = WorkerId>| ids.map(short).collect::<Vec<_>>().join(" ");
    vec![
        segment.path.to_string(),
        Cell::of_index(segment.index).map_or_else(|| segment.index.to_string(), |cell| cell.to_string()),
        format!("{:.2}", segment.popularity),
        segment.operations.to_string(),
        format_bytes(segment.bytes_read),
        ids(&mut segment.planned.iter().map(|(worker, _)| *worker)),
        ids(&mut segment.held.iter().map(|(worker, _)| *worker)),
        ids(&mut segment.loading.iter().copied()),
        segment.routing.iter().map(|(worker, part)| format!("{} {part}%", short(*worker))).collect::<Vec<_>>().join(" "),
        if segment.in_table { "table" } else { "hashing" }.to_string(),
    ]
}

/// The first digits of a worker's id: enough for people.
pub(crate) fn short(worker: WorkerId) -> String {
    worker.to_string().chars().take(7).collect()
}
