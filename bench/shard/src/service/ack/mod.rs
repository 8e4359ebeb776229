//! How long a put takes, and how many there are a second, where the store acknowledges changes and where two workers' disks do.

mod limit;

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, Rounds, Served};
use forebay_shard_store::{Acknowledged, ChangeIf};
use forebay_shards::Shards;
use forebay_types::{Error, Result};

use super::data::Data;
use super::rig::{Rig, Settings};
use super::wait::until_at_rest;

pub(super) use limit::serve;

/// What the store takes for each request.
const STORE: Duration = Duration::from_millis(10);
/// Between two puts that come now and then: the store keeps up with an object for each.
const NOW_AND_THEN: Duration = Duration::from_millis(30);
/// How long a round is at least: longer than the store may be behind two disks.
const ROUND_MIN: Duration = Duration::from_secs(8);
/// How long an order may take until a shard is changed as it says.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(30);

/// How puts come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// One, and the next a while after its answer.
    NowAndThen,
    /// So many at once, each followed by the next.
    InFlight(usize),
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NowAndThen => write!(f, "puts, {} ms after one another", NOW_AND_THEN.as_millis()),
            Self::InFlight(askers) => write!(f, "puts, {askers} in flight"),
        }
    }
}

impl Load {
    const ALL: [Self; 3] = [Self::NowAndThen, Self::InFlight(1), Self::InFlight(64)];

    fn askers(self) -> usize {
        match self {
            Self::NowAndThen => 1,
            Self::InFlight(askers) => askers,
        }
    }

    fn pause(self) -> Duration {
        if self == Self::NowAndThen { NOW_AND_THEN } else { Duration::ZERO }
    }
}

/// Puts that were acknowledged.
struct Puts {
    /// How long each took, the shortest first.
    took: Vec<Duration>,
    length: Duration,
}

impl Puts {
    fn new(mut took: Vec<Duration>, length: Duration) -> Self {
        took.sort();
        Self { took, length }
    }

    /// So many percent took no longer, in milliseconds.
    fn ms(&self, percent: usize) -> f64 {
        self.took.get(self.took.len() * percent / 100).map_or(0.0, Duration::as_secs_f64) * 1e3
    }

    fn rate(&self) -> f64 {
        self.took.len() as f64 / self.length.as_secs_f64()
    }
}

/// Two workers, and a store that takes as long as one in the cloud does at best.
pub(crate) async fn figures(data: &Data, rounds: usize, seconds: u64) -> Result<()> {
    let mut rig = Rig::start(Settings { workers: 2, ..Settings::default() }).await?;
    let shards = rig.create(data, "ack.shards", 1, vec![0.5, 0.5]).await?;
    until_at_rest(&shards, data).await?;
    rig.until_heard().await;
    rig.s3.set_link(0, STORE)?;
    let (folder, message) = (tempfile::tempdir()?, data.json(0).to_string());
    let arguments = ["serve-disk".to_string(), folder.path().display().to_string(), message.len().to_string()];
    let (_served, address) = Served::start(&arguments)?;
    let limit: SocketAddr = address.parse().map_err(|error| Error::internal(format!("{address}: {error}")))?;
    let length = Duration::from_secs(seconds).max(ROUND_MIN);
    for load in Load::ALL {
        let mut measured = Measured::default();
        for _ in 0..rounds {
            let store = puts(&ordered(&shards, data, Acknowledged::Storage).await?, data, load, length).await?;
            let two = puts(&ordered(&shards, data, Acknowledged::TwoWorkers).await?, data, load, length).await?;
            let message = message.clone().into_bytes();
            let best = tokio::task::spawn_blocking(move || limit::ask(limit, &message, load, length)).await;
            let best = best.map_err(|error| Error::internal(format!("the limit was not measured: {error}")))??;
            measured.push(&two, &store, &best);
        }
        measured.tell(load);
    }
    Ok(())
}

/// Of all rounds of a load: what two disks and the store took, and what two disks and the limit did.
#[derive(Default)]
struct Measured {
    p50: [Rounds; 2],
    p99: [Rounds; 2],
    rate: [Rounds; 2],
}

impl Measured {
    fn push(&mut self, two: &Puts, store: &Puts, limit: &Puts) {
        for (place, other) in [store, limit].into_iter().enumerate() {
            self.p50[place].push(two.ms(50), other.ms(50));
            self.p99[place].push(two.ms(99), other.ms(99));
            self.rate[place].push(two.rate(), other.rate());
        }
    }

    fn tell(&self, load: Load) {
        // Puts that come faster than the store takes objects wait for it in the end, however they are acknowledged.
        let bar = if load == Load::NowAndThen { Bar::RatioAtMost(0.5) } else { Bar::Nothing };
        for (what, unit, bar, of) in [
            ("p50", "ms", bar, &self.p50),
            ("p99", "ms", Bar::Nothing, &self.p99),
            ("a second", "puts/s", Bar::Nothing, &self.rate),
        ] {
            let what = format!("{load}, acknowledged by two workers' disks: {what}");
            let ((two, store), (_, limit)) = (of[0].medians(), of[1].medians());
            Figure::new(&what, two, unit, "acknowledged by the store", store, bar).print(true);
            Figure::new(format!("{what}, the limit"), two, unit, "a round trip and fdatasync", limit, Bar::Nothing).print(true);
        }
    }
}

/// The dataset with changes that are acknowledged so, once they are.
async fn ordered(shards: &Shards, data: &Data, ack: Acknowledged) -> Result<Shards> {
    let shards = shards.order(|orders| orders.ack = ack).await?;
    let began = Instant::now();
    loop {
        put(&shards, data, 0).await?;
        let is_claimed = shards.status().await?.iter().any(|shard| shard.claim.is_some());
        if is_claimed == (ack == Acknowledged::TwoWorkers) {
            return Ok(shards);
        }
        if began.elapsed() > FOLLOWED_WITHIN {
            return Err(Error::internal(format!("changes are not acknowledged by {ack}, though that is ordered")));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Puts records as they are; the same ones again when all were.
async fn puts(shards: &Shards, data: &Data, load: Load, length: Duration) -> Result<Puts> {
    let (began, askers, pause) = (Instant::now(), load.askers(), load.pause());
    let asker = |asker: usize| async move {
        let mut took = Vec::new();
        for row in (asker..).step_by(askers) {
            if began.elapsed() > length {
                break;
            }
            took.push(put(shards, data, row).await?);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        Ok::<_, Error>(took)
    };
    // One task, as those who ask beside it have one.
    let took = futures::future::try_join_all((0..askers).map(asker)).await?.concat();
    Ok(Puts::new(took, began.elapsed()))
}

/// How long a put took.
async fn put(shards: &Shards, data: &Data, row: usize) -> Result<Duration> {
    let record = data.json(row % data.records.len());
    let record = record.as_object().ok_or_else(|| Error::internal("a record is an object"))?;
    let asked = Instant::now();
    shards.put(record, ChangeIf::Always).await?;
    Ok(asked.elapsed())
}
