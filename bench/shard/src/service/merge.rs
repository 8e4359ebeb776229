//! Changes that are merged into the files of their shards: what that writes, what memory it takes, and what gets feel of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::cpu::status_bytes;
use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::Key;
use forebay_shards::{Shards, latest_manifest};
use forebay_types::{Error, ForebayPath, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value as Json, json};
use tokio::runtime::Handle;

use super::data::Data;
use super::rig::{Rig, Settings, WorkerProcess};
use super::wait::until_at_rest;
use crate::workload::Skew;

/// Gets at once, beside the changes.
const ASKERS: usize = 4;
/// Changes of one call.
const TOGETHER: usize = 500;
/// How long a call waits for room: changes come as fast as merges take them in.
const PATIENCE: Duration = Duration::from_secs(600);
/// What is changed, as a part of the input.
const CHANGED: f64 = 0.5;
/// Bytes of changes of a shard that no merge begins for by itself.
const BELOW: u64 = 2 << 20;
/// Memory that no file stands behind.
const ANONYMOUS: &str = "RssAnon:";
/// How often the memory of workers is looked at.
const SOON: Duration = Duration::from_millis(20);

pub(crate) async fn figures(data: &Data, seconds: u64) -> Result<()> {
    let rig = Rig::start(Settings { workers: 2, ..Settings::default() }).await?;
    let input = data.input_bytes();
    // Shards of about 128 MB, as a dataset has them by itself.
    let shards = rig.create(data, "merge.shards", (input / 128_000_000).max(2) as usize, vec![0.5, 0.5]).await?;
    until_at_rest(&shards, data).await?;
    let keys = data.gets(Skew::Zipf, 100_000, 41);
    let gets = Gets { shards: &shards, keys: &keys };
    rig.until_heard().await;
    let before = p99_ms(gets.until(&AtomicBool::new(false), Duration::from_secs(seconds.max(5) * 2)).await?);
    let (stored, manifest) = (stored_bytes(&rig, shards.path()).await?, manifest(&rig, &shards).await?);
    let anonymous: Vec<u64> = rig.workers.iter().map(|worker| status_bytes(worker.id(), ANONYMOUS)).collect::<Result<_>>()?;
    let (stop, peak, changed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let ids: Vec<u32> = rig.workers.iter().map(WorkerProcess::id).collect();
    let changing = async || {
        let done = change(data, &shards, (input as f64 * CHANGED) as u64, &changed).await;
        stop.store(true, Relaxed);
        done
    };
    let watching = async || {
        while !stop.load(Relaxed) {
            for (id, before) in ids.iter().zip(&anonymous) {
                peak.fetch_max(status_bytes(*id, ANONYMOUS)?.saturating_sub(*before), Relaxed);
            }
            tokio::time::sleep(SOON).await;
        }
        Ok::<_, Error>(())
    };
    let runtime = Handle::current();
    // A thread each: who makes changes takes its thread for milliseconds, which no get is to wait for.
    let (changing, watching, took) = std::thread::scope(|scope| {
        let changing = scope.spawn(|| runtime.block_on(changing()));
        let watching = scope.spawn(|| runtime.block_on(watching()));
        let took = scope.spawn(|| runtime.block_on(gets.until(&stop, Duration::MAX)));
        let ended = "a thread of this bench ends with a result";
        (changing.join().expect(ended), watching.join().expect(ended), took.join().expect(ended))
    });
    changing?;
    watching?;
    let during = p99_ms(took?);
    let merges = self::manifest(&rig, &shards).await? - manifest;
    let written = stored_bytes(&rig, shards.path()).await? - stored;
    let changed = changed.load(Relaxed);
    let what = format!(
        "merging {} MB of changes into {} shards of {} MB, {merges} merges",
        changed / 1_000_000,
        shards.dataset().shards.len(),
        input / 1_000_000
    );
    if merges == 0 {
        return Err(Error::internal("nothing was merged: give it more with --values-bytes"));
    }
    let amplified = written as f64 / changed as f64;
    line(format!("{what}: bytes stored a byte changed, with the log"), amplified, "x", Bar::ValueAtMost(12.0));
    let peak = peak.load(Relaxed) as f64 / f64::from(1 << 20);
    line(format!("{what}: memory of a worker beyond that before"), peak, "MiB", Bar::ValueAtMost(512.0));
    Figure::new(format!("{what}: p99 of gets meanwhile"), during, "ms", "before", before, Bar::RatioAtMost(2.0)).print(true);
    alone(data, &gets, before).await
}

/// The same of merges alone: nothing is written meanwhile, which takes its part of processors and has other workers look into the log.
async fn alone(data: &Data, gets: &Gets<'_>, before: f64) -> Result<()> {
    let (shards, count) = (gets.shards.clone().with_patience(PATIENCE), gets.shards.dataset().shards.len());
    let merge_all = async || {
        for shard in 0..count {
            shards.merge_shard(shard).await?;
        }
        Ok::<_, Error>(())
    };
    merge_all().await?;
    change(data, &shards, BELOW * count as u64, &AtomicU64::new(0)).await?;
    let stop = AtomicBool::new(false);
    let merging = async {
        let merged = merge_all().await;
        stop.store(true, Relaxed);
        merged
    };
    let (merged, took) = futures::join!(merging, gets.until(&stop, Duration::MAX));
    merged?;
    let what = format!("merges alone, of {count} shards: p99 of gets meanwhile");
    Figure::new(what, p99_ms(took?), "ms", "before", before, Bar::RatioAtMost(2.0)).print(true);
    Ok(())
}

/// Writes other values to random records until so many bytes were written.
async fn change(data: &Data, shards: &Shards, bytes: u64, changed: &AtomicU64) -> Result<()> {
    let shards = shards.clone().with_patience(PATIENCE);
    let mut chance = StdRng::seed_from_u64(43);
    let mut number = 0u64;
    while changed.load(Relaxed) < bytes {
        let mut of_call = 0;
        let changes: Vec<Json> = (0..TOGETHER)
            .map(|_| {
                let row = chance.random_range(0..data.records.len());
                let mut record = data.json(row);
                number += 1;
                record["l_comment"] = format!("changed for the time number {number}").into();
                let values = record.as_object().into_iter().flatten();
                of_call += values.map(|(_, value)| value.as_str().map_or(8, |text| text.len() as u64 + 1)).sum::<u64>();
                json!({"put": record})
            })
            .collect();
        shards.change(&changes).await?;
        changed.fetch_add(of_call, Relaxed);
    }
    Ok(())
}

/// Gets, one after the other of each asker.
struct Gets<'a> {
    shards: &'a Shards,
    keys: &'a [u64],
}

