//! Ways to replicate beside each other on live workers, and one that sends half as fast as the others, under the same arrivals.

use forebay_coordinator::PlacementSettings;
use forebay_placement::{Concurrency, Policy};
use forebay_types::Result;

use super::open::{self, Arrival, Outcome, READ_BYTES};
use super::rig::Rig;
use super::{LiveFigure, LiveSettings, placement};

/// Workers of the comparison, and of the run with a slow one.
const WORKERS: usize = 8;
const WITH_A_SLOW_ONE: usize = 4;
/// Of what all workers send.
const UTILISATION: f64 = 0.7;
/// The same with the slow one, so that what is left of it suffices.
const UTILISATION_SLOW: f64 = 0.5;

/// A hundred segments by Zipf, on workers of a hundred reads a second.
fn settings(of: LiveSettings) -> LiveSettings {
    let serve_bytes_per_sec = 100 * READ_BYTES as u64;
    LiveSettings { serve_bytes_per_sec, objects: 100, object_bytes: 1 << 20, theta: 0.99, windows: 8, ..of }
}

/// Getafix against the paper's plan, Scarlett and uniform replication of as much storage.
pub async fn versus(of: LiveSettings) -> Result<Vec<LiveFigure>> {
    let settings = settings(of);
    let arrivals = open::arrivals(settings, WORKERS, UTILISATION);
    let ours = run(Policy::Getafix, settings, &arrivals).await?;
    let paper = run(Policy::GetafixPaper, settings, &arrivals).await?;
    let scarlett = Policy::Scarlett { concurrency: Concurrency::Peak, delta: 1, budget: None };
    let scarlett = run(scarlett, settings, &arrivals).await?;
    let uniform = run(Policy::Uniform { replicas: ours.replicas.max(1.0) }, settings, &arrivals).await?;
    let failed = ours.failed + paper.failed + scarlett.failed + uniform.failed;
    Ok(vec![
        at_most(0.65, "replicas a segment, against the paper's plan", "replicas", ours.replicas, paper.replicas),
        at_most(0.4, "replicas a segment, against Scarlett", "replicas", ours.replicas, scarlett.replicas),
        at_most(0.5, "p99 against the paper's plan", "ms", ours.p99_ms, paper.p99_ms),
        at_most(1.0, "p99 against Scarlett", "ms", ours.p99_ms, scarlett.p99_ms),
        at_most(1.0, "p99 against uniform replication of as much storage", "ms", ours.p99_ms, uniform.p99_ms),
        none_failed(failed, 4 * arrivals.len()),
    ])
}

/// One of four workers sends half as fast as the others, against four that are equal.
pub async fn slow(of: LiveSettings) -> Result<Vec<LiveFigure>> {
    let settings = settings(of);
    let arrivals = open::arrivals(settings, WITH_A_SLOW_ONE, UTILISATION_SLOW);
    let equal = of_so_many(WITH_A_SLOW_ONE, Policy::Getafix, settings, &arrivals).await?;
    let slow = LiveSettings { slow: Some(0), ..settings };
    let slow = of_so_many(WITH_A_SLOW_ONE, Policy::Getafix, slow, &arrivals).await?;
    let known = slow.known_after.unwrap_or(f64::INFINITY);
    Ok(vec![
        LiveFigure {
            figure: "the slow worker's speed is known within 10 % after",
            value: if known.is_finite() { known } else { -1.0 },
            unit: "windows",
            bar: "<= 2".to_string(),
            met: known <= 2.0,
            ..LiveFigure::default()
        },
        at_most(1.3, "p99 with a slow worker, against equal ones", "ms", slow.p99_ms, equal.p99_ms),
        none_failed(equal.failed + slow.failed, 2 * arrivals.len()),
    ])
}

async fn run(policy: Policy, settings: LiveSettings, arrivals: &[Arrival]) -> Result<Outcome> {
    of_so_many(WORKERS, policy, settings, arrivals).await
}

async fn of_so_many(workers: usize, policy: Policy, settings: LiveSettings, arrivals: &[Arrival]) -> Result<Outcome> {
    let rig = Rig::start(workers, settings, PlacementSettings { policy: Some(policy), ..placement(settings) }).await?;
    open::run(&rig, settings, arrivals).await
}

fn at_most(limit: f64, figure: &'static str, unit: &'static str, ours: f64, peer: f64) -> LiveFigure {
    let ratio = ours / peer;
    LiveFigure {
        figure,
        value: ours,
        unit,
        peer: Some(peer),
        ratio: Some(ratio),
        bar: format!("ratio <= {limit}"),
        met: ratio <= limit,
        ..LiveFigure::default()
    }
}

fn none_failed(failed: u64, reads: usize) -> LiveFigure {
    LiveFigure {
        figure: "failed or wrong reads",
        value: failed as f64,
        unit: "reads",
        peer: Some(reads as f64),
        bar: "0, of the peer's number of reads".to_string(),
        met: failed == 0,
        ..LiveFigure::default()
    }
}
