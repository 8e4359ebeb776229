//! One of four workers sends half as much from now on: when the coordinator says so, and what reads take before and after. As much is asked for
//! all the time, at random times, whatever is answered: two fifths of what the four send afterwards. At seven tenths the other three would be
//! busy for 72 % of the time after 61 %, by which alone p99 of a queue becomes 1.4 times as long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure};
use forebay_client::Client;
use forebay_types::{Error, ObjectVersion, Result, WorkerId, split_mix};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::bed::{SOON, all_well, placement, put};
use crate::rig::{Rig, RigSettings, Worker};

/// Users have a minute.
const WINDOW: Duration = Duration::from_secs(10);
/// Until the plan has settled, and then as many before a worker is slow.
const WINDOWS_SETTLED: u32 = 3;
const WINDOWS_BEFORE: u32 = 3;
/// From then on until it is looked at what reads take, and as long as before.
const WINDOWS_FOLLOWED: u32 = 3;
const WORKERS: usize = 4;
/// Bytes a second that a worker sends.
const SENDS: u64 = 25_000_000;
/// Bytes a second that are asked for.
const ASKED: f64 = 35e6;
const OBJECTS: u64 = 40;
const OBJECT_BYTES: u64 = 1 << 20;
const READ_BYTES: u64 = 512 << 10;
const SEED: u64 = 21;
const ERROR_MAX: f64 = 0.1;

/// When reads ended, and the milliseconds that each took.
type Took = Arc<Mutex<Vec<(Instant, f64)>>>;

pub(super) async fn slow_worker() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings { window: Some(WINDOW), dram_bytes: 0, ..RigSettings::default() }).await?;
    let start = || Worker::paced(rig.node.address(), 1 << 30, SENDS);
    let mut worker = start()?;
    rig.client.refresh_view().await?;
    let slow = rig.client.view().workers.first().map(|worker| worker.id);
    let slow = slow.ok_or_else(|| Error::internal("a worker has joined and is in no view"))?;
    let _others = (1..WORKERS).map(|_| start()).collect::<Result<Vec<_>>>()?;
    rig.client.refresh_view().await?;
    let mut versions = Vec::new();
    for number in 0..OBJECTS {
        versions.push(put(&mut rig, &format!("slow/{number}"), Bytes::from(vec![3; OBJECT_BYTES as usize])).await?);
    }
    rig.client.load(versions.clone(), false, |_| ()).await?;
    let client = rig.node.client(false).await?;

    let (took, mut reader) = (Took::default(), JoinSet::new());
    reader.spawn(read_on(client.clone(), versions, Arc::clone(&took)));
    sleep(WINDOW * (WINDOWS_SETTLED + WINDOWS_BEFORE)).await;
    let (said_before, halved) = (speed(&client, slow).await?, Instant::now());
    worker.sends(SENDS / 2)?;
    let followed = halved + WINDOW * WINDOWS_FOLLOWED;
    let mut said = said_before;
    let mut reported = None;
    while Instant::now() < followed && reported.is_none() {
        said = speed(&client, slow).await?;
        reported = (error(said, SENDS / 2) <= ERROR_MAX).then(|| halved.elapsed());
        sleep(SOON).await;
    }
    let end = followed + WINDOW * WINDOWS_BEFORE;
    sleep_until(end.into()).await;
    all_well(&mut reader)?;
    reader.shutdown().await;
    let took = took.lock();
    let (before, after) = (p99(&took, halved - WINDOW * WINDOWS_BEFORE, halved), p99(&took, followed, end));
    let windows = reported.unwrap_or(WINDOW * WINDOWS_FOLLOWED).as_secs_f64() / WINDOW.as_secs_f64();
    let mb = |rate: u64| rate as f64 / 1e6;
    Ok(vec![
        Figure::new("slow worker: speed that was said before", mb(said_before), "MB/s", "its pace", mb(SENDS), Bar::Nothing),
        Figure::new("slow worker: speed that is said of it", mb(said), "MB/s", "its pace", mb(SENDS / 2), Bar::Nothing),
        Figure::alone("slow worker: within 10 % of its pace after", windows, "windows", Bar::ValueAtMost(2.0)),
        Figure::alone("slow worker: p99 of reads three windows later", after, "ms", Bar::RatioAtMost(1.3))
            .beside("before", before),
    ])
}

/// Bytes a second that a worker sends, as the coordinator knows it; 0 where it does not.
async fn speed(client: &Client, of: WorkerId) -> Result<u64> {
    let speeds = placement(client).await?.speeds;
    Ok(speeds.into_iter().find(|(worker, _)| *worker == of).map_or(0, |(_, speed)| speed))
}

fn error(said: u64, real: u64) -> f64 {
    (said as f64 / real as f64 - 1.0).abs()
}

/// Pieces at random, all objects alike, each an operation of its own that waits for none of the others.
async fn read_on(client: Client, versions: Vec<ObjectVersion>, took: Took) -> Result<()> {
    let (mut state, mut at, mut reads) = (SEED, Instant::now(), JoinSet::new());
    loop {
        at += gap(&mut state);
        sleep_until(at.into()).await;
        let roll = split_mix(&mut state);
        let version = versions[(roll % OBJECTS) as usize].clone();
        let start = roll / OBJECTS % (OBJECT_BYTES / READ_BYTES) * READ_BYTES;
        let (client, took) = (client.clone(), Arc::clone(&took));
        reads.spawn(async move {
            client.read(client.operation(), &version, start..start + READ_BYTES).await?;
            took.lock().push((Instant::now(), at.elapsed().as_secs_f64() * 1e3));
            Ok::<(), Error>(())
        });
        all_well(&mut reads)?;
    }
}

/// Time until the next read is asked for: as many come in any time as chance has it.
fn gap(state: &mut u64) -> Duration {
    let part = (split_mix(state) >> 11) as f64 / (1u64 << 53) as f64;
    Duration::from_secs_f64((1.0 - part).ln().abs() * READ_BYTES as f64 / ASKED)
}

/// Of the reads that ended within a time.
fn p99(took: &[(Instant, f64)], from: Instant, to: Instant) -> f64 {
    let mut within: Vec<f64> = took.iter().filter(|(ended, _)| (from..to).contains(ended)).map(|(_, ms)| *ms).collect();
    within.sort_by(f64::total_cmp);
    within.get(within.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bytes_are_asked_for_as_are_said_and_not_evenly() {
        let mut state = SEED;
        let gaps: Vec<f64> = (0..10_000).map(|_| gap(&mut state).as_secs_f64()).collect();
        let usual = READ_BYTES as f64 / ASKED;
        assert!((gaps.iter().sum::<f64>() / 10_000.0 / usual - 1.0).abs() < 0.05);
        let long = gaps.iter().filter(|gap| **gap > 2.0 * usual).count();
        assert!((1_200..1_500).contains(&long), "{long}");
    }

    #[test]
    fn one_read_of_a_hundred_is_slower_than_p99_and_others_do_not_count() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut took: Vec<_> = (0..200).map(|ms| (start + second, f64::from(ms))).collect();
        took.extend([(start, 1e9), (start + 3 * second, 1e9)]);
        assert_eq!(p99(&took, start + second, start + 2 * second), 198.0);
        assert!(p99(&took, start + 2 * second, start + 3 * second).is_nan());
    }
}
