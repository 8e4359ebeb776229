//! More load than three replicas of a shard sustain, one of which can't grow (BlowFish, section 5.2, figure 10).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shards::{ReplicaStatus, Shards};
use forebay_types::{Error, Result};

use super::{ADAPT_PERIODS, BUSY, Load, START, of_cluster, slow_enough, sustained};
use crate::service::data::Data;
use crate::service::rig::{Rig, Settings};
use crate::service::wait::until_at_rest;
use crate::workload::Skew;

const REPLICAS: usize = 3;
/// What the worker has room for that can't grow, as a part of the input: a layer takes more than is left above the start.
const ROOM: f64 = START + 0.02;
/// What they sustain at their starting dials is so many units: they are half busy by three, and by eight they would have to be a
/// third more than they are.
const UNITS: f64 = 6.0;
const LOW: f64 = 3.0;
const HIGH: f64 = 8.0;
/// How long is looked at them once they have come to rest, in periods.
const REST_PERIODS: u32 = 60;
/// The wait that navigation aims at, in seconds: its settings say it.
const TARGET_SECS: f64 = 0.05;

pub(crate) async fn figures(data: &Data, period: Duration) -> Result<()> {
    let tight_bytes = Some((data.input_bytes() as f64 * ROOM) as u64);
    let settings = Settings { workers: REPLICAS, tight_bytes, navigate_every: period, ..Settings::default() };
    let rig = Rig::start(settings).await?;
    let shards = rig.create(data, "replicas.shards", 1, vec![START; REPLICAS]).await?;
    until_at_rest(&shards, data).await?;
    let askers = BUSY * REPLICAS;
    let questions = slow_enough(&shards, data, Skew::Uniform, askers).await?;
    until_at_rest(&shards, data).await?;
    let unit = sustained(&shards, &questions, askers, Duration::from_secs(5)).await? / UNITS;
    let load = Load::new(&shards, &questions);
    load.run(LOW * unit, period * 20, |_, _| false).await?;
    let high = load.until_drained(HIGH * unit, period).await?;
    // Layers that are on their way come.
    load.run(HIGH * unit, period * 10, |_, _| false).await?;
    let over = AtomicBool::new(false);
    let loading = async {
        let ran = load.run(HIGH * unit, period * REST_PERIODS, |_, _| false).await;
        over.store(true, Relaxed);
        ran
    };
    let watching = async {
        let mut moments = Vec::new();
        while !over.load(Relaxed) {
            moments.push(replicas(&shards).await?);
            tokio::time::sleep(period / 5).await;
        }
        Ok::<_, Error>(moments)
    };
    let (ran, moments) = futures::join!(loading, watching);
    ran?;
    let seen = Seen::of(&moments?, (period * REST_PERIODS).as_secs_f64())?;
    let input = shards.dataset().shards[0].input_bytes / 1_000_000;
    let what =
        format!("load from 3 to 8 on three replicas of {input} MB, one can't grow, looked at each {} ms", period.as_millis());
    let drained = of_cluster(high.ended.unwrap_or(period * ADAPT_PERIODS), period);
    line(format!("{what}: drained, in time of a cluster"), drained, "s", Bar::Nothing);
    seen.tell(&what, &rig.workers[0].name)
}

/// How all replicas of the shard stand, by their workers.
async fn replicas(shards: &Shards) -> Result<Vec<ReplicaStatus>> {
    let mut replicas: Vec<ReplicaStatus> = shards.status().await?.into_iter().flat_map(|shard| shard.replicas).collect();
    replicas.sort_by(|one, other| one.worker.cmp(&other.worker));
    match replicas.len() {
        REPLICAS => Ok(replicas),
        _ => Err(Error::internal(format!("there are other replicas than {REPLICAS}: {replicas:?}"))),
    }
}

/// A replica while it was looked at.
struct Rest {
    worker: String,
    size: f64,
    answered: f64,
    /// Seconds that a search would have waited, at each moment.
    waits: Vec<f64>,
}

struct Seen(Vec<Rest>);

impl Seen {
    fn of(moments: &[Vec<ReplicaStatus>], secs: f64) -> Result<Self> {
        let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
            return Err(Error::internal("nothing was seen of the replicas"));
        };
        let rest = |place: usize| {
            let replica: &ReplicaStatus = &last[place];
            let answered = replica.answered.saturating_sub(first[place].answered) as f64;
            let waits = moments.iter().map(|moment| f64::from(moment[place].queue) / answered.max(1.0) * secs);
            Rest { worker: replica.worker.clone(), size: replica.now.unwrap_or_default(), answered, waits: waits.collect() }
        };
        Ok(Self((0..REPLICAS).map(rest).collect()))
    }

    fn tell(&self, what: &str, tight: &str) -> Result<()> {
        let (tight, others): (Vec<&Rest>, Vec<&Rest>) = self.0.iter().partition(|rest| rest.worker == tight);
        let tight = tight.first().ok_or_else(|| Error::internal("the worker without room has no replica"))?;
        let least = |of: fn(&Rest) -> f64| others.iter().map(|rest| of(rest)).fold(f64::INFINITY, f64::min);
        let peer = "the one that can't grow";
        let size = least(|rest| rest.size);
        Figure::new(format!("{what}: size of the lesser of the others"), size, "x", peer, tight.size, Bar::Nothing).print(true);
        let (answered, moves) = (least(|rest| rest.answered), Bar::RatioAtLeast(1.4));
        let name = format!("{what}: answered by the lesser of the others");
        Figure::new(name, answered, "searches", peer, tight.answered, moves).print(true);
        let swing = swing(&self.0) / TARGET_SECS * 100.0;
        line(format!("{what}: swing of queues, of the wait that is aimed at"), swing, "%", Bar::ValueAtMost(10.0));
        Ok(())
    }
}

/// The standard deviation of each replica's wait from its own mean, taken together, as the simulator takes it.
fn swing(all: &[Rest]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squares = all.iter().flat_map(|rest| {
        let middle = mean(&rest.waits);
        rest.waits.iter().map(move |wait| (wait - middle).powi(2))
    });
    mean(&squares.collect::<Vec<f64>>()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_stand_do_not_swing_however_long_they_are() {
        let rest = |waits: &[f64]| Rest { worker: String::new(), size: 0.4, answered: 1.0, waits: waits.to_vec() };
        assert_eq!(swing(&[rest(&[0.01, 0.01]), rest(&[0.09, 0.09])]), 0.0);
        assert!((swing(&[rest(&[0.01, 0.03]), rest(&[0.05, 0.07])]) - 0.01).abs() < 1e-9);
    }
}
