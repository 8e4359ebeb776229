//! Three times the load at once on one shard, and back (BlowFish, section 5.2, figure 9).

mod curve;
mod predicted;
pub(crate) mod replicas;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::Key;
use forebay_shards::Shards;
use forebay_types::{Error, Result, ResultExt};
use serde_json::{Value as Json, json};

use self::curve::{Curve, Moment};
use self::predicted::Before;
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
const ADAPT_PERIODS: u32 = 100;
const CALM_PERIODS: u32 = 160;
/// A spike that is over before a layer would be there triggers nothing (figure 5): 30 seconds of a cluster.
const SPIKE_PERIODS: u32 = 3;
/// Between two looks at what has to be asked by now.
const TICK: Duration = Duration::from_millis(5);
/// Searches are for so many digits of a date, those of a day, a month or a year: the most digits of which no more are sustained a
/// second than this. Of quicker ones a queue, as long as one may be, waits for no longer than navigation lets it.
const DIGITS: [usize; 3] = [10, 7, 4];
const QUICK: f64 = 1000.0;
/// Searches at once that keep one replica busy.
const BUSY: usize = 4;

/// What is asked for, and the seconds within which the shard is to adapt to it and to have drained its queue.
struct Asked {
    skew: Skew,
    /// Every other question is a get.
    is_half_gets: bool,
    adapted: f64,
    drained: f64,
}

/// Values of all records alike, those of few records most of the time, since what is skewed comes from caches and is sooner over, and as
/// many gets as searches. Of gets alone no queue that is as long as one may be waits for longer than navigation lets it.
const ASKED: [Asked; 3] = [
    Asked { skew: Skew::Uniform, is_half_gets: false, adapted: 300.0, drained: 900.0 },
    Asked { skew: Skew::Zipf, is_half_gets: false, adapted: 120.0, drained: 300.0 },
    Asked { skew: Skew::Uniform, is_half_gets: true, adapted: 300.0, drained: 900.0 },
];

/// A question.
enum Question {
    Search(Json),
    Get(Key),
}

impl Question {
    async fn ask(&self, shards: &Shards) -> Result<()> {
        match self {
            Self::Search(condition) => shards.search(condition, None, Some(10)).await.map(drop),
            Self::Get(key) => shards.record(key, None).await.map(drop),
        }
    }
}

impl Asked {
    /// Its name in figures.
    fn name(&self) -> &'static str {
        if self.is_half_gets { "load x3, half of it gets," } else { "load x3" }
    }

    /// Of the file that its curve is drawn to.
    fn file(&self) -> String {
        let mix = if self.is_half_gets { "-half-gets" } else { "" };
        format!("load-{}{mix}.svg", self.skew.name().replace(' ', "-"))
    }

    /// Searches that take long enough, and as many gets where there are some.
    async fn questions(&self, shards: &Shards, data: &Data) -> Result<Vec<Question>> {
        let searches = slow_enough(shards, data, self.skew, BUSY).await?;
        if !self.is_half_gets {
            return Ok(searches);
        }
        let gets = data.gets(self.skew, searches.len(), 31).into_iter().map(|key| Question::Get(Key::U64(key)));
        Ok(searches.into_iter().zip(gets).flat_map(|(search, get)| [search, get]).collect())
    }
}

/// Draws what came of it into a folder, where there is one.
pub(crate) async fn figures(data: &Data, period_ms: u64, out: Option<&Path>) -> Result<()> {
    if let Some(out) = out {
        std::fs::create_dir_all(out).context(|| out.display())?;
    }
    for asked in &ASKED {
        at(data, Duration::from_millis(period_ms), asked, out).await?;
    }
    Ok(())
}

