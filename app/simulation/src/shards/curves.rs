//! Storage-performance curves that shards of the model have.

use forebay_navigation::{Curve, Level};
use forebay_types::Error;

/// Bytes of a shard's input: levels are counted in thousandths of it.
pub(super) const INPUT_BYTES: u64 = 1_000;

/// Which curve. Throughput is relative to the lowest level's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardCurve {
    /// BlowFish's in steps of 0.05x: 20 times the throughput between 0.5x and 0.75x. Beyond that, up to 1.5x, twice as much
    /// again: our reading, the paper's text gives no number there.
    #[default]
    Paper,
    /// What the original C++ Succinct measured in searches on TPC-H lineitem, with one sampling rate more a level.
    Succinct,
    /// Ours in gets of whole records of TPC-H lineitem, in steps of 0.05x between the sizes that were measured.
    Gets,
    /// Ours in searches of its selective attributes.
    Searches,
    /// Ours in as many of both.
    Half,
}

impl ShardCurve {
    /// The names that [`FromStr`](std::str::FromStr) knows.
    pub const NAMES: &'static str = "paper, succinct, gets, searches or half";

    /// The curve of a shard that answers so many requests a second at its lowest level.
    pub(super) fn curve(self, per_sec: f64) -> Curve {
        let level = |(storage, throughput): (f64, f64)| Level {
            bytes: (storage * INPUT_BYTES as f64).round() as u64,
            service_us: 1e6 / (per_sec * throughput),
        };
        let points = match self {
            Self::Paper => (0..=20).map(paper).collect(),
            Self::Succinct => succinct(),
            Self::Gets => mixed(0.0),
            Self::Searches => mixed(1.0),
            Self::Half => mixed(0.5),
        };
        Curve::new(points.into_iter().map(level).collect()).expect("storage rises")
    }
}

/// Storage and throughput of a level.
fn paper(step: i32) -> (f64, f64) {
    let storage = 0.5 + 0.05 * f64::from(step);
    let steep = 20f64.powf(f64::from(step.min(5)) / 5.0);
    (storage, steep * 2f64.powf(f64::from((step - 5).max(0)) / 15.0))
}

/// Rates 64 to 4.
fn succinct() -> Vec<(f64, f64)> {
    let measured = [(0.552, 85.0), (0.651, 137.0), (0.850, 380.0), (1.248, 874.0), (2.045, 1551.0)];
    measured.map(|(storage, searches)| (storage, searches / measured[0].1)).to_vec()
}

/// Sizes over the input, gets a CPU-second and searches a CPU-second that `forebay-bench-shard table` has measured of lineitem.
const OURS: [(f64, f64, f64); 5] = [
    (0.35, 42_558.0, 29_602.0),
    (0.48, 90_475.0, 93_881.0),
    (0.55, 136_526.0, 84_714.0),
    (0.69, 530_567.0, 122_672.0),
    (1.5, 2_307_030.0, 1_091_560.0),
];
const STEP: f64 = 0.05;

/// Storage and throughput of a mix with such a share of searches.
fn mixed(searches: f64) -> Vec<(f64, f64)> {
    let rate = |size: f64| {
        let above = OURS.partition_point(|(measured, ..)| *measured < size).clamp(1, OURS.len() - 1);
        let ((below, gets, found), (at, more_gets, more_found)) = (OURS[above - 1], OURS[above]);
        let part = ((size - below) / (at - below)).clamp(0.0, 1.0);
        let between = |low: f64, high: f64| low * (high / low).powf(part);
        1.0 / ((1.0 - searches) / between(gets, more_gets) + searches / between(found, more_found))
    };
    let sizes = (0..=23u32).map(|step| OURS[0].0 + STEP * f64::from(step));
    sizes.map(|size| (size, rate(size) / rate(OURS[0].0))).collect()
}

forebay_types::named! {
    ShardCurve, Error: Paper = "paper", Succinct = "succinct", Gets = "gets", Searches = "searches", Half = "half";
    |text| Error::invalid(format!("{text:?} is no curve of a shard: use {}", ShardCurve::NAMES))
}
