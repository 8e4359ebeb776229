//! Gets a second, all in memory, against Redis over the same kind of socket.

use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, Rounds, cpu, line};
use forebay_client::Client;
use forebay_shard::Key;
use forebay_shards::Shards;
use forebay_types::{Error, Result};

use super::data::{Data, literal};
use super::redis::Redis;
use super::rig::{Rig, Settings};
use super::wait::until_at_rest;
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
    let redis = Redis::start(&[])?;
    redis.fill((0..data.records.len()).map(|row| data.json(row).to_string())).await?;
    let keys = data.gets(Skew::Uniform, 100_000, 11);
    check(&shards, data, &keys).await?;
    let (begun, _) = rate(&shards, &keys, Duration::from_secs(seconds)).await?;
    let what = format!("gets over TCP, {IN_FLIGHT} in flight, of a worker that has begun within two minutes");
    line(what, begun, "ops/s", Bar::Nothing);
    rig.until_heard().await;
    let bed = Bed { data, rig: &rig, redis: &redis, keys: &keys, rounds, length: Duration::from_secs(seconds) };
    bed.compare("TCP", &of_client(&rig.client, &shards), false).await?;
    bed.compare("Unix socket", &of_client(&rig.client_of_host().await?, &shards), true).await
}

/// What is measured, and against what.
struct Bed<'a> {
    data: &'a Data,
    rig: &'a Rig,
    redis: &'a Redis,
    keys: &'a [u64],
    rounds: usize,
    length: Duration,
}

impl Bed<'_> {
    /// Gets over a kind of socket, and what the transport alone does there.
    async fn compare(&self, kind: &str, shards: &Shards, is_unix: bool) -> Result<()> {
        let (mut single, mut json, mut many, mut echo) =
            (Rounds::default(), Rounds::default(), Rounds::default(), Rounds::default());
        let (mut us, mut their_us) = (Vec::new(), Vec::new());
        let requests = 50_000 * self.length.as_secs();
        for _ in 0..self.rounds {
            let (ours, spent) = self.cpu_us(self.rig.workers[0].id(), rate(shards, self.keys, self.length)).await?;
            let (ours, count) = ours?;
            us.push(spent / count as f64);
            let (theirs, spent) =
                self.cpu_us(self.redis.id(), self.redis.rate(self.data.records.len(), requests, IN_FLIGHT, is_unix)).await?;
            let theirs = theirs?;
            their_us.push(spent / requests as f64);
            single.push(ours, theirs);
            json.push(rate_of_json(shards, self.keys, self.length).await?.0, theirs);
            many.push(rate_together(shards, self.keys, self.length).await?, theirs);
            echo.push(ours, super::echo::rate(is_unix, IN_FLIGHT, self.length).await?);
        }
        let what = format!("gets over {kind}, {IN_FLIGHT} in flight, all in memory");
        tell(&what, &single, "redis", Bar::RatioAtLeast(0.8));
        tell(&format!("{what}: as JSON"), &json, "redis", Bar::Nothing);
        tell(&format!("{what}: {TOGETHER} keys a call"), &many, "redis", Bar::RatioAtLeast(0.8));
        tell(&format!("{what}: the transport's limit"), &echo, "echo", Bar::Nothing);
        let (us, theirs) = (forebay_bench_harness::median(us), forebay_bench_harness::median(their_us));
        Figure::new(format!("{what}: the server's CPU"), us, "us a get", "redis", theirs, Bar::Nothing).print(true);
        Ok(())
    }

    /// Microseconds of CPU that a process takes meanwhile.
    async fn cpu_us<T>(&self, process: u32, work: impl Future<Output = T>) -> Result<(T, f64)> {
        let before = cpu::of_process(process)?;
        let done = work.await;
        Ok((done, (cpu::of_process(process)? - before).as_secs_f64() * 1e6))
    }
}

/// The middle of the rounds, and how far they lie apart.
pub(crate) fn tell(what: &str, rounds: &Rounds, peer: &str, bar: Bar) {
    let ((ours, theirs), (_, low, high)) = (rounds.medians(), rounds.ratio());
    Figure::new(format!("{what} (ratio {low:.2} to {high:.2})"), ours, "ops/s", peer, theirs, bar).print(true);
}

fn of_client(client: &Client, shards: &Shards) -> Shards {
    Shards::at(client, shards.path().clone(), shards.id().clone(), shards.dataset().clone())
}

async fn check(shards: &Shards, data: &Data, keys: &[u64]) -> Result<()> {
    for key in keys.iter().take(1000) {
        if !data.is_right(*key, shards.get(&literal(*key)?, None).await?.as_ref()) {
            return Err(Error::internal(format!("{}: {key} has another record", shards.path())));
        }
    }
    Ok(())
}

/// Gets a second of askers with one get each, and how many were answered.
pub(crate) async fn rate(shards: &Shards, keys: &[u64], length: Duration) -> Result<(f64, u64)> {
    asked(keys, length, async |key| Ok(shards.record(&Key::U64(key), None).await?.is_some())).await
}

/// The same where each record is made a JSON object.
async fn rate_of_json(shards: &Shards, keys: &[u64], length: Duration) -> Result<(f64, u64)> {
    asked(keys, length, async |key| Ok(shards.get(&literal(key)?, None).await?.is_some())).await
}

async fn asked(keys: &[u64], length: Duration, get: impl AsyncFn(u64) -> Result<bool>) -> Result<(f64, u64)> {
    let (began, get) = (Instant::now(), &get);
    let asker = |asker: usize| async move {
        let mut count = 0u64;
        for key in keys.iter().skip(asker).step_by(IN_FLIGHT).cycle() {
            if began.elapsed() > length {
                break;
            }
            count += u64::from(get(*key).await?);
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
            count += shards.records(&keys, None).await?.iter().flatten().count() as u64;
        }
        Ok::<_, Error>(count)
    };
    let counts = futures::future::try_join_all((0..IN_FLIGHT / TOGETHER).map(asker)).await?;
    Ok(counts.into_iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}
