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
}

impl ShardCurve {
    /// The names that [`FromStr`](std::str::FromStr) knows.
    pub const NAMES: &'static str = "paper or succinct";

    /// The curve of a shard that answers so many requests a second at its lowest level.
    pub(super) fn curve(self, per_sec: f64) -> Curve {
        let level = |(storage, throughput): (f64, f64)| Level {
            bytes: (storage * INPUT_BYTES as f64).round() as u64,
            service_us: 1e6 / (per_sec * throughput),
        };
        let points = match self {
            Self::Paper => (0..=20).map(paper).collect(),
            Self::Succinct => succinct(),
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

forebay_types::named! {
    ShardCurve, Error: Paper = "paper", Succinct = "succinct";
    |text| Error::invalid(format!("{text:?} is no curve of a shard: use {}", ShardCurve::NAMES))
}
