//! Ours against the paper's own plan, Scarlett and uniform copies: eight workers that send so many bytes a second each, a hundred objects read
//! by Zipf, and the same recorded arrivals for all, whether reads before have ended or not.

use std::time::{Duration, Instant};

use forebay_coordinator::PlacementSettings;
use forebay_placement::Policy;
use forebay_types::{Error, Result};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::rig::Rig;
use super::{LiveFigure, LiveSettings, placement};

const WORKERS: usize = 8;
/// Bytes a second that each sends: little of what two cores can do.
const SENDS: u64 = 10_000_000;
/// Share of what they send together that is asked for.
const LOAD: f64 = 0.7;
const OBJECTS: usize = 100;
const OBJECT_BYTES: usize = 1 << 20;
const READ_BYTES: u64 = 256 << 10;
/// Users have a minute.
const WINDOW: Duration = Duration::from_secs(4);
/// Windows before reads count, and of all.
const WINDOWS_SETTLED: u32 = 3;
const WINDOWS: u32 = 6;

/// A read: when it comes, of the object of which rank, from where on.
struct Arrival {
    at: Duration,
    rank: usize,
    start: u64,
}

/// What a policy came to.
#[derive(Clone, Copy)]
struct Outcome {
    replicas: f64,
    p99_ms: f64,
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
    Ok(vec![
        storage("storage against the paper's plan", paper, Some(0.65)),
        storage("storage against Scarlett", scarlett, Some(0.4)),
        p99("p99 against the paper's plan", paper, Some(0.5)),
        p99("p99 against Scarlett", scarlett, Some(1.0)),
        p99("p99 against uniform copies that take as much", uniform, None),
    ])
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

/// As they come at random, so many a second on average, until all windows are over.
fn arrivals(seed: u64) -> Vec<Arrival> {
    let a_second = LOAD * SENDS as f64 * WORKERS as f64 / READ_BYTES as f64;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut sum = 0.0;
    let steps: Vec<f64> = (1..=OBJECTS)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let (mut at, mut all) = (0.0, Vec::new());
    loop {
        at -= (1.0 - random.random::<f64>()).ln() / a_second;
        if at >= (WINDOW * WINDOWS).as_secs_f64() {
            return all;
        }
        let drawn = random.random::<f64>() * sum;
        let rank = steps.partition_point(|step| *step < drawn).min(OBJECTS - 1);
        let start = random.random_range(0..=OBJECT_BYTES as u64 - READ_BYTES);
        all.push(Arrival { at: Duration::from_secs_f64(at), rank, start });
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
    let rig = Rig::start(WORKERS, settings, placement).await?;
    let (began, mut reads) = (Instant::now(), JoinSet::new());
    for arrival in arrivals {
        let (client, version) = (rig.client.clone(), rig.versions[rig.ranks[arrival.rank]].clone());
        let (counts, due) = (arrival.at >= WINDOW * WINDOWS_SETTLED, began + arrival.at);
        let range = arrival.start..arrival.start + READ_BYTES;
        tokio::time::sleep_until(due.into()).await;
        reads.spawn(async move {
            client.read(client.operation(), &version, range).await?;
            Ok::<_, Error>(counts.then(|| due.elapsed().as_secs_f64() * 1e3))
        });
    }
    let replicas = rig.replicas() as f64;
    let mut took = Vec::new();
    while let Some(read) = reads.join_next().await {
        took.extend(read.map_err(|error| Error::internal(error.to_string()))??);
    }
    took.sort_by(f64::total_cmp);
    let p99_ms = took.get(took.len() * 99 / 100).copied().ok_or_else(|| Error::internal("nothing was read"))?;
    Ok(Outcome { replicas, p99_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_the_same_for_all_and_ask_for_their_share() {
        let all = arrivals(7);
        let again = arrivals(7);
        assert!(all.iter().zip(&again).all(|(one, other)| (one.at, one.rank, one.start) == (other.at, other.rank, other.start)));
        assert!(all.len() == again.len() && all.is_sorted_by_key(|arrival| arrival.at));
        let asked = all.len() as f64 * READ_BYTES as f64 / (WINDOW * WINDOWS).as_secs_f64();
        let share = asked / (SENDS as f64 * WORKERS as f64);
        assert!((share / LOAD - 1.0).abs() < 0.1, "{share}");
        let first = all.iter().filter(|arrival| arrival.rank == 0).count() as f64 / all.len() as f64;
        assert!((first / 0.193 - 1.0).abs() < 0.2, "a hundred by Zipf of 1: {first}");
    }
}
