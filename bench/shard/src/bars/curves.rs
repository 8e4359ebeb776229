//! Throughput over size, as pictures for the pages, and the bar of how fine and how far the dial goes.

use std::path::Path;

use forebay_bench_harness::{Bar, line};
use forebay_chart::{Chart, Line};
use forebay_types::{Result, ResultExt};

use super::Bench;
use crate::subject::Mix;
use crate::workload::Skew;

/// The dial in steps of this much.
const STEP: f64 = 0.05;
/// Where the bar wants it to end, at least.
const PAST: f64 = 1.5;

/// Where the pictures end.
const LAST: f64 = 2.1;

/// From this much input on, C++ Succinct's figures are drawn beside ours: with less, a search has fewer hits than theirs had.
const SUCCINCT_BYTES: usize = 100_000_000;
/// What the original C++ Succinct did on the same data and such a machine: size, gets and searches a CPU-second. Reference
/// figures of an earlier study: it isn't run here.
const SUCCINCT: [(f64, f64, f64); 5] = [
    (0.552, 6_117.0, 85.0),
    (0.651, 7_739.0, 137.0),
    (0.850, 8_013.0, 380.0),
    (1.248, 8_369.0, 874.0),
    (2.045, 9_824.0, 1_551.0),
];

/// Throughput over size for each mix and skew, drawn; and the dial's own steps.
pub(crate) fn curves(bench: &Bench, out: &Path) -> Result<()> {
    let subject = &bench.subject;
    let least = subject.base.len() as f64 / bench.records.input_bytes() as f64;
    let counters = bench.half_counters()?;
    // The dial itself, finely: where it stands for each setting.
    let mut sizes = Vec::new();
    let mut setting = least;
    while sizes.last().is_none_or(|&last| last < PAST + STEP) && setting < 4.0 {
        sizes.push(subject.at(setting, &counters)?.info().ratio());
        setting += STEP / 5.0;
    }
    let widest = sizes.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    line("dial, widest step", widest, "x", Bar::ValueAtMost(0.05));
    line("dial, reaches", sizes.iter().copied().fold(0.0, f64::max), "x", Bar::ValueAtLeast(PAST));

    std::fs::create_dir_all(out).context(|| out.display())?;
    for (skew, file) in [(Skew::Uniform, "uniform.svg"), (Skew::Zipf, "zipf.svg")] {
        let mut lines = Vec::new();
        for mix in Mix::ALL {
            let points = measure(bench, mix, skew, least)?;
            lines.push(Line { name: mix.name().to_string(), points, dashed: false });
        }
        if bench.records.input_bytes() >= SUCCINCT_BYTES {
            lines.extend(references());
        }
        let megabytes = bench.records.input_bytes() as f64 / 1e6;
        let chart = Chart {
            title: format!("Shards: throughput over what is stored, {}", skew.name()),
            x: format!("stored bytes to those of the input ({megabytes:.0} MB of TPC-H lineitem)"),
            y: "operations a CPU-second".to_string(),
            from_zero: false,
            lines,
        };
        let path = out.join(file);
        std::fs::write(&path, chart.svg()).context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The lines of C++ Succinct.
fn references() -> [Line; 2] {
    let line = |name: &str, pick: fn(&(f64, f64, f64)) -> (f64, f64)| Line {
        name: name.to_string(),
        points: SUCCINCT.iter().map(pick).collect(),
        dashed: true,
    };
    [line("C++ Succinct, get", |point| (point.0, point.1)), line("C++ Succinct, search", |point| (point.0, point.2))]
}

/// Throughput at every step of the dial: sizes and operations a CPU-second.
fn measure(bench: &Bench, mix: Mix, skew: Skew, least: f64) -> Result<Vec<(f64, f64)>> {
    let operations = bench.operations(skew);
    let counters = bench.subject.counters(mix, &operations)?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut setting = least;
    while setting < LAST {
        let shard = bench.subject.at(setting, &counters)?;
        let size = shard.info().ratio();
        if points.last().is_none_or(|(last, _)| size - last > STEP / 2.0) {
            let rate = operations.rate(mix, &shard, bench.cpu_secs);
            line(format!("{} at {size:.3}x, {}", mix.name(), skew.name()), rate, "a CPU-second", Bar::Nothing);
            points.push((size, rate));
        }
        setting += STEP;
    }
    Ok(points)
}
