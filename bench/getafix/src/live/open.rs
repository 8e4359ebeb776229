//! Reads that come when they come, however long those before them take, and what became of them.

use std::sync::Arc;
use std::time::Duration;

use forebay_types::{Error, Result};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::LiveSettings;
use super::rig::{Rig, content};

/// Bytes of a read. Workers send a hundred of these a second, as those of the simulation do.
pub(super) const READ_BYTES: usize = 128 << 10;
/// Reads under way from which on a way of replication counts as overloaded.
const UNDER_WAY_MAX: usize = 4096;

/// A read, the same in each run.
pub(super) struct Arrival {
    at: Duration,
    object: usize,
    start: usize,
}

/// What was measured in the second half of a run.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Replicas a segment, as windows ended.
    pub(super) replicas: f64,
    pub(super) p99_ms: f64,
    /// Of all the run.
    pub(super) failed: u64,
    /// Windows until the slow worker's speed was known within a tenth; none where there is none, or it was not.
    pub(super) known_after: Option<f64>,
}

/// Poisson arrivals by Zipf over the objects, at this share of what so many workers send.
pub(super) fn arrivals(settings: LiveSettings, workers: usize, utilisation: f64) -> Vec<Arrival> {
    let mut random = SmallRng::seed_from_u64(settings.seed);
    let mut sum = 0.0;
    let steps: Vec<f64> = (1..=settings.objects)
        .map(|rank| {
            sum += (rank as f64).powf(-settings.theta);
            sum
        })
        .collect();
    let rate = utilisation * workers as f64 * settings.serve_bytes_per_sec as f64 / READ_BYTES as f64;
    let end = settings.window * settings.windows;
    let (mut at, mut all) = (Duration::ZERO, Vec::new());
    loop {
        at += Duration::from_secs_f64(-(1.0 - random.random::<f64>()).ln() / rate);
        if at >= end {
            return all;
        }
        let drawn = random.random::<f64>() * sum;
        let object = steps.partition_point(|step| *step < drawn).min(settings.objects - 1);
        let start = random.random_range(0..=settings.object_bytes - READ_BYTES);
        all.push(Arrival { at, object, start });
    }
}

/// Puts these on a cluster.
pub(super) async fn run(rig: &Rig, settings: LiveSettings, arrivals: &[Arrival]) -> Result<Outcome> {
    let contents: Vec<Vec<u8>> = (0..settings.objects).map(|number| content(number, settings.object_bytes)).collect();
    let (contents, began, warm) = (Arc::new(contents), Instant::now(), settings.window * (settings.windows / 2));
    let (mut reads, mut outcome, mut took) = (JoinSet::new(), Outcome::default(), Vec::new());
    let (mut window, mut samples) = (1, Vec::new());
    for Arrival { at, object, start } in arrivals {
        tokio::time::sleep_until(began + *at).await;
        while let Some(read) = reads.try_join_next() {
            note(read.map_err(|error| Error::internal(error.to_string()))?, &mut took, &mut outcome);
        }
        if reads.len() >= UNDER_WAY_MAX {
            return Err(Error::internal(format!("{UNDER_WAY_MAX} reads are under way: the cluster is overloaded")));
        }
        if *at >= settings.window * window {
            window += 1;
            if *at >= warm {
                samples.push(rig.replicas());
            }
        }
        if outcome.known_after.is_none() && rig.knows_the_slow_one(settings) {
            outcome.known_after = Some(at.as_secs_f64() / settings.window.as_secs_f64());
        }
        // In the order of popularity that the seed says.
        let object = rig.ranks[*object];
        let (client, version, contents) = (rig.client.clone(), rig.versions[object].clone(), Arc::clone(&contents));
        let (due, counts, range) = (began + *at, *at >= warm, *start..*start + READ_BYTES);
        reads.spawn(async move {
            let read = client.read(client.operation(), &version, range.start as u64..range.end as u64).await;
            let is_right = read.is_ok_and(|bytes| bytes[..] == contents[object][range]);
            (is_right, counts.then(|| due.elapsed()))
        });
    }
    while let Some(read) = reads.join_next().await {
        note(read.map_err(|error| Error::internal(error.to_string()))?, &mut took, &mut outcome);
    }
    took.sort_unstable();
    let p99 = took.get((took.len() * 99).div_ceil(100).saturating_sub(1)).copied();
    outcome.p99_ms = p99.ok_or_else(|| Error::internal("nothing was read"))?.as_secs_f64() * 1e3;
    outcome.replicas = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
    Ok(outcome)
}

fn note((is_right, counted): (bool, Option<Duration>), took: &mut Vec<Duration>, outcome: &mut Outcome) {
    outcome.failed += u64::from(!is_right);
    took.extend(counted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_the_same_in_each_run_and_as_many_as_are_asked_for() {
        let settings = LiveSettings {
            serve_bytes_per_sec: 100 * READ_BYTES as u64,
            objects: 100,
            object_bytes: 1 << 20,
            theta: 0.99,
            window: Duration::from_secs(10),
            windows: 10,
            ..LiveSettings::default()
        };
        let (one, other) = (arrivals(settings, 8, 0.7), arrivals(settings, 8, 0.7));
        assert!(
            one.iter().zip(&other).all(|(one, other)| (one.at, one.object, one.start) == (other.at, other.object, other.start))
        );
        // 560 a second.
        assert!((54_000..58_000).contains(&one.len()) && one.len() == other.len(), "{}", one.len());
        let of_first = one.iter().filter(|arrival| arrival.object == 0).count() as f64 / one.len() as f64;
        assert!((0.17..0.21).contains(&of_first), "{of_first}");
        assert!(one.iter().all(|arrival| arrival.start + READ_BYTES <= settings.object_bytes));
    }
}
