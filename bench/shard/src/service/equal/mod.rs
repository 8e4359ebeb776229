//! Gets against Redis with the same memory, twice and three times as many records as that holds.

mod askers;

use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, Rounds, line, median};
use forebay_types::{Error, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;

use self::askers::{Asker, Form, Lake, Ours, Theirs};
use super::data::Data;
use super::gets::{IN_FLIGHT, tell};
use super::redis::Redis;
use super::rig::{Rig, Settings};
use super::wait::{stored_bytes, until_at_rest};
use crate::workload::{Rows, Skew};

/// What the records as Redis keeps them are over what either has of memory.
const OVER: [f64; 2] = [2.0, 3.0];
/// Of a request to shared storage.
const LATENCY: Duration = Duration::from_millis(10);
/// The replica's size, as a part of the records' own bytes, at most: beyond it gets are little faster.
const SIZE_MAX: f64 = 1.5;
/// Of what both may have a shard takes so much at most: its files are a little larger or smaller than its size says.
const FILLED: f64 = 0.97;

/// What gets gave in a while.
struct Took {
    rate: f64,
    p99_ms: f64,
    /// The part of them that had to go to the store.
    missed: f64,
}

/// A Redis, and how it keeps records.
struct Peer {
    form: Form,
    redis: Redis,
    rounds: Rounds,
    p99_ms: Vec<f64>,
    missed: Vec<f64>,
}

/// One worker against one Redis, misses of which are read by range from the same store.
pub(crate) async fn figures(kind: &str, data: &Data, rounds: usize, seconds: u64) -> Result<()> {
    let all = memory_of_all(data).await? as f64;
    for over in OVER {
        let what = format!("{kind} at equal memory, records {over}x of it");
        at(&what, data, all / over, (rounds, Duration::from_secs(seconds))).await?;
    }
    Ok(())
}

async fn at(what: &str, data: &Data, memory: f64, (rounds, length): (usize, Duration)) -> Result<()> {
    let mut rig = Rig::start(Settings { workers: 1, ..Settings::default() }).await?;
    let size = (memory * FILLED / data.input_bytes() as f64).min(SIZE_MAX);
    let shards = rig.create(data, "equal.shards", 4, vec![size]).await?;
    let lake = Lake::store(&mut rig, data).await?;
    let rows = Rows::new(Skew::Zipf, data.records.len());
    let mut peers = Vec::new();
    for form in [Form::Plain, Form::Packed] {
        peers.push(Peer::start(form, &lake, memory).await?);
    }
    until_at_rest(&shards, data).await?;
    rig.until_heard().await;
    // By then it has the layers that gets pay for.
    until_at_rest(&shards, data).await?;
    let bytes = stored_bytes(&shards).await? as f64;
    if bytes > memory {
        return Err(Error::internal(format!(
            "the shards take {bytes} bytes, which is more than the {memory} that both may have"
        )));
    }
    Figure::new(format!("bytes of {what}"), bytes, "bytes", "what Redis has", memory, Bar::RatioAtMost(1.0)).print(true);
    // What it learns it forgets again within minutes.
    for peer in &peers {
        peer.learn(&lake, &rows).await?;
    }
    rig.s3.set_link(0, LATENCY)?;
    let (mut p99_ms, mut requests) = (Vec::new(), Vec::new());
    for seed in 1..=rounds as u64 {
        rig.s3.take_counters()?;
        let askers = (0..IN_FLIGHT).map(|_| Ours::new(&shards, &data.records.keys)).collect();
        let ours = asked(askers, &rows, seed, (u64::MAX, length)).await?;
        requests.push(rig.s3.take_counters()?.requests as f64 / (ours.rate * length.as_secs_f64()));
        p99_ms.push(ours.p99_ms);
        for peer in &mut peers {
            let theirs = asked(peer.askers(&lake).await?, &rows, seed, (u64::MAX, length)).await?;
            peer.rounds.push(ours.rate, theirs.rate);
            peer.p99_ms.push(theirs.p99_ms);
            peer.missed.push(theirs.missed);
        }
    }
    // As who runs it would choose.
    let best = peers.into_iter().max_by(|a, b| a.rounds.medians().1.total_cmp(&b.rounds.medians().1));
    let best = best.ok_or_else(|| Error::internal("there is no peer"))?;
    let peer = format!("redis, {}", best.form);
    tell(&format!("gets of {what}, zipf 0.99"), &best.rounds, &peer, Bar::RatioAtLeast(3.0));
    let (ours, theirs) = (median(p99_ms), median(best.p99_ms));
    Figure::new(format!("p99 of gets of {what}, zipf 0.99"), ours, "ms", &peer, theirs, Bar::Nothing).print(true);
    line(format!("requests to the store a get of {what}: ours"), median(requests), "requests", Bar::Nothing);
    line(format!("requests to the store a get of {what}: {peer}"), median(best.missed), "requests", Bar::Nothing);
    Ok(())
}

impl Peer {
    /// One that has had all records put into it.
    async fn start(form: Form, lake: &Lake, memory: f64) -> Result<Self> {
        let most = format!("{}", memory as u64);
        let redis = Redis::start(&["--maxmemory", &most, "--maxmemory-policy", "allkeys-lfu"])?;
        redis.fill(lake.values(form)?).await?;
        Ok(Self { form, redis, rounds: Rounds::default(), p99_ms: Vec::new(), missed: Vec::new() })
    }

    /// It learns which are asked for often: it is asked for as many as there are.
    async fn learn(&self, lake: &Lake, rows: &Rows) -> Result<()> {
        let most = (lake.records() / IN_FLIGHT) as u64;
        asked(self.askers(lake).await?, rows, 0, (most, Duration::MAX)).await.map(drop)
    }

    async fn askers<'a>(&self, lake: &'a Lake) -> Result<Vec<Theirs<'a>>> {
        let mut askers = Vec::new();
        for _ in 0..IN_FLIGHT {
            askers.push(Theirs::new(lake, self.form, self.redis.connect().await?)?);
        }
        Ok(askers)
    }
}

