//! Three times the load at once on one shard, and back (BlowFish, section 5.2, figure 9).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shards::Shards;
use forebay_types::{Error, Result};
use serde_json::Value as Json;

use super::data::Data;
use super::gets::IN_FLIGHT;
use super::rig::{PERIOD, Rig, Settings};
use super::wait::until_at_rest;
use crate::workload::Skew;

/// The size that the shard begins at, as a part of its input.
const START: f64 = 0.4;
/// What it sustains at its starting dial is so many units.
const UNITS: f64 = 800.0;
/// Load before and after, and in between.
const LOW: f64 = 600.0;
const HIGH: f64 = 1800.0;
/// Searches that wait at the asker at most: what the shard's own queue has no room for.
const WAITING_MAX: u64 = 200;
/// How long the shard may take to adapt, in periods, and to be where it was, before this gives up.
const ADAPT_PERIODS: u32 = 90;
const CALM_PERIODS: u32 = 240;

/// What is asked for, and the seconds within which the shard is to adapt to it and to have drained its queue.
struct Asked {
    skew: Skew,
    adapted: f64,
    drained: f64,
}

/// Values of all records alike, and those of few records most of the time: what is skewed comes from caches, and is sooner over.
const ASKED: [Asked; 2] =
    [Asked { skew: Skew::Uniform, adapted: 300.0, drained: 900.0 }, Asked { skew: Skew::Zipf, adapted: 120.0, drained: 300.0 }];

pub(crate) async fn figures(data: &Data, period_ms: u64) -> Result<()> {
    for asked in &ASKED {
        at(data, Duration::from_millis(period_ms), asked).await?;
    }
    Ok(())
}

async fn at(data: &Data, period: Duration, asked: &Asked) -> Result<()> {
    let rig = Rig::start(Settings { workers: 1, navigate_every: period, ..Settings::default() }).await?;
    let shards = rig.create(data, "load.shards", 1, vec![START]).await?;
    until_at_rest(&shards, data).await?;
    let conditions = data.searches(asked.skew, 20_000, 29);
    let start = size(&shards).await?;
    let unit = sustained(&shards, &conditions, Duration::from_secs(5)).await? / UNITS;
    let what = format!(
        "load x3 on a shard of {} MB, {}, looked at each {} ms",
        shards.dataset().shards[0].input_bytes / 1_000_000,
        asked.skew.name(),
        period.as_millis()
    );
    line(format!("{what}: sustained at {START}x"), unit * UNITS, "searches/s", Bar::Nothing);
    let load = Load {
        shards: &shards,
        conditions: &conditions,
        began: Instant::now(),
        queue: AtomicU64::new(0),
        over: AtomicU64::new(0),
    };
    let calm = load.run(LOW * unit, period * 20, |_, _| false).await?;
    line(format!("{what}: queue before"), calm.queue_mean, "searches", Bar::Nothing);
    // Drained: none waits longer than one that is alone.
    let high = load.run(HIGH * unit, period * ADAPT_PERIODS, |queue, waited| waited > period * 10 && queue <= 2).await?;
    tell_rise(&what, &high, period, asked);
    Figure::new(format!("{what}: size"), size(&shards).await?, "x", "at the start", start, Bar::Nothing).print(true);
    let began = Instant::now();
    let mut back = size(&shards).await?;
    while back > start && began.elapsed() < period * CALM_PERIODS {
        load.run(LOW * unit, period * 5, |_, _| false).await?;
        back = size(&shards).await?;
    }
    let after = of_cluster(began.elapsed(), period);
    let name = format!("{what}: size {after:.0} s (of a cluster) after the load has dropped");
    Figure::new(name, back, "x", "at the start", start, Bar::RatioAtMost(1.0)).print(true);
    Ok(())
}

/// How the shard came along with the load once it had risen.
fn tell_rise(what: &str, high: &Ran, period: Duration, asked: &Asked) {
    // Adapted: as many are answered as come.
    let peak = of_cluster(high.peak_at, period);
    line(format!("{what}: adapted (the queue falls), in time of a cluster"), peak, "s", Bar::ValueAtMost(asked.adapted));
    let drained = high.ended.map_or(f64::INFINITY, |after| of_cluster(after, period));
    line(format!("{what}: drained, in time of a cluster"), drained, "s", Bar::ValueAtMost(asked.drained));
    line(format!("{what}: refused for want of room in the queue"), high.over as f64, "searches", Bar::Nothing);
}

