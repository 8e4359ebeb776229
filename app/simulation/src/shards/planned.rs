//! What one worker would decide of its replicas, period by period, by queues that are given: the plans alone, without a model of load.

use std::collections::HashSet;
use std::fmt::Write;

use forebay_navigation::{
    Curve, Decision, Lending, Level, Plan, Reason, Replica, Settings, ShardId, Snapshot, layers, lend, plan,
};
use forebay_types::{ByteSize, Error, Result, format_bytes};
use serde::{Deserialize, Serialize};

/// Periods at most, and decisions of all of them.
const PERIODS_MAX: usize = 100_000;
const DECISIONS_MAX: usize = 10_000_000;

/// A worker as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Worker {
    /// What its replicas may take together.
    room: ByteSize,
    replicas: Vec<Described>,
    /// A cache that lends them room beside that.
    cache: Option<Cache>,
}

/// A cache beside the replicas.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    /// What it may lend at most.
    most: ByteSize,
    /// Microseconds that each MiB of it saves in a second, at its margin: a number a period.
    saves_us: Vec<f64>,
}

/// A replica on it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    shard: String,
    /// The base first.
    levels: Vec<DescribedLevel>,
    /// The level to which it returns; the base without it.
    #[serde(default)]
    start: u32,
    /// The level that it has; its start without it.
    level: Option<u32>,
    /// The level that it is pinned at; the base without it.
    #[serde(default)]
    pin: u32,
    /// Its layers stay as they are.
    #[serde(default)]
    frozen: bool,
    /// Requests that wait, a number a period.
    queue: Vec<u32>,
    /// Requests that came, a number a period; none without it.
    #[serde(default)]
    arrived: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedLevel {
    bytes: ByteSize,
    /// Microseconds that a request takes.
    us: f64,
}

/// What was decided of a replica in a period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardPlanned {
    /// When, in seconds since the first plan.
    pub secs: f64,
    /// The shard's name.
    pub shard: String,
    /// The level before.
    pub from: u32,
    /// The level from then on.
    pub to: u32,
    /// Bytes that it takes then.
    pub bytes: u64,
    /// Requests in its queue on average: the paper's Q_avg.
    pub queue: f64,
    /// Microseconds that a request waits on average.
    pub wait_us: f64,
    /// Bytes that the cache lends to all replicas then; none where there is no cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lent: Option<u64>,
    /// Why it moved, or didn't.
    pub why: String,
}

impl ShardPlanned {
    /// Whether layers come or go.
    pub fn moves(&self) -> bool {
        self.from != self.to
    }
}

/// The plans for a worker that a JSON text describes, of all periods for which it tells the queues: `{"room": "8GiB", "replicas":
/// [{"shard": "orders/0", "levels": [{"bytes": "300MiB", "us": 2000}, ..], "start": 0, "level": 0, "queue": [0, 40, ..],
/// "arrived": [100, 300, ..]}, ..]}`, a replica with `"pin": 3` or `"frozen": true` where it is, and perhaps `"cache": {"most":
/// "4GiB", "saves_us": [0.5, ..]}` beside them. What is ordered in a period is there in the next one.
/// `Invalid`: a text of another form, a worker that can't be, or settings that make no sense.
pub fn shards_planned(text: &str, settings: &Settings) -> Result<Vec<ShardPlanned>> {
    let form = |error: serde_json::Error| {
        Error::invalid(format!(
            r#"it isn't of the form {{"room": "8GiB", "replicas": [{{"shard": "orders/0", "levels": [{{"bytes": "300MiB", "us": 2000}}, ..], "queue": [0, 40, ..]}}, ..]}}: {error}"#
        ))
    };
    let worker: Worker = serde_json::from_str(text).map_err(form)?;
    let periods = periods(&worker.replicas)?;
    if let Some(Cache { saves_us, .. }) = worker.cache.as_ref().filter(|cache| cache.saves_us.len() != periods) {
        let count = saves_us.len();
        return Err(Error::invalid(format!(
            "the cache saves {count} numbers where there are {periods} periods: give a number a period"
        )));
    }
    let curves = worker.replicas.iter().map(curve).collect::<Result<Vec<_>>>()?;
    let mut levels: Vec<u32> = worker.replicas.iter().map(|replica| replica.level.unwrap_or(replica.start)).collect();
    let (mut before, mut planned, mut lent_bytes) = (Plan::default(), Vec::new(), 0);
    for period in 0..periods {
        let replica = |((number, described), (curve, level)): ((u64, &Described), (_, &u32))| Replica {
            shard: ShardId(number),
            curve,
            lowest: described.pin,
            start: described.start.max(described.pin),
            highest: Curve::highest(curve),
            level: *level,
            ordered: *level,
            queue: described.queue[period],
            arrived: described.arrived.get(period).copied().unwrap_or(0),
            frozen: described.frozen,
        };
        let replicas: Vec<Replica<'_>> = (0..).zip(&worker.replicas).zip(curves.iter().zip(&levels)).map(replica).collect();
        let offered = offered(&worker, period, settings, &replicas, &before, lent_bytes)?;
        let room_bytes = worker.room.0.saturating_add(offered);
        let plan = plan(settings, &Snapshot { replicas: &replicas, room_bytes }, &before)?;
        lent_bytes = plan.bytes.saturating_sub(worker.room.0);
        for (at, decision) in plan.decisions.iter().enumerate() {
            let (secs, bytes) = (period as f64 * settings.period_secs, curves[at].bytes(decision.to));
            let lent = worker.cache.is_some().then_some(lent_bytes);
            planned.push(ShardPlanned { lent, ..told(decision, secs, bytes, &worker.replicas) });
            levels[at] = decision.to;
        }
        before = plan;
    }
    Ok(planned)
}