async fn at(data: &Data, period: Duration, asked: &Asked, out: Option<&Path>) -> Result<()> {
    let rig = Rig::start(Settings { workers: 1, navigate_every: period, ..Settings::default() }).await?;
    let shards = rig.create(data, "load.shards", 1, vec![START]).await?;
    until_at_rest(&shards, data).await?;
    let questions = asked.questions(&shards, data).await?;
    // It may have layers for what it is asked by now, at the size that it had.
    until_at_rest(&shards, data).await?;
    let start = size(&shards).await?;
    let unit = sustained(&shards, &questions, BUSY, Duration::from_secs(5)).await? / UNITS;
    let what = format!(
        "{} on a shard of {} MB, {}, looked at each {} ms",
        asked.name(),
        shards.dataset().shards[0].input_bytes / 1_000_000,
        asked.skew.name(),
        period.as_millis()
    );
    line(format!("{what}: sustained at {START}x"), unit * UNITS, "questions/s", Bar::Nothing);
    let load = Load::new(&shards, &questions);
    let calm = load.run(LOW * unit, period * 20, |_, _| false).await?;
    line(format!("{what}: queue before"), calm.queue_mean, "questions", Bar::Nothing);
    let before = Before { size: start, per_sec: unit * UNITS, asked: [LOW * unit, HIGH * unit] };
    let (high, changes) = predicted::watched(&load, period, load.until_drained(HIGH * unit, period)).await?;
    tell_rise(&what, &high, period, asked);
    let after = sustained(&shards, &questions, BUSY, Duration::from_secs(2)).await?;
    before.tell(&what, &shards, (size(&shards).await?, after), changes, (&high, period))?;
    Figure::new(format!("{what}: size"), size(&shards).await?, "x", "at the start", start, Bar::Nothing).print(true);
    let began = Instant::now();
    let mut back = load.size().await?;
    while back > start && began.elapsed() < period * CALM_PERIODS {
        load.run(LOW * unit, period * 5, |_, _| false).await?;
        back = load.size().await?;
    }
    let after = of_cluster(began.elapsed(), period);
    let name = format!("{what}: size {after:.0} s (of a cluster) after the load has dropped");
    Figure::new(name, back, "x", "at the start", start, Bar::RatioAtMost(1.0)).print(true);
    load.run(HIGH * unit, period * SPIKE_PERIODS, |_, _| false).await?;
    load.run(LOW * unit, period * 20, |_, _| false).await?;
    let name = format!("{what}: size after a spike of {SPIKE_PERIODS} periods");
    Figure::new(name, load.size().await?, "x", "before", back, Bar::RatioAtMost(1.0)).print(true);
    match out {
        Some(out) => load.curve.draw(&what, period, &out.join(asked.file())),
        None => Ok(()),
    }
}

/// How the shard came along with the load once it had risen.
fn tell_rise(what: &str, high: &Ran, period: Duration, asked: &Asked) {
    // Adapted: as many are answered as come.
    let peak = of_cluster(high.peak_at, period);
    line(format!("{what}: adapted (the queue falls), in time of a cluster"), peak, "s", Bar::ValueAtMost(asked.adapted));
    // Past its bar where that did not come.
    let drained = of_cluster(high.ended.unwrap_or(period * ADAPT_PERIODS), period);
    line(format!("{what}: drained, in time of a cluster"), drained, "s", Bar::ValueAtMost(asked.drained));
    line(format!("{what}: refused for want of room in the queue"), high.over as f64, "questions", Bar::Nothing);
}

