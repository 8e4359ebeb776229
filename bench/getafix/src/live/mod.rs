//! The live bars: four workers, each held to a number of bytes a second that it sends, and skewed reads over TCP whose
//! popularity shifts half way. The peer, in the same run, is rendezvous hashing with one replica.

mod arrivals;
mod compared;
mod predicted;
mod readers;
mod rig;

use std::time::{Duration, Instant};

use forebay_coordinator::PlacementSettings;
use forebay_types::{Error, Result};
use serde::Serialize;

pub use compared::policies;
use readers::{Readers, Tally};
use rig::Rig;

/// What is read, and how fast it may be sent.
#[derive(Clone, Copy, Debug)]
pub struct LiveSettings {
    /// Bytes a second that each worker sends at most.
    pub serve_bytes_per_sec: u64,
    /// Objects.
    pub objects: usize,
    /// Bytes of each.
    pub object_bytes: usize,
    /// What a request to the store takes at least.
    pub latency: Duration,
    /// Exponent of the Zipf distribution of reads over objects.
    pub theta: f64,
    /// Reads under way at a time.
    pub readers: usize,
    /// A counting window: as long as users have it, unless said otherwise. Heartbeats and polls are then theirs too.
    pub window: Duration,
    /// Windows before the shift, and after it.
    pub windows: u32,
    /// Which objects are popular, and what is read of them.
    pub seed: u64,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self {
            serve_bytes_per_sec: 100_000_000,
            objects: 60,
            object_bytes: 4 << 20,
            latency: Duration::from_millis(10),
            theta: 1.4,
            readers: 32,
            window: PlacementSettings::default().window,
            windows: 4,
            seed: 1,
        }
    }
}

/// One figure with its bar.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveFigure {
    /// What it is.
    pub figure: &'static str,
    /// Ours.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The peer's, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<f64>,
    /// Ours divided by the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What it must be.
    pub bar: String,
    /// Whether it is.
    pub met: bool,
    /// Megabytes a second, window by window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<u64>,
}

const WORKERS: usize = 4;
/// Share of the throughput before the shift that counts as having followed it.
const FOLLOWED: f64 = 0.9;
const RATIO_BAR: f64 = 1.3;
const WINDOWS_BAR: f64 = 3.0;

/// One cluster's run.
struct Run {
    /// Bytes by half window, from the start on.
    halves: Vec<u64>,
    /// Windows from the shift until the new hottest object was read from more than one worker.
    routed_after: Option<f64>,
    replicas_before: usize,
    tally: Tally,
}

/// Measures hashing, then Getafix, and gives the figures.
pub async fn live(settings: LiveSettings) -> Result<Vec<LiveFigure>> {
    let hashing = run(settings, PlacementSettings { policy: None, ..placement(settings) }).await?;
    let getafix = run(settings, placement(settings)).await?;
    let secs = settings.window.as_secs_f64() / 2.0;
    let rate = |halves: &[u64]| halves.iter().sum::<u64>() as f64 / halves.len().max(1) as f64 / secs / 1e6;
    let shift = settings.windows as usize * 2;
    // The last two windows before the shift, and of the run: what has settled, under the skew that is hottest.
    let settled =
        |run: &Run, end: usize| rate(&run.halves[end.saturating_sub(4).min(run.halves.len())..end.min(run.halves.len())]);
    let (ours, peer) = (settled(&getafix, shift), settled(&hashing, shift));
    let (ours_after, peer_after) = (settled(&getafix, 2 * shift), settled(&hashing, 2 * shift));
    // The first window from which on the rest of the run is as fast as before, on average.
    let after = &getafix.halves[shift.min(getafix.halves.len())..];
    let followed = (0..after.len()).step_by(2).find(|half| rate(&after[*half..]) >= FOLLOWED * ours);
    let followed = followed.map_or(f64::INFINITY, |half| half as f64 / 2.0);
    let routed = getafix.routed_after.unwrap_or(f64::INFINITY);
    let timeline = |run: &Run| run.halves.chunks(2).map(|window| rate(window) as u64).collect();
    let ratio = |figure, ours: f64, peer: f64, timeline| LiveFigure {
        figure,
        value: ours,
        unit: "MB/s",
        peer: Some(peer),
        ratio: Some(ours / peer),
        bar: format!("ratio >= {RATIO_BAR}"),
        met: ours / peer >= RATIO_BAR,
        timeline,
    };
    let windows = |figure, value: f64| LiveFigure {
        figure,
        value: if value.is_finite() { value } else { -1.0 },
        unit: "windows",
        bar: format!("<= {WINDOWS_BAR}"),
        met: value <= WINDOWS_BAR,
        ..LiveFigure::default()
    };
    let bad = getafix.tally.failed + getafix.tally.wrong + hashing.tally.failed + hashing.tally.wrong;
    Ok(vec![
        ratio("throughput at the hottest point, against one replica by hashing", ours, peer, timeline(&getafix)),
        ratio("the same after popularity has shifted", ours_after, peer_after, timeline(&hashing)),
        LiveFigure {
            figure: "workers that the hottest object is read from before the shift",
            value: getafix.replicas_before as f64,
            unit: "replicas",
            peer: Some(1.0),
            bar: ">= 2".to_string(),
            met: getafix.replicas_before >= 2,
            ..LiveFigure::default()
        },
        windows("replicas of the new hottest object follow the shift within", routed),
        windows("throughput is back at 90 % within", followed),
        LiveFigure {
            figure: "failed or wrong reads",
            value: bad as f64,
            unit: "reads",
            peer: Some((getafix.tally.reads + hashing.tally.reads) as f64),
            bar: "0, of the peer's number of reads".to_string(),
            met: bad == 0,
            ..LiveFigure::default()
        },
    ])
}

fn placement(settings: LiveSettings) -> PlacementSettings {
    let users = PlacementSettings::default();
    PlacementSettings { window: settings.window, poll: users.poll.min(settings.window / 3), ..users }
}

async fn run(settings: LiveSettings, placement: PlacementSettings) -> Result<Run> {
    let rig = Rig::start(WORKERS, settings, placement).await?;
    let readers = Readers::start(&rig, settings);
    let half = settings.window / 2;
    let began = Instant::now();
    let mut halves = Vec::new();
    let (mut before, mut replicas_before, mut routed_after) = (0, 0, None);
    let halves_each = settings.windows as usize * 2;
    while halves.len() < 2 * halves_each {
        // In small steps, so that it is seen when routes change.
        let end = began + half * (halves.len() as u32 + 1);
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50).min(end.saturating_duration_since(Instant::now()))).await;
            if halves.len() >= halves_each && routed_after.is_none() {
                let shifted = began + settings.window * settings.windows;
                if rig.workers_of(&rig.key(rig.hottest(true))) >= 2 {
                    routed_after = Some(shifted.elapsed().as_secs_f64() / settings.window.as_secs_f64());
                }
            }
        }
        let bytes = readers.bytes();
        halves.push(bytes - before);
        before = bytes;
        if halves.len() == halves_each {
            replicas_before = rig.workers_of(&rig.key(rig.hottest(false)));
            readers.shift();
        }
    }
    let tally = readers.stop().await;
    if let Some(error) = &tally.first_error {
        eprintln!("first failed read: {error}");
    }
    if tally.reads == 0 {
        return Err(Error::internal("nothing was read"));
    }
    Ok(Run { halves, routed_after, replicas_before, tally })
}
