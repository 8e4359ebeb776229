//! Bar of the planner's cost: time and memory of plans for up to a million segments, first ones and later ones.

use forebay_bench_harness::cpu::{ThreadTime, own_bytes};
use forebay_placement::{Holdings, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom, plan};
use serde::Serialize;

use crate::{Dice, Shape, counts};

/// A large plan.
#[derive(Clone, Debug, Serialize)]
pub struct ScaleFigure {
    /// Always `scale`.
    pub bench: &'static str,
    /// Segments.
    pub segments: usize,
    /// Workers.
    pub workers: u32,
    /// How 200 accesses a segment fall on segments.
    pub shape: String,
    /// Which planner.
    pub policy: String,
    /// Whether workers hold what an earlier plan gave them, for counts that have changed since.
    pub held: bool,
    /// Replicas.
    pub replicas: u64,
    /// Replicas to the lower bound.
    pub to_lower_bound: f64,
    /// Replicas that have to be loaded.
    pub loads: u64,
    /// CPU time of replicas, assignment and routing in seconds, one thread.
    pub cpu_s: f64,
    /// Memory of the process at its peak in bytes, all plans so far.
    pub peak_bytes: u64,
}

/// Plans for 10,000 segments on 1,000 workers and for 1,000,000 on 10,000.
pub fn scale(seed: u64) -> Vec<ScaleFigure> {
    let mut figures = Vec::new();
    for (segments, workers) in [(10_000, 1_000), (1_000_000, 10_000)] {
        for shape in [Shape::Zipf(1.0), Shape::Bimodal] {
            for policy in [Policy::BestFit, Policy::Repack, Policy::GetafixPaper, Policy::Getafix] {
                figures.extend(case(segments, workers, shape, policy, seed));
            }
        }
    }
    figures
}

/// A first plan, and one a window later.
fn case(segments: usize, workers: u32, shape: Shape, policy: Policy, seed: u64) -> [ScaleFigure; 2] {
    let rooms = WorkerRoom::equal(workers);
    let mut held = Holdings::none();
    [0, 1].map(|window| {
        let mut dice = Dice::new(seed + window);
        let counts = counts(shape, segments, segments * 200, &mut dice);
        let demands: Vec<SegmentDemand> =
            (0..).zip(counts).map(|(order, count)| SegmentDemand { count, bytes: 1, order, ..Default::default() }).collect();
        let clock = ThreadTime::now();
        let plan = plan(&Snapshot { segments: &demands, workers: &rooms, held: &held }, &PlanSettings::of(policy));
        let routes: usize = (0..segments as u32).map(|segment| plan.routing(segment).len()).sum();
        let cpu_s = clock.elapsed().as_secs_f64();
        assert_eq!(routes as u64, plan.replicas, "every replica is routed to");
        let figure = ScaleFigure {
            bench: "scale",
            segments,
            workers,
            shape: shape.name(),
            policy: policy.to_string(),
            held: !held.is_empty(),
            replicas: plan.replicas,
            to_lower_bound: plan.replicas as f64 / plan.lower_bound as f64,
            loads: plan.bytes_to_move,
            cpu_s,
            peak_bytes: own_bytes("VmHWM:"),
        };
        held = plan.holdings();
        figure
    })
}
