//! The network of one of four workers carries half as much from now on: when the coordinator says so, and what reads take before and after.
//! Each worker is behind a link of its own, through which there is more asked for than it carries all the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure, free_address};
use forebay_client::Client;
use forebay_types::{Error, ObjectVersion, Result, WorkerId, split_mix};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::bed::{SOON, all_well, placement, put};
use crate::hot::link::Link;
use crate::rig::{Rig, RigSettings, Worker};

/// Users have a minute.
const WINDOW: Duration = Duration::from_secs(6);
/// Until the plan has settled, and then as many before the network is slow.
const WINDOWS_SETTLED: u32 = 3;
const WINDOWS_BEFORE: u32 = 2;
/// From then on until it is looked at what reads take, and as long.
const WINDOWS_FOLLOWED: u32 = 3;
const WORKERS: usize = 4;
/// Bytes a second of a link.
const LINK: u64 = 25_000_000;
/// What a link takes from a worker's connection before it has carried it: what lies in buffers is sent, as far as a worker can tell.
const BUFFER_BYTES: usize = 128 << 10;
const OBJECTS: u64 = 40;
const OBJECT_BYTES: u64 = 4 << 20;
const READ_BYTES: u64 = 1 << 20;
/// More at a worker than the buffers of its connections take.
const READERS: u64 = 96;
const ERROR_MAX: f64 = 0.1;

/// When reads ended, and the milliseconds that each took.
type Took = Arc<Mutex<Vec<(Instant, f64)>>>;

pub(super) async fn slow_worker() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings { window: Some(WINDOW), dram_bytes: 0, ..RigSettings::default() }).await?;
    let (mut links, mut workers) = (Vec::new(), Vec::new());
    for _ in 0..WORKERS {
        let listen = free_address()?;
        let link = Link::shallow(listen, BUFFER_BYTES)?;
        link.set(LINK);
        let places = (listen.to_string(), link.address.to_string());
        workers.push(Worker::behind(rig.node.address(), 1 << 30, (places.0.as_str(), places.1.as_str()))?);
        links.push(link);
    }
    let mut versions = Vec::new();
    rig.client.refresh_view().await?;
    for number in 0..OBJECTS {
        versions.push(put(&mut rig, &format!("slow/{number}"), Bytes::from(vec![3; OBJECT_BYTES as usize])).await?);
    }
    rig.client.load(versions.clone(), false, |_| ()).await?;
    let client = rig.node.client(false).await?;
    let slow = behind(&client, &links[0])?;

    let (took, mut readers) = (Took::default(), JoinSet::new());
    for reader in 0..READERS {
        readers.spawn(read_on(client.clone(), versions.clone(), reader, Arc::clone(&took)));
    }
    sleep(WINDOW * (WINDOWS_SETTLED + WINDOWS_BEFORE)).await;
    let (said_before, halved) = (speed(&client, slow).await?, Instant::now());
    links[0].set(LINK / 2);
    let followed = halved + WINDOW * WINDOWS_FOLLOWED;
    let mut said = said_before;
    let mut reported = None;
    while Instant::now() < followed && reported.is_none() {
        said = speed(&client, slow).await?;
        reported = (error(said, LINK / 2) <= ERROR_MAX).then(|| halved.elapsed());
        sleep(SOON).await;
    }
    let end = followed + WINDOW * WINDOWS_BEFORE;
    sleep_until(end.into()).await;
    all_well(&mut readers)?;
    readers.shutdown().await;
    let took = took.lock();
    let (before, after) = (p99(&took, halved - WINDOW * WINDOWS_BEFORE, halved), p99(&took, followed, end));
    let windows = reported.unwrap_or(WINDOW * WINDOWS_FOLLOWED).as_secs_f64() / WINDOW.as_secs_f64();
    let mb = |rate: u64| rate as f64 / 1e6;
    Ok(vec![
        Figure::new("slow worker: speed that was said of it before", mb(said_before), "MB/s", "its link", mb(LINK), Bar::Nothing),
        Figure::new("slow worker: speed that is said of it", mb(said), "MB/s", "its link", mb(LINK / 2), Bar::Nothing),
        Figure::alone("slow worker: within 10 % of its link after", windows, "windows", Bar::ValueAtMost(2.0)),
        Figure::alone("slow worker: p99 of reads three windows later", after, "ms", Bar::RatioAtMost(1.3))
            .beside("before", before),
    ])
}

/// Who is reached through a link.
fn behind(client: &Client, link: &Link) -> Result<WorkerId> {
    let address = link.address.to_string();
    let found = client.view().workers.iter().find(|worker| worker.address == address).map(|worker| worker.id);
    found.ok_or_else(|| Error::internal(format!("no worker is at {address}")))
}

/// Bytes a second that a worker sends, as the coordinator knows it; 0 where it does not.
async fn speed(client: &Client, of: WorkerId) -> Result<u64> {
    let speeds = placement(client).await?.speeds;
    Ok(speeds.into_iter().find(|(worker, _)| *worker == of).map_or(0, |(_, speed)| speed))
}

fn error(said: u64, real: u64) -> f64 {
    (said as f64 / real as f64 - 1.0).abs()
}

/// Pieces at random, all objects alike, each an operation of its own.
async fn read_on(client: Client, versions: Vec<ObjectVersion>, seed: u64, took: Took) -> Result<()> {
    let mut state = seed;
    loop {
        let roll = split_mix(&mut state);
        let (version, piece) = (&versions[(roll % OBJECTS) as usize], roll / OBJECTS % (OBJECT_BYTES / READ_BYTES));
        let (began, start) = (Instant::now(), piece * READ_BYTES);
        client.read(client.operation(), version, start..start + READ_BYTES).await?;
        took.lock().push((Instant::now(), began.elapsed().as_secs_f64() * 1e3));
    }
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
    fn one_read_of_a_hundred_is_slower_than_p99_and_others_do_not_count() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut took: Vec<_> = (0..200).map(|ms| (start + second, f64::from(ms))).collect();
        took.extend([(start, 1e9), (start + 3 * second, 1e9)]);
        assert_eq!(p99(&took, start + second, start + 2 * second), 198.0);
        assert!(p99(&took, start + 2 * second, start + 3 * second).is_nan());
    }
}
