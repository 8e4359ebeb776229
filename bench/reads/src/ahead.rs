//! What is brought ahead of readers, in a tier that is about as large as what is read: how much of it is evicted before it is read.

use std::time::Duration;

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure};
use forebay_client::Client;
use forebay_types::{ObjectVersion, Result};
use futures::future::try_join_all;

use crate::rig::{Rig, RigSettings, path};

const MIB: u64 = 1 << 20;
/// Objects of 1 MiB that are read again and again.
const HOT: u64 = 128;
/// Readers at once, the objects of each, and how many of them are brought ahead of it.
const READERS: u64 = 8;
const EACH: u64 = 16;
const AHEAD: u64 = 4;
/// What a reader does with an object takes so long, while others bring theirs.
const PAUSE: Duration = Duration::from_millis(20);

/// In tiers of 1.2, 1.0 and 0.8 times what is read again and again and what is ahead of readers.
pub(crate) async fn evicted() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for share in [1.2, 1.0, 0.8] {
        let what = format!("brought ahead and evicted before it is read, tier of {share:.1}x the working set");
        figures.push(Figure::alone(what, fetched_again(share).await?, "%", Bar::ValueAtMost(0.5)));
    }
    Ok(figures)
}

/// What was fetched more than once for the readers, in percent of what they read: it had been evicted before.
async fn fetched_again(share: f64) -> Result<f64> {
    let dram_bytes = ((HOT + READERS * AHEAD) as f64 * share) as u64 * MIB;
    let mut rig = Rig::start(RigSettings { dram_bytes, ..RigSettings::default() }).await?;
    let client = rig.node.client(false).await?;
    let mut versions = Vec::new();
    for number in 0..HOT + READERS * EACH {
        let key = format!("o/{number}");
        rig.s3.put(&key, Bytes::from(vec![number as u8; MIB as usize])).await?;
        versions.push(client.open(&path(&key)?).await?.version);
    }
    let (hot, read_once) = versions.split_at(HOT as usize);
    for _ in 0..4 {
        for version in hot {
            client.read(client.operation(), version, 0..MIB).await?;
        }
    }
    rig.s3.take_counters()?;
    try_join_all(read_once.chunks(EACH as usize).map(|objects| read(&client, objects))).await?;
    let (fetched, needed) = (rig.s3.take_counters()?.bytes_out, READERS * EACH * MIB);
    Ok(fetched.saturating_sub(needed) as f64 / needed as f64 * 100.0)
}

/// Objects one after the other, as a query reads its files.
async fn read(client: &Client, objects: &[ObjectVersion]) -> Result<()> {
    let (operation, whole) = (client.operation(), 0..MIB);
    let plan = objects.iter().map(|version| (version.clone(), vec![whole.clone()])).collect();
    let _ahead = client.prefetch_near(operation, plan, AHEAD * MIB);
    for version in objects {
        tokio::time::sleep(PAUSE).await;
        client.read(operation, version, whole.clone()).await?;
    }
    Ok(())
}