impl Gets<'_> {
    /// How long each took, until it is over or the time is.
    async fn until(&self, over: &AtomicBool, length: Duration) -> Result<Vec<Duration>> {
        let began = Instant::now();
        let asker = |asker: usize| async move {
            let mut took = Vec::new();
            for key in self.keys.iter().skip(asker).step_by(ASKERS).cycle() {
                if over.load(Relaxed) || began.elapsed() > length {
                    break;
                }
                let asked = Instant::now();
                if self.shards.record(&Key::U64(*key), None).await?.is_none() {
                    return Err(Error::internal(format!("{key} has no record")));
                }
                took.push(asked.elapsed());
            }
            Ok(took)
        };
        Ok(futures::future::try_join_all((0..ASKERS).map(asker)).await?.concat())
    }
}

fn p99_ms(mut took: Vec<Duration>) -> f64 {
    took.sort();
    took.get(took.len() * 99 / 100).map_or(0.0, Duration::as_secs_f64) * 1e3
}

async fn manifest(rig: &Rig, shards: &Shards) -> Result<u64> {
    latest_manifest(&rig.client, shards.path()).await?.ok_or_else(|| Error::internal("the dataset is gone"))
}

/// Bytes of all objects of a dataset: none is deleted within a day.
async fn stored_bytes(rig: &Rig, folder: &ForebayPath) -> Result<u64> {
    rig.client.refresh(folder).await?;
    Ok(rig.client.list_all(folder).await?.iter().map(|info| info.version.size).sum())
}
