//! Ours against the paper's own plan, Scarlett and uniform copies: eight workers that send so many bytes a second each, a hundred objects read
//! by Zipf, and the same recorded arrivals for all, whether reads before have ended or not.

use std::time::{Duration, Instant};

use forebay_bench_harness::median;
use forebay_coordinator::PlacementSettings;
use forebay_placement::Policy;
use forebay_types::{Error, Result};
use tokio::task::JoinSet;

use super::arrivals::{Arrival, OBJECT_BYTES, OBJECTS, READ_BYTES, SENDS, WINDOW, WINDOWS_SETTLED, WORKERS, arrivals};
use super::predicted::{Given, Predicted};
use super::rig::Rig;
use super::{LiveFigure, LiveSettings, placement};

/// Between two looks at how many copies there are.
const LOOK: Duration = Duration::from_millis(100);
/// Reads, one after the other, of which the middle one says what a read takes beside its bytes.
const ALONE: usize = 32;
/// Before each of them: whatever a worker may send at once after a pause it may then.
const PAUSE: Duration = Duration::from_millis(20);
/// How far what is live may be from what was predicted, as a ratio.
const WITHIN: [f64; 2] = [0.85, 1.15];

/// What a policy came to.
#[derive(Clone, Copy)]
struct Outcome {
    /// When the last read came.
    replicas: f64,
    /// On average since reads count.
    replicas_mean: f64,
    p99_ms: f64,
    predicted: Predicted,
}

/// Measures all of them, one after the other.
pub async fn policies(seed: u64) -> Result<Vec<LiveFigure>> {
    let arrivals = arrivals(seed);
    let ours = run(Policy::Getafix, seed, &arrivals).await?;
    let paper = run(Policy::GetafixPaper, seed, &arrivals).await?;
    let scarlett = run("scarlett".parse()?, seed, &arrivals).await?;
    let equal = Policy::Uniform { replicas: (ours.replicas / OBJECTS as f64).max(1.0) };
    let uniform = run(equal, seed, &arrivals).await?;
    let storage = |figure, peer: Outcome, most| at_most(figure, "replicas", (ours.replicas, peer.replicas), most);
    let p99 = |figure, peer: Outcome, most| at_most(figure, "ms", (ours.p99_ms, peer.p99_ms), most);
    let mut figures = vec![
        storage("storage against the paper's plan", paper, Some(0.65)),
        storage("storage against Scarlett", scarlett, Some(0.4)),
        p99("p99 against the paper's plan", paper, Some(0.5)),
        p99("p99 against Scarlett", scarlett, Some(1.0)),
        p99("p99 against uniform copies that take as much", uniform, None),
    ];
    for (live, [times, copies]) in [
        (ours, ["p99 live beside predicted", "storage live beside predicted"]),
        (paper, ["p99 live beside predicted, the paper's plan", "storage live beside predicted, the paper's plan"]),
        (scarlett, ["p99 live beside predicted, Scarlett", "storage live beside predicted, Scarlett"]),
        (uniform, ["p99 live beside predicted, uniform copies", "storage live beside predicted, uniform copies"]),
    ] {
        figures.push(within(times, "ms", live.p99_ms, live.predicted.p99_ms));
        figures.push(within(copies, "replicas", live.replicas_mean, live.predicted.replicas));
    }
    Ok(figures)
}

fn within(figure: &'static str, unit: &'static str, live: f64, predicted: f64) -> LiveFigure {
    let (ratio, [least, most]) = (live / predicted, WITHIN);
    LiveFigure {
        figure,
        value: live,
        unit,
        peer: Some(predicted),
        ratio: Some(ratio),
        bar: format!("ratio from {least} to {most}"),
        met: (least..=most).contains(&ratio),
        ..LiveFigure::default()
    }
}

fn at_most(figure: &'static str, unit: &'static str, (ours, peer): (f64, f64), most: Option<f64>) -> LiveFigure {
    let ratio = ours / peer;
    LiveFigure {
        figure,
        value: ours,
        unit,
        peer: Some(peer),
        ratio: Some(ratio),
        bar: most.map_or_else(|| "none".to_string(), |most| format!("ratio <= {most}")),
        met: most.is_none_or(|most| ratio <= most),
        ..LiveFigure::default()
    }
}

/// A cluster of its own with this policy under the arrivals.
async fn run(policy: Policy, seed: u64, arrivals: &[Arrival]) -> Result<Outcome> {
    let settings = LiveSettings {
        serve_bytes_per_sec: SENDS,
        objects: OBJECTS,
        object_bytes: OBJECT_BYTES,
        window: WINDOW,
        seed,
        ..LiveSettings::default()
    };
    let placement = PlacementSettings { policy: Some(policy), ..placement(settings) };
    let rig = Rig::start(WORKERS, settings, placement.clone()).await?;
    rig.window_begins(WINDOW).await?;
    let (began, mut reads) = (Instant::now(), JoinSet::new());
    let (mut copies, mut looked) = (Vec::new(), began);
    for arrival in arrivals {
        let (counts, due) = (arrival.at >= WINDOW * WINDOWS_SETTLED, began + arrival.at);
        tokio::time::sleep_until(due.into()).await;
        let read = read(&rig, arrival);
        reads.spawn(async move {
            read.await?;
            Ok::<_, Error>(counts.then(|| due.elapsed().as_secs_f64() * 1e3))
        });
        if counts && looked.elapsed() >= LOOK {
            copies.push(rig.replicas() as f64);
            looked = Instant::now();
        }
    }
    let replicas = rig.replicas() as f64;
    let mut took = Vec::new();
    while let Some(read) = reads.join_next().await {
        took.extend(read.map_err(|error| Error::internal(error.to_string()))??);
    }
    took.sort_by(f64::total_cmp);
    let p99_ms = took.get(took.len() * 99 / 100).copied().ok_or_else(|| Error::internal("nothing was read"))?;
    let replicas_mean = copies.iter().sum::<f64>() / copies.len().max(1) as f64;
    let held = rig.homes();
    let given =
        Given { placement, store: settings.latency, held, arrivals, ranks: &rig.ranks, beside_ms: beside(&rig, arrivals).await? };
    let predicted = given.predict(policy);
    Ok(Outcome { replicas, replicas_mean, p99_ms, predicted })
}

fn read(rig: &Rig, arrival: &Arrival) -> impl Future<Output = Result<()>> + Send + use<> {
    let (client, version) = (rig.client.clone(), rig.versions[rig.ranks[arrival.rank]].clone());
    let range = arrival.start..arrival.start + READ_BYTES;
    async move { client.read(client.operation(), &version, range).await.map(drop) }
}

/// Milliseconds that a read takes longer than its bytes at the pace of a worker, or shorter: after a pause some of them are sent at once.
async fn beside(rig: &Rig, arrivals: &[Arrival]) -> Result<f64> {
    let mut took = Vec::new();
    for arrival in &arrivals[..ALONE.min(arrivals.len())] {
        tokio::time::sleep(PAUSE).await;
        let began = Instant::now();
        read(rig, arrival).await?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(took) - READ_BYTES as f64 / SENDS as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_live_may_be_fifteen_of_a_hundred_above_or_below_what_was_predicted() {
        let met = [84.0, 86.0, 114.0, 116.0, f64::NAN].map(|live| within("p99", "ms", live, 100.0).met);
        assert_eq!(met, [false, true, true, false, false]);
        assert!(!within("storage", "replicas", 100.0, 0.0).met);
    }
}