/// What the cache would lend in a period, by the function that workers call.
fn offered(
    worker: &Worker,
    period: usize,
    settings: &Settings,
    replicas: &[Replica<'_>],
    before: &Plan,
    lent_bytes: u64,
) -> Result<u64> {
    let Some(cache) = &worker.cache else { return Ok(0) };
    let least: u64 = replicas.iter().map(|replica| replica.curve.bytes(replica.least())).sum();
    let lending = Lending {
        own_bytes: worker.room.0.saturating_sub(least),
        most_bytes: cache.most.0,
        lent_bytes,
        cache_saves: cache.saves_us[period] / 1e6 / f64::from(1 << 20),
    };
    lend(&lending, replicas.iter().map(|replica| layers(replica, before, settings.period_secs)).collect())
}

/// How many periods there are: as many for each replica.
fn periods(replicas: &[Described]) -> Result<usize> {
    let Some(first) = replicas.first() else { return Err(Error::invalid("there is no replica to plan for")) };
    let (periods, mut names) = (first.queue.len(), HashSet::new());
    if periods == 0 || periods > PERIODS_MAX || periods.saturating_mul(replicas.len()) > DECISIONS_MAX {
        let count = replicas.len();
        return Err(Error::invalid(format!(
            "{periods} periods of {count} replicas can't be planned: give 1 to {PERIODS_MAX}, and {DECISIONS_MAX} numbers at most"
        )));
    }
    for Described { shard, queue, arrived, .. } in replicas {
        if !names.insert(shard) {
            return Err(Error::invalid(format!("{shard:?} is there twice: a worker has one replica of a shard")));
        }
        if queue.len() != periods || !(arrived.is_empty() || arrived.len() == periods) {
            let (queues, arrivals) = (queue.len(), arrived.len());
            return Err(Error::invalid(format!(
                "{shard:?} has {queues} queues and {arrivals} arrivals where the first one has {periods} queues: give a number a period"
            )));
        }
    }
    Ok(periods)
}

fn curve(replica: &Described) -> Result<Curve> {
    let level = |level: &DescribedLevel| Level { bytes: level.bytes.0, service_us: level.us };
    Curve::new(replica.levels.iter().map(level).collect()).map_err(|error| error.context(&replica.shard))
}

fn told(decision: &Decision, secs: f64, bytes: u64, replicas: &[Described]) -> ShardPlanned {
    let name = |shard: &ShardId| replicas[shard.0 as usize].shard.clone();
    let why = match &decision.reason {
        Reason::Gave(to) => format!("a layer went to {}, whose requests wait too long", name(to)),
        Reason::Yielded(to) => format!("a layer went to {}, which is pinned at more than it had", name(to)),
        Reason::Took(from) => {
            let from: Vec<String> = from.iter().map(name).collect();
            format!("requests wait too long, and {} gave room for a layer", from.join(", "))
        }
        other => other.to_string(),
    };
    ShardPlanned {
        secs,
        shard: name(&decision.shard),
        from: decision.from,
        to: decision.to,
        bytes,
        queue: decision.memory.queue,
        wait_us: decision.wait_us,
        lent: None,
        why,
    }
}

/// What a person reads: every move, and how all stand after the last period.
pub fn shards_planned_table(planned: &[ShardPlanned]) -> String {
    let last = planned.last().map_or(0.0, |planned| planned.secs);
    let width = planned.iter().map(|planned| planned.shard.chars().count()).max().unwrap_or(0).max("SHARD".len());
    let mut text = format!("{:>8}  {:width$}  {:8}  {:>9}  {:>9}  WHY\n", "SECOND", "SHARD", "LEVEL", "SIZE", "WAIT");
    for planned in planned.iter().filter(|planned| planned.moves() || planned.secs == last) {
        let level = if planned.moves() { format!("{} to {}", planned.from, planned.to) } else { planned.to.to_string() };
        let (size, wait) = (format_bytes(planned.bytes), format!("{:.1} ms", planned.wait_us / 1e3));
        let (secs, shard, why) = (planned.secs, &planned.shard, &planned.why);
        let _ = writeln!(text, "{secs:8.0}  {shard:width$}  {level:8}  {size:>9}  {wait:>9}  {why}");
    }
    text
}
