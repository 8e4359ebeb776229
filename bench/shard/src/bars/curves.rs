use std::path::Path;

use forebay_types::{Result, ResultExt};

use super::Bench;
use crate::chart::{Chart, Line};
use crate::measure::{Bar, Figure};
use crate::subject::Mix;
use crate::workload::Skew;

/// The dial in steps of this much.
const STEP: f64 = 0.05;
/// Where the bar wants it to end, at least.
const PAST: f64 = 1.5;

/// Where the pictures end.
const LAST: f64 = 2.1;

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
    Figure::new("dial, widest step", widest, "x", Bar::AtMost(0.05)).print();
    Figure::new("dial, reaches", sizes.iter().copied().fold(0.0, f64::max), "x", Bar::AtLeast(PAST)).print();

    std::fs::create_dir_all(out).context(|| out.display())?;
    for (skew, file) in [(Skew::Uniform, "uniform.svg"), (Skew::Zipf, "zipf.svg")] {
        let mut lines = Vec::new();
        for mix in Mix::ALL {
            let points = measure(bench, mix, skew, least)?;
            lines.push(Line { name: mix.name().to_string(), points });
        }
        let subtitle = format!(
            "{}; TPC-H lineitem, {} records, {:.0} MB; one thread; random read {:.0} ns",
            skew.name(),
            bench.records.len(),
            bench.records.input_bytes() as f64 / 1e6,
            bench.latency_ns
        );
        let chart = Chart { title: "Shards: operations a CPU-second over what is stored".to_string(), subtitle, lines };
        let path = out.join(file);
        std::fs::write(&path, chart.draw()).context(|| path.display().to_string())?;
    }
    Ok(())
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
            Figure::new(format!("{} at {size:.3}x, {}", mix.name(), skew.name()), rate, "a CPU-second", Bar::None).print();
            points.push((size, rate));
        }
        setting += STEP;
    }
    Ok(points)
}
