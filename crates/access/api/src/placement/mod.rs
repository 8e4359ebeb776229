//! Where data is: segments with how popular they are, who holds them and where they are read, what of which table fills the tiers, and the
//! segments of one object.

pub(crate) mod explain;
pub(crate) mod filled;
pub(crate) mod recent;

use std::time::Duration;

use forebay_protocol::PlacementStatus;
use forebay_types::{Cell, WorkerId};
use schemars::JsonSchema;
use serde::Serialize;

pub use explain::{AskedWorker, Explained, ExplainedSegment, HeldThere};

/// Segments that one answer has at most.
pub(crate) const SEGMENTS_MAX: usize = 10_000;
/// A look goes through all segments.
pub(crate) const LOOKS: recent::Bounds = recent::Bounds { steps: &[100, 1000, SEGMENTS_MAX], fresh: Duration::from_millis(500) };

/// Popularity, replicas and routing for programs.
#[derive(JsonSchema, Serialize)]
pub struct Placement<'a> {
    policy: &'a str,
    window_secs: f64,
    runs: u64,
    planning_ms: f64,
    segments_known: u64,
    replicas_planned: u64,
    lower_bound: u64,
    replicas_held: u64,
    replicas_loading: u64,
    replicas_ordered: u64,
    replicas_dropped: u64,
    routes: u64,
    unsatisfied: &'a [String],
    segments: Vec<SegmentNow>,
}

#[derive(JsonSchema, Serialize)]
struct SegmentNow {
    path: String,
    index: u32,
    /// Of a decoded column.
    #[serde(skip_serializing_if = "Option::is_none")]
    row_group: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    segment: String,
    popularity: f64,
    operations: u64,
    bytes_read: u64,
    planned: Vec<Part>,
    held: Vec<HeldBy>,
    loading: Vec<String>,
    routing: Vec<Part>,
    in_table: bool,
}

#[derive(JsonSchema, Serialize)]
struct Part {
    worker: String,
    weight: u32,
}

#[derive(JsonSchema, Serialize)]
struct HeldBy {
    worker: String,
    bytes: u64,
}

impl<'a> Placement<'a> {
    /// What a coordinator says.
    pub fn of(status: &'a PlacementStatus) -> Self {
        Self::of_first(status, usize::MAX)
    }

    /// The same, with so many segments at most.
    pub(crate) fn of_first(status: &'a PlacementStatus, limit: usize) -> Self {
        let parts = |parts: &[(WorkerId, u32)]| {
            parts.iter().map(|(worker, weight)| Part { worker: worker.to_string(), weight: *weight }).collect()
        };
        let segments = status.segments.iter().take(limit).map(|segment| SegmentNow {
            path: segment.path.to_string(),
            index: segment.index,
            row_group: Cell::of_index(segment.index).map(|cell| cell.row_group),
            column: Cell::of_index(segment.index).filter(|cell| !cell.is_rows()).map(|cell| cell.column),
            segment: segment.segment.to_string(),
            popularity: segment.popularity,
            operations: segment.operations,
            bytes_read: segment.bytes_read,
            planned: parts(&segment.planned),
            held: segment.held.iter().map(|(worker, bytes)| HeldBy { worker: worker.to_string(), bytes: *bytes }).collect(),
            loading: segment.loading.iter().map(ToString::to_string).collect(),
            routing: parts(&segment.routing),
            in_table: segment.in_table,
        });
        Self {
            policy: &status.policy,
            window_secs: status.window.as_secs_f64(),
            runs: status.runs,
            planning_ms: status.planning.as_secs_f64() * 1e3,
            segments_known: status.segments_known,
            replicas_planned: status.replicas_planned,
            lower_bound: status.lower_bound,
            replicas_held: status.replicas_held,
            replicas_loading: status.replicas_loading,
            replicas_ordered: status.replicas_ordered,
            replicas_dropped: status.replicas_dropped,
            routes: status.routes,
            unsatisfied: &status.unsatisfied,
            segments: segments.collect(),
        }
    }
}
