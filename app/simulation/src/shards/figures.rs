//! BlowFish's figures, redrawn from our own runs.

use forebay_types::Result;

use super::curves::ShardCurve;
use super::repair::{RepairHost, repair_chart, shards_repair};
use super::report::{shards_chart, skew_chart};
use super::scenarios::shards;
use super::setup::ShardRouting;
use super::skew::shards_skew;
use crate::program::{Picture, no_figure};

const SEED: u64 = 1;
/// How skewed the load of figure 8 is, and its storage over the input.
const THETA: f64 = 0.99;
const STORAGE: [f64; 6] = [0.55, 0.6, 0.65, 0.7, 0.8, 1.0];

/// The figures by name, and what each shows.
pub const SHARD_FIGURES: [(&str, &str); 12] = [
    ("spike", "three times the load for 30 seconds (figure 5)"),
    ("mix-0", "three times the load of gets alone, on our curve (figures 6 and 11)"),
    ("mix-50", "three times the load of as many gets as searches"),
    ("mix-100", "three times the load of searches alone"),
    ("repair", "what is answered while one of 12 workers is repaired (figure 7)"),
    ("skew-20", "20 skewed shards on a fixed storage (figure 8)"),
    ("skew-100", "100 skewed shards on a fixed storage (figure 8)"),
    ("uniform", "three times the load on all shards at once (figure 9)"),
    ("skewed-2", "three times the load on 2 of 20 shards at once (figure 9)"),
    ("skewed-5", "three times the load on 5 of 20 shards at once (figure 9)"),
    ("replicas", "load from 3 to 8 on three replicas, one of which can't grow (figure 10)"),
    ("gradual", "up to four times the load and back within an hour (figure 12)"),
];

/// One of the figures.
pub fn shard_figure(name: &str) -> Result<Picture> {
    let skew = |count| shards_skew(ShardCurve::Paper, count, THETA, &STORAGE, SEED).map(|rows| skew_chart(&rows));
    let chart = match name {
        "repair" => repair_chart(&shards_repair(RepairHost::SHORT, SEED)?),
        "skew-20" => skew(20)?,
        "skew-100" => skew(100)?,
        _ if SHARD_FIGURES.iter().any(|(known, _)| *known == name) => shards_chart(&shards(name, ShardRouting::default(), SEED)?),
        _ => return Err(no_figure(name, &SHARD_FIGURES)),
    };
    Ok(chart.into())
}
