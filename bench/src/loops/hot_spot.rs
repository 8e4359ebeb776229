//! An object becomes hot by S3 alone, on four workers that send so many bytes a second each: when it has copies, what they are worth, and
//! when they are gone again. All is set as users have it but for the window, and polls of a third of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure};
use forebay_client::Client;
use forebay_protocol::SegmentStatus;
use forebay_shared_storage::{GetRange, Storage};
use forebay_types::{Key, ObjectVersion, Result};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::bed::{SOON, all_well, get, put, segment, window_begins};
use crate::rig::{Rig, RigSettings, Worker};

/// Users have a minute.
const WINDOW: Duration = Duration::from_secs(10);
/// What is not so after as many windows is not waited for.
const WINDOWS_MAX: f64 = 6.0;
const WORKERS: usize = 4;
/// Bytes a second that a worker sends: four of them leave the processors half idle.
const SENDS: u64 = 20_000_000;
const HOT_BYTES: u64 = 8 << 20;
const READ_BYTES: u64 = 1 << 20;
const READERS: u64 = 16;
/// Objects that one reader goes through all the time, with a pause after each.
const OTHERS: u64 = 24;
const OTHER_BYTES: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn hot_spot() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings { window: Some(WINDOW), dram_bytes: 0, ..RigSettings::default() }).await?;
    let start = |_| Worker::paced(rig.node.address(), 1 << 30, SENDS);
    let _workers = (0..WORKERS).map(start).collect::<Result<Vec<_>>>()?;
    rig.client.refresh_view().await?;
    let gateway = rig.node.gateway()?;
    let hot = put(&mut rig, "hot", Bytes::from(vec![1; HOT_BYTES as usize])).await?;
    let mut others = Vec::new();
    for number in 0..OTHERS {
        others.push(put(&mut rig, &format!("others/{number}"), Bytes::from(vec![2; OTHER_BYTES])).await?);
    }
    rig.client.load([&others[..], std::slice::from_ref(&hot)].concat(), false, |_| ()).await?;
    let mut reader_of_others = JoinSet::new();
    reader_of_others.spawn(read_others(gateway.clone(), others));
    window_begins(&mut rig).await?;

    let (bytes, mut readers, began) = (Arc::<AtomicU64>::default(), JoinSet::new(), Instant::now());
    for reader in 0..READERS {
        readers.spawn(read_hot(gateway.clone(), hot.key.clone(), reader, Arc::clone(&bytes)));
    }
    let holders = |count: usize| move |hot: Option<&SegmentStatus>| hot.is_some_and(|hot| hot.routing.len() >= count);
    let copied = windows_until(&rig.client, &hot, began, holders(2)).await?;
    let alone = bytes.load(Relaxed) as f64 / began.elapsed().as_secs_f64();
    windows_until(&rig.client, &hot, began, holders(WORKERS)).await?;
    // Until the gateway has heard of it.
    sleep(WINDOW / 2).await;
    let (before, since) = (bytes.load(Relaxed), Instant::now());
    sleep(WINDOW).await;
    let together = (bytes.load(Relaxed) - before) as f64 / since.elapsed().as_secs_f64();
    let routed = segment(&rig.client, &hot.key).await?.map_or(0, |hot| hot.routing.len());
    all_well(&mut readers)?;
    readers.shutdown().await;
    let is_gone = |hot: Option<&SegmentStatus>| hot.is_none_or(|hot| hot.held.len() + hot.loading.len() <= 1);
    let gone = windows_until(&rig.client, &hot, Instant::now(), is_gone).await?;
    all_well(&mut reader_of_others)?;
    let mb = |rate: f64| rate / 1e6;
    Ok(vec![
        Figure::alone("hot spot by S3: copies are read after", copied, "windows", Bar::ValueAtMost(2.0)),
        Figure::alone("hot spot by S3: holders then", routed as f64, "workers", Bar::ValueAtLeast(WORKERS as f64)),
        Figure::alone("hot spot by S3: throughput of its holders", mb(together), "MB/s", Bar::RatioAtLeast(3.0))
            .beside("its first holder alone", mb(alone)),
        Figure::alone("hot spot by S3: copies are gone after its end within", gone, "windows", Bar::ValueAtMost(5.0)),
    ])
}

/// Windows from a moment on until the object is as it should be, or is waited for no more.
async fn windows_until(
    client: &Client,
    of: &ObjectVersion,
    from: Instant,
    is_so: impl Fn(Option<&SegmentStatus>) -> bool,
) -> Result<f64> {
    loop {
        let windows = from.elapsed().as_secs_f64() / WINDOW.as_secs_f64();
        if is_so(segment(client, &of.key).await?.as_ref()) || windows > WINDOWS_MAX {
            return Ok(windows);
        }
        sleep(SOON).await;
    }
}

/// One piece of the object after the other, without a pause.
async fn read_hot(gateway: Storage, key: Key, first: u64, bytes: Arc<AtomicU64>) -> Result<()> {
    let mut start = first * READ_BYTES % HOT_BYTES;
    loop {
        bytes.fetch_add(get(&gateway, &key, GetRange::Bounded(start..start + READ_BYTES)).await?, Relaxed);
        start = (start + READ_BYTES) % HOT_BYTES;
    }
}

async fn read_others(gateway: Storage, others: Vec<ObjectVersion>) -> Result<()> {
    loop {
        for other in &others {
            get(&gateway, &other.key, GetRange::All).await?;
            sleep(PAUSE).await;
        }
    }
}
