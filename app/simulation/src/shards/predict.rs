//! What a rise of the load does to one shard whose service times were measured elsewhere: what a measured run is held beside.

use forebay_navigation::{Curve, Level, Settings};
use forebay_types::{Error, Result};

use super::arrivals::Load;
use super::curves::INPUT_BYTES;
use super::engine::Engine;
use super::outcome::ShardSample;
use super::setup::Setup;

/// Periods of the lower load: averages have settled by then.
const CALM_PERIODS: f64 = 100.0;
/// A queue is not looked at for its end before so many periods.
const RISING_PERIODS: f64 = 10.0;

/// A shard of one replica as it was measured, and the load that rises.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardRise {
    /// The sizes that it may be kept at, over the input, the base alone first, and the microseconds that a request takes there.
    pub levels: Vec<(f64, f64)>,
    /// The level that it starts at.
    pub start: u32,
    /// Requests a second before, and from the rise on.
    pub per_sec: [f64; 2],
    /// Requests that wait at most.
    pub waiting_max: u64,
    /// Seconds between two looks of a worker at its queues.
    pub period_secs: f64,
    /// Seconds until layers are there that were ordered.
    pub build_secs: f64,
    /// Seconds between two looks of who asks, and how many waiting requests he takes for none.
    pub tick_secs: f64,
    /// See [`Self::tick_secs`].
    pub few: u64,
    /// Periods that the higher load lasts.
    pub periods: u32,
}

/// What came of it, in seconds from the rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShardRisen {
    /// When the queue was longest: the last time.
    pub peak_secs: f64,
    /// When hardly anything waited any more; none: never.
    pub drained_secs: Option<f64>,
}

/// Runs it with the settings that workers with such a period have.
/// `Invalid`: levels that can't be, a start that is none of them, or a period, a rate or a time of building out of range.
pub fn shards_risen(rise: &ShardRise, seed: u64) -> Result<ShardRisen> {
    let curve = Curve::new(rise.levels.iter().map(level).collect())?;
    let settings = Settings::every(rise.period_secs);
    settings.validate()?;
    let times = [rise.build_secs, rise.tick_secs, rise.per_sec[0], rise.per_sec[1]];
    if rise.start > curve.highest() || times.iter().any(|number| !(1e-4..=1e6).contains(number)) || rise.periods > 10_000 {
        let (start, highest) = (rise.start, curve.highest());
        return Err(Error::invalid(format!(
            "a shard of level {start} of {highest} with {times:?} can't be simulated: give a level that it has, and times and rates from \
             0.0001 to a million"
        )));
    }
    let risen_at = CALM_PERIODS * rise.period_secs;
    let load = Load::steady(vec![rise.per_sec[0]]).then(risen_at, vec![rise.per_sec[1]]);
    let setup = Setup {
        clients: 1,
        waiting_max: rise.waiting_max,
        settings,
        build_secs: rise.build_secs,
        end_secs: risen_at + f64::from(rise.periods) * rise.period_secs,
        sample_secs: rise.tick_secs,
        ..Setup::one_worker(curve, 1, rise.start, load, seed)
    };
    let (queues, record) = Engine::new(&setup).run();
    let samples = record.outcome("rise", &setup, risen_at, &queues).samples;
    Ok(seen(rise, &samples, risen_at))
}

fn level(measured: &(f64, f64)) -> Level {
    let (size, service_us) = *measured;
    Level { bytes: (size * INPUT_BYTES as f64).round() as u64, service_us }
}

/// As who asks sees it: until hardly anything waits.
fn seen(rise: &ShardRise, samples: &[ShardSample], risen_at: f64) -> ShardRisen {
    let samples = &samples[samples.partition_point(|sample| sample.secs <= risen_at)..];
    let rising = risen_at + RISING_PERIODS * rise.period_secs;
    let over = samples.iter().position(|sample| sample.secs > rising && sample.waiting <= rise.few);
    let until = &samples[..over.map_or(samples.len(), |at| at + 1)];
    let most = until.iter().map(|sample| sample.waiting).max();
    let peak = until.iter().rfind(|sample| Some(sample.waiting) == most);
    let after = |sample: &ShardSample| sample.secs - risen_at;
    ShardRisen { peak_secs: peak.map_or(0.0, after), drained_secs: over.map(|at| after(&samples[at])) }
}
