//! What it takes until all replicas are there again of shards that a lost worker held.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shards::{ShardStatus, Shards};
use forebay_types::{Error, Result};
use tokio::sync::Mutex;

use crate::service::data::{Data, literal};
use crate::service::rig::{Rig, Settings};
use crate::service::wait::until_at_rest;
use crate::workload::Skew;

/// As BlowFish has them (NSDI 2016, section 5.1).
const WORKERS: usize = 12;
const REPLICAS: [f64; 3] = [0.9, 0.5, 0.5];
const SHARDS: usize = 24;
/// Reed-Solomon (10,2) stores so much of the input, and reads so many blocks for each that is lost.
const RS_STORED: f64 = 1.2;
const RS_BLOCKS: f64 = 10.0;
const ASKERS: usize = 8;
/// The longest that is waited for.
const WITHIN: Duration = Duration::from_secs(300);

pub(crate) async fn figures(data: &Data, seconds: u64) -> Result<()> {
    let mut rig = Rig::start(Settings { workers: WORKERS, ..Settings::default() }).await?;
    let shards = rig.create(data, "repair.shards", SHARDS, REPLICAS.to_vec()).await?;
    until_at_rest(&shards, data).await?;
    let before = shards.status().await?;
    let (stop, ended) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let keys = data.gets(Skew::Uniform, 100_000, 3);
    let asker = |asker: usize| {
        let (shards, stop, ended, keys) = (&shards, &stop, &ended, &keys);
        async move {
            let mine = keys.iter().skip(asker).step_by(ASKERS).cycle().take_while(|_| !stop.load(Relaxed));
            for key in mine {
                if !data.is_right(*key, shards.get(&literal(*key)?, None).await?.as_ref()) {
                    return Err(Error::internal(format!("{key} has another record")));
                }
                ended.lock().await.push(Instant::now());
            }
            Ok(())
        }
    };
    let repairing = async {
        let quiet = Duration::from_secs(seconds.max(2) * 2);
        tokio::time::sleep(quiet).await;
        rig.s3.take_counters()?;
        let killed = Instant::now();
        drop(rig.workers.remove(0));
        let repaired = until_whole(&rig, &shards).await;
        stop.store(true, Relaxed);
        Ok::<_, Error>((killed, repaired?, quiet, rig.s3.take_counters()?.bytes_out))
    };
    let (asked, repaired) = futures::join!(futures::future::try_join_all((0..ASKERS).map(asker)), repairing);
    asked?;
    let (killed, repaired, quiet, from_storage) = repaired?;
    let lost = lost_bytes(&rig, &before);
    let input: u64 = before.iter().map(|shard| shard.input_bytes).sum();
    let what = format!("one of {WORKERS} workers lost, {REPLICAS:?}, {} MB of input", input / 1_000_000);
    let secs = (repaired - killed).as_secs_f64();
    line(format!("{what}: all replicas there again, lease counted in"), secs, "s", Bar::Nothing);
    let of_rs = input as f64 * RS_STORED / WORKERS as f64 * RS_BLOCKS;
    let moved = format!("{what}: bytes that are moved");
    Figure::new(moved, lost as f64, "bytes", "Reed-Solomon (10,2) reads", of_rs, Bar::RatioAtMost(0.2)).print(true);
    let stored = format!("{what}: bytes of shared storage");
    Figure::new(stored, from_storage as f64, "bytes", "bytes that are moved", lost as f64, Bar::RatioAtMost(0.05)).print(true);
    let ended = ended.lock().await;
    let rate = |from: Instant, to: Instant| {
        let count = ended.iter().filter(|ended| (from..to).contains(*ended)).count();
        count as f64 / (to - from).as_secs_f64()
    };
    // The first half is of askers' beginning.
    let (during, usual) = (rate(killed, repaired), rate(killed - quiet / 2, killed));
    let throughput = format!("{what}: gets meanwhile");
    Figure::new(throughput, during, "gets/s", "before", usual, Bar::RatioAtLeast(0.88)).print(true);
    Ok(())
}

/// Waits until every shard has its replicas on workers that are there.
async fn until_whole(rig: &Rig, shards: &Shards) -> Result<Instant> {
    let began = Instant::now();
    loop {
        rig.client.refresh_view().await?;
        let status = shards.status().await?;
        let here =
            |shard: &ShardStatus| shard.replicas.iter().filter(|replica| replica.bytes.is_some_and(|bytes| bytes > 0)).count();
        if rig.client.view().workers.len() < WORKERS && status.iter().all(|shard| here(shard) >= REPLICAS.len()) {
            return Ok(Instant::now());
        }
        if began.elapsed() > WITHIN {
            return Err(Error::internal(format!("the replicas do not come back: {status:?}")));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Bytes of the files that replicas on workers which are gone came in.
fn lost_bytes(rig: &Rig, before: &[ShardStatus]) -> u64 {
    let there: Vec<String> = rig.client.view().workers.iter().map(|worker| worker.id.to_string()).collect();
    let lost = |shard: &ShardStatus| {
        let replicas = shard.replicas.iter().filter(|replica| replica.size.is_some() && !there.contains(&replica.worker));
        replicas.count() as u64 * shard.stored_bytes
    };
    before.iter().map(lost).sum()
}