/// What is taken for an empty queue: the next ones come while it is looked at.
fn few(rate: f64) -> u64 {
    2 + (rate * TICK.as_secs_f64()) as u64
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

/// Searches for the values of all records alike, or of few most of the time, that take long enough.
async fn slow_enough(shards: &Shards, data: &Data, skew: Skew, askers: usize) -> Result<Vec<Question>> {
    let mut questions = Vec::new();
    for digits in DIGITS {
        questions = of_dates(data, skew, digits);
        if sustained(shards, &questions, askers, Duration::from_secs(2)).await? <= QUICK {
            break;
        }
    }
    Ok(questions)
}

fn of_dates(data: &Data, skew: Skew, digits: usize) -> Vec<Question> {
    let of_date = |search: Json| {
        let (attribute, value) = (search["attr"].as_str()?, search["eq"].as_str()?);
        attribute.ends_with("date").then(|| json!({"attr": attribute, "prefix": &value[..digits]}))
    };
    data.searches(skew, 40_000, 29).into_iter().filter_map(of_date).map(Question::Search).collect()
}

/// From one question of an asker to his next: an odd number, so that each has gets and searches where they come by turns.
fn stride(askers: usize) -> usize {
    askers | 1
}

/// Questions a second that are answered, with as many askers as keep all replicas busy.
async fn sustained(shards: &Shards, questions: &[Question], askers: usize, length: Duration) -> Result<f64> {
    let began = Instant::now();
    let asker = |asker: usize| async move {
        let mut count = 0u64;
        for question in questions.iter().skip(asker).step_by(stride(askers)).cycle() {
            if began.elapsed() > length {
                break;
            }
            question.ask(shards).await?;
            count += 1;
        }
        Ok::<_, Error>(count)
    };
    let counts = futures::future::try_join_all((0..askers).map(asker)).await?;
    Ok(counts.into_iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}

/// Questions that come whether those before are answered or not.
struct Load<'a> {
    shards: &'a Shards,
    questions: &'a [Question],
    began: Instant,
    /// Those under way.
    queue: AtomicU64,
    /// Those that found too many before them.
    over: AtomicU64,
    /// All that came.
    came: AtomicU64,
    curve: Curve,
}

/// How a load went.
struct Ran {
    queue_mean: f64,
    /// When the queue was longest, from the beginning on: the last time.
    peak_at: Duration,
    /// When it was at its end; none where that did not come.
    ended: Option<Duration>,
    over: u64,
}

impl<'a> Load<'a> {
    fn new(shards: &'a Shards, questions: &'a [Question]) -> Self {
        let [queue, over, came] = std::array::from_fn(|_| AtomicU64::new(0));
        Self { shards, questions, began: Instant::now(), queue, over, came, curve: Curve::default() }
    }

    /// The size of the shard now, which its curve has from then on.
    async fn size(&self) -> Result<f64> {
        let size = size(self.shards).await?;
        self.curve.is_at(self.began.elapsed(), size);
        Ok(size)
    }

    fn moment(&self) -> Moment {
        let [came, refused, waits] = [&self.came, &self.over, &self.queue].map(|count| count.load(Relaxed));
        Moment { at: self.began.elapsed(), came, refused, waits }
    }

    /// So many a second until hardly any are left when the next ones come.
    async fn until_drained(&self, rate: f64, period: Duration) -> Result<Ran> {
        let few = few(rate);
        self.run(rate, period * ADAPT_PERIODS, |queue, waited| waited > period * 10 && queue <= few).await
    }

    /// So many a second, for so long or until `is_over` says so of those left and the time.
    async fn run(&self, rate: f64, length: Duration, is_over: impl Fn(u64, Duration) -> bool) -> Result<Ran> {
        let (began, over) = (Instant::now(), self.over.load(Relaxed));
        let mut asked = futures::stream::FuturesUnordered::new();
        let (mut sent, mut sum, mut ticks) = (0u64, 0u64, 0u64);
        let (mut peak, mut peak_at, mut ended) = (0, Duration::ZERO, None);
        let mut tick = tokio::time::interval(TICK);
        while began.elapsed() < length {
            tokio::select! {
                _ = tick.tick() => {
                    let (waited, left) = (began.elapsed(), self.queue.load(Relaxed));
                    while (sent as f64) < waited.as_secs_f64() * rate {
                        let at = (self.began.elapsed().as_micros() as usize + sent as usize * 7919) % self.questions.len();
                        sent += 1;
                        self.came.fetch_add(1, Relaxed);
                        if self.queue.load(Relaxed) >= WAITING_MAX {
                            self.over.fetch_add(1, Relaxed);
                            continue;
                        }
                        self.queue.fetch_add(1, Relaxed);
                        asked.push(self.ask(&self.questions[at]));
                    }
                    let queue = self.queue.load(Relaxed);
                    (sum, ticks) = (sum + left, ticks + 1);
                    self.curve.saw(self.moment());
                    if queue >= peak {
                        (peak, peak_at) = (queue, waited);
                    }
                    if is_over(left, waited) {
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

    async fn ask(&self, question: &Question) -> Result<()> {
        let answer = question.ask(self.shards).await;
        self.queue.fetch_sub(1, Relaxed);
        answer
    }
}

const _: () = assert!(WAITING_MAX > IN_FLIGHT as u64, "a queue that can grow");
