//! Gets a second, all in memory, against Redis over the same kind of socket.

use std::time::{Duration, Instant};

use forebay_bench_harness::{Rounds, cpu};
use forebay_client::Client;
use forebay_shard::Key;
use forebay_shards::Shards;
use forebay_types::{Error, Result};

use super::data::{Data, literal};
use super::redis::Redis;
use super::rig::{Rig, Settings, at};
use super::wait::until_at_rest;
use crate::measure::{Bar, Figure};
use crate::workload::Skew;

/// Gets under way at once.
pub(crate) const IN_FLIGHT: usize = 64;
/// Records of one call, where an asker has many keys.
const TOGETHER: usize = 16;
/// The size of the replica: where records are copied as they are.
const SIZE: f64 = 1.5;

/// One worker, as Redis is one process.
pub(crate) async fn figures(data: &Data, rounds: usize, seconds: u64) -> Result<()> {
    let rig = Rig::start(Settings { workers: 1, ..Settings::default() }).await?;
    let shards = rig.create(data, "gets.shards", 4, vec![SIZE]).await?;
    until_at_rest(&shards, data).await?;
    let redis = Redis::start(&[]).await?;
    let records = data.records.len();
    redis.fill((0..records).map(|row| data.json(row).to_string())).await?;
    let keys = data.gets(Skew::Uniform, 100_000, 11);
    check(&shards, data, &keys).await?;
    let length = Duration::from_secs(seconds);
    for (kind, client) in [("TCP", rig.client.clone()), ("Unix socket", rig.client_of_host().await?)] {
        let shards = of_client(&client, &shards);
        let is_unix = kind != "TCP";
        let (mut single, mut many) = (Rounds::default(), Rounds::default());
        let (mut us, mut their_us) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let before = cpu::of_process(rig.workers[0].id())?;
            let (rate, count) = rate(&shards, &keys, length).await?;
            us.push((cpu::of_process(rig.workers[0].id())? - before).as_secs_f64() * 1e6 / count as f64);
            let together = rate_together(&shards, &keys, length).await?;
            let before = cpu::of_process(redis.id())?;
            let requests = 50_000 * seconds;
            let theirs = redis.rate(records, requests, IN_FLIGHT, is_unix).await?;
            their_us.push((cpu::of_process(redis.id())? - before).as_secs_f64() * 1e6 / requests as f64);
            single.push(rate, theirs);
            many.push(together, theirs);
        }
        let what = format!("gets over {kind}, {IN_FLIGHT} in flight, all in memory");
        tell(&what, &single, Bar::RatioAtLeast(0.8));
        tell(&format!("gets over {kind}, {TOGETHER} keys a call, all in memory"), &many, Bar::RatioAtLeast(0.8));
        let (us, theirs) = (forebay_bench_harness::median(us), forebay_bench_harness::median(their_us));
        Figure::against(format!("{what}: the server's CPU"), us, "us a get", "redis", theirs, Bar::None).print();
    }
    Ok(())
}

/// The middle of the rounds, and how far they lie apart.
pub(crate) fn tell(what: &str, rounds: &Rounds, bar: Bar) {
    let ((ours, theirs), (_, low, high)) = (rounds.medians(), rounds.ratio());
    Figure::against(format!("{what} (ratio {low:.2} to {high:.2})"), ours, "ops/s", "redis", theirs, bar).print();
}

fn of_client(client: &Client, shards: &Shards) -> Shards {
    Shards::at(client, shards.path().clone(), shards.id().clone(), shards.dataset().clone())
}

async fn check(shards: &Shards, data: &Data, keys: &[u64]) -> Result<()> {
    for key in keys.iter().take(1000) {
        if !data.is_right(*key, shards.get(&literal(*key)?, None).await?.as_ref()) {
            return Err(Error::internal(format!("{}: {key} has another record", at("gets.shards")?)));
        }
    }
    Ok(())
}

/// Gets a second of askers with one get each, and how many were answered.
pub(crate) async fn rate(shards: &Shards, keys: &[u64], length: Duration) -> Result<(f64, u64)> {
    let began = Instant::now();
    let asker = |asker: usize| async move {
        let mut count = 0u64;
        for key in keys.iter().skip(asker).step_by(IN_FLIGHT).cycle() {
            if began.elapsed() > length {
                break;
            }
            let answer = shards.get(&literal(*key)?, None).await?;
            count += u64::from(answer.is_some());
        }
        Ok::<_, Error>(count)
    };
    // One task, as redis-benchmark has one thread.
    let counts = futures::future::try_join_all((0..IN_FLIGHT).map(asker)).await?;
    let count: u64 = counts.into_iter().sum();
    Ok((count as f64 / began.elapsed().as_secs_f64(), count))
}

async fn rate_together(shards: &Shards, keys: &[u64], length: Duration) -> Result<f64> {
    let began = Instant::now();
    let asker = |asker: usize| async move {
        let mut count = 0u64;
        for keys in keys.chunks_exact(TOGETHER).skip(asker).step_by(IN_FLIGHT / TOGETHER).cycle() {
            if began.elapsed() > length {
                break;
            }
            let keys: Vec<Key> = keys.iter().map(|key| Key::U64(*key)).collect();
            count += shards.get_many(&keys, None).await?.iter().flatten().count() as u64;
        }
        Ok::<_, Error>(count)
    };
    let counts = futures::future::try_join_all((0..IN_FLIGHT / TOGETHER).map(asker)).await?;
    Ok(counts.into_iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}