/// Seconds of a cluster, which looks at its queues every [`PERIOD`].
fn of_cluster(time: Duration, period: Duration) -> f64 {
    time.as_secs_f64() * PERIOD.as_secs_f64() / period.as_secs_f64()
}

/// The size of the one replica, as a part of the input.
async fn size(shards: &Shards) -> Result<f64> {
    let status = shards.status().await?;
    let replica = status.into_iter().flat_map(|shard| shard.replicas).next();
    let replica = replica.ok_or_else(|| Error::internal("the shard is nowhere"))?;
    Ok(replica.now.unwrap_or_default())
}

/// Searches a second, with as many askers as keep it busy.
async fn sustained(shards: &Shards, conditions: &[Json], length: Duration) -> Result<f64> {
    let began = Instant::now();
    let asker = |asker: usize| async move {
        let mut count = 0u64;
        for condition in conditions.iter().skip(asker).step_by(4).cycle() {
            if began.elapsed() > length {
                break;
            }
            shards.search(condition, None, Some(10)).await?;
            count += 1;
        }
        Ok::<_, Error>(count)
    };
    let counts = futures::future::try_join_all((0..4).map(asker)).await?;
    Ok(counts.into_iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}

/// Searches that come whether those before are answered or not.
struct Load<'a> {
    shards: &'a Shards,
    conditions: &'a [Json],
    began: Instant,
    /// Those under way.
    queue: AtomicU64,
    /// Those that found too many before them.
    over: AtomicU64,
}

/// How a load went.
struct Ran {
    queue_mean: f64,
    /// When the queue was longest, from the beginning on.
    peak_at: Duration,
    /// When it was at its end; none where that did not come.
    ended: Option<Duration>,
    over: u64,
}

impl Load<'_> {
    /// So many a second, for so long or until `is_over` says so of the queue and the time.
    async fn run(&self, rate: f64, length: Duration, is_over: impl Fn(u64, Duration) -> bool) -> Result<Ran> {
        let (began, over) = (Instant::now(), self.over.load(Relaxed));
        let mut asked = futures::stream::FuturesUnordered::new();
        let (mut sent, mut sum, mut ticks) = (0u64, 0u64, 0u64);
        let (mut peak, mut peak_at, mut ended) = (0, Duration::ZERO, None);
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while began.elapsed() < length {
            tokio::select! {
                _ = tick.tick() => {
                    let waited = began.elapsed();
                    while (sent as f64) < waited.as_secs_f64() * rate {
                        let at = (self.began.elapsed().as_micros() as usize + sent as usize * 7919) % self.conditions.len();
                        sent += 1;
                        if self.queue.load(Relaxed) >= WAITING_MAX {
                            self.over.fetch_add(1, Relaxed);
                            continue;
                        }
                        self.queue.fetch_add(1, Relaxed);
                        asked.push(self.ask(&self.conditions[at]));
                    }
                    let queue = self.queue.load(Relaxed);
                    (sum, ticks) = (sum + queue, ticks + 1);
                    if queue > peak {
                        (peak, peak_at) = (queue, waited);
                    }
                    if is_over(queue, waited) {
                        ended = Some(waited);
                        break;
                    }
                }
                Some(answer) = futures::StreamExt::next(&mut asked) => answer?,
            }
        }
        while let Some(answer) = futures::StreamExt::next(&mut asked).await {
            answer?;
        }
        Ok(Ran { queue_mean: sum as f64 / ticks.max(1) as f64, peak_at, ended, over: self.over.load(Relaxed) - over })
    }

    async fn ask(&self, condition: &Json) -> Result<()> {
        let answer = self.shards.search(condition, None, Some(10)).await;
        self.queue.fetch_sub(1, Relaxed);
        answer.map(drop)
    }
}

const _: () = assert!(WAITING_MAX > IN_FLIGHT as u64, "a queue that can grow");
