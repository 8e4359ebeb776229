//! The loads that BlowFish puts on its shards, by name.

use forebay_types::{Error, Result};

use super::arrivals::Load;
use super::curves::ShardCurve;
use super::engine::Engine;
use super::outcome::ShardsRun;
use super::setup::{Loss, Place, Setup, ShardRouting};

/// The scenarios by name, and what each shows.
pub const SHARD_SCENARIOS: [(&str, &str); 10] = [
    ("uniform", "20 shards, three times the load on all at once"),
    ("mix-0", "the same of gets alone, on the curve that was measured of ours (figures 6 and 11)"),
    ("mix-50", "the same of as many gets as searches"),
    ("mix-100", "the same of searches alone"),
    ("skewed-2", "20 shards and no room, three times the load on 2 of them at once"),
    ("skewed-5", "20 shards and no room, three times the load on 5 of them at once"),
    ("spike", "20 shards, three times the load on all for 30 seconds (figure 5)"),
    ("gradual", "20 shards, up to four times the load and back within an hour"),
    ("replicas", "one shard, three replicas of which one has no room, load from 3 to 8 at once (figure 10)"),
    ("lost", "12 shards of three replicas, 0.9x, 0.5x and 0.5x, on 4 workers of which one is lost (section 5.1)"),
];

/// Requests a second at the lowest level.
pub(super) const PER_SEC: f64 = 4.0;
const SHARDS: usize = 20;
/// When the load changes: averages have settled by then.
const CHANGE_SECS: f64 = 600.0;
const MINUTE: f64 = 60.0;

/// A scenario, and when its load rises last.
struct Scenario {
    setup: Setup,
    rise_secs: f64,
}

/// One run of a scenario: a function of its arguments.
/// `Invalid`: there is no such scenario.
pub fn shards(name: &str, routing: ShardRouting, seed: u64) -> Result<ShardsRun> {
    let mut scenario = match name {
        "uniform" => uniform(ShardCurve::Paper, seed),
        "mix-0" => uniform(ShardCurve::Gets, seed),
        "mix-50" => uniform(ShardCurve::Half, seed),
        "mix-100" => uniform(ShardCurve::Searches, seed),
        "skewed-2" => skewed(2, seed),
        "skewed-5" => skewed(5, seed),
        "spike" => spike(seed),
        "gradual" => gradual(seed),
        "replicas" => replicas(seed),
        "lost" => lost(seed),
        _ => {
            let names: Vec<&str> = SHARD_SCENARIOS.iter().map(|(name, _)| *name).collect();
            return Err(Error::invalid(format!("{name:?} is no scenario of shards: use {}", names.join(", "))));
        }
    };
    scenario.setup.routing = routing;
    let (queues, record) = Engine::new(&scenario.setup).run();
    Ok(record.outcome(name, &scenario.setup, scenario.rise_secs, &queues))
}

/// What a replica answers a second at `level`, times `load`.
fn rate(level: u32, load: f64) -> f64 {
    load * 1e6 / ShardCurve::Paper.curve(PER_SEC).service_us(level)
}

fn worker(start: u32, load: Load, seed: u64) -> Setup {
    Setup::one_worker(ShardCurve::Paper.curve(PER_SEC), SHARDS, start, load, seed)
}

/// 60 % busy, then three times as much.
fn uniform(curve: ShardCurve, seed: u64) -> Scenario {
    let (curve, start) = (curve.curve(PER_SEC), 2);
    let before = 0.6 * 1e6 / curve.service_us(start);
    let load = Load::steady(vec![before; SHARDS]).then(CHANGE_SECS, vec![3.0 * before; SHARDS]);
    Scenario { setup: Setup::one_worker(curve, SHARDS, start, load, seed), rise_secs: CHANGE_SECS }
}

/// 40 % busy without a byte of room, then three times as much for the first `hot`.
fn skewed(hot: usize, seed: u64) -> Scenario {
    let (start, before) = (3, rate(3, 0.4));
    let after = (0..SHARDS).map(|shard| if shard < hot { 3.0 * before } else { before }).collect();
    let load = Load::steady(vec![before; SHARDS]).then(CHANGE_SECS, after);
    let mut setup = worker(start, load, seed);
    setup.room_bytes = vec![SHARDS as u64 * setup.curve.bytes(start)];
    Scenario { setup, rise_secs: CHANGE_SECS }
}

fn spike(seed: u64) -> Scenario {
    let before = rate(2, 0.5);
    let load = Load::steady(vec![before; SHARDS]).then(CHANGE_SECS, vec![3.0 * before; SHARDS]);
    let load = load.then(CHANGE_SECS + 30.0, vec![before; SHARDS]);
    Scenario { setup: worker(2, load, seed), rise_secs: CHANGE_SECS }
}

/// A step a minute: 30 up, 30 down, then an hour of rest.
fn gradual(seed: u64) -> Scenario {
    let before = rate(2, 0.5);
    let mut load = Load::steady(vec![before; SHARDS]);
    for minute in 1..=60 {
        let risen = f64::from(30 - i32::abs(30 - minute)) / 30.0;
        load = load.then(CHANGE_SECS + f64::from(minute) * MINUTE, vec![before * (1.0 + 3.0 * risen); SHARDS]);
    }
    let setup = Setup { end_secs: CHANGE_SECS + 120.0 * MINUTE, ..worker(2, load, seed) };
    Scenario { setup, rise_secs: CHANGE_SECS + 30.0 * MINUTE }
}

/// A unit of load is half of what a replica answers at the start: by 3 the three are half busy, by 8 they would have to be a third
/// more than they are, and the one that can't grow stays as it is.
fn replicas(seed: u64) -> Scenario {
    let (start, unit) = (3, rate(3, 0.5));
    let curve = ShardCurve::Paper.curve(PER_SEC);
    let load = Load::steady(vec![3.0 * unit]).then(CHANGE_SECS, vec![8.0 * unit]);
    let mut setup = Setup::one_worker(curve, 1, start, load, seed);
    setup.places = (0..3).map(|worker| Place { shard: 0, worker, start }).collect();
    setup.room_bytes = vec![setup.curve.bytes(start), u64::from(u32::MAX), u64::from(u32::MAX)];
    Scenario { setup, rise_secs: CHANGE_SECS }
}

/// Most is answered by the replica of 0.9x, busy for a third; the two of 0.5x are there for its loss. A base is copied in 20 s, two
/// may be on their way.
fn lost(seed: u64) -> Scenario {
    let (shards, workers, large) = (12, 4, 8);
    let load = Load::steady(vec![rate(large, 1.0 / 3.0); shards]);
    let mut setup = Setup::one_worker(ShardCurve::Paper.curve(PER_SEC), shards, 0, load, seed);
    let base = setup.curve.bytes(0);
    let place =
        |shard: usize, copy: usize| Place { shard, worker: (shard + copy) % workers, start: if copy == 0 { large } else { 0 } };
    setup.places = (0..shards).flat_map(|shard| (0..3).map(move |copy| place(shard, copy))).collect();
    // All shards at 0.9x would fit on each.
    setup.room_bytes = vec![shards as u64 * setup.curve.bytes(large); workers];
    let bytes_per_sec = base as f64 / 20.0;
    setup.loss = Some(Loss { secs: CHANGE_SECS, worker: 0, bytes_per_sec, in_flight_bytes_max: 2 * base });
    Scenario { setup, rise_secs: CHANGE_SECS }
}
