//! What tests of plans share.

use forebay_placement::{Holdings, Plan, PlanSettings, SegmentDemand, Snapshot, WorkerRoom, plan};

/// The plan for equal workers that hold nothing.
pub fn planned(segments: &[SegmentDemand], workers: u32, settings: &PlanSettings) -> Plan {
    plan(&Snapshot { segments, workers: &WorkerRoom::equal(workers), held: &Holdings::none() }, settings)
}

/// What each worker holds, as (segment, count).
pub fn layout(plan: &Plan) -> Vec<Vec<(u32, u64)>> {
    plan.assignment.iter().map(|bag| bag.iter().map(|piece| (piece.segment, piece.count)).collect()).collect()
}

/// Segments of which only the counts matter.
pub fn of_counts(counts: &[u64]) -> Vec<SegmentDemand> {
    counts.iter().map(|count| SegmentDemand { count: *count, ..SegmentDemand::default() }).collect()
}