/// Gets of records as the law draws them, each time others: one after the other of each asker, so many of each and for so long at most.
async fn asked<A: Asker>(askers: Vec<A>, rows: &Rows, seed: u64, (most, length): (u64, Duration)) -> Result<Took> {
    let began = Instant::now();
    let each = askers.into_iter().enumerate().map(|(place, mut asker)| async move {
        let mut random = StdRng::seed_from_u64(seed << 8 | place as u64);
        let (mut took, mut missed) = (Vec::new(), 0u64);
        while began.elapsed() < length && (took.len() as u64) < most {
            let row = rows.draw(&mut random);
            let asked = Instant::now();
            missed += u64::from(asker.get(row).await?);
            took.push(asked.elapsed());
        }
        Ok::<_, Error>((took, missed))
    });
    // One task, as redis-benchmark has one thread.
    let all = futures::future::try_join_all(each).await?;
    let seconds = began.elapsed().as_secs_f64();
    let missed = all.iter().map(|(_, missed)| missed).sum::<u64>() as f64;
    let mut took: Vec<Duration> = all.into_iter().flat_map(|(took, _)| took).collect();
    took.sort();
    let p99 = took.get(took.len() * 99 / 100).ok_or_else(|| Error::internal("nothing was asked"))?;
    Ok(Took { rate: took.len() as f64 / seconds, p99_ms: p99.as_secs_f64() * 1e3, missed: missed / took.len() as f64 })
}

/// What Redis takes for all of the records as they are.
async fn memory_of_all(data: &Data) -> Result<u64> {
    let redis = Redis::start(&[])?;
    redis.fill((0..data.records.len()).map(|row| data.value(row))).await?;
    redis.connect().await?.used_memory().await
}
