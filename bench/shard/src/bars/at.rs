//! One size of the dial taken apart: bytes of each layer, and throughput of each mix; for a profiler more than for a bar.

use forebay_bench_harness::{Bar, line};
use forebay_types::Result;

use super::Bench;
use crate::subject::Mix;
use crate::workload::Skew;

/// One setting of the dial for half gets, half searches: its layers, and each mix. Good to run under a profiler.
pub(crate) fn at(bench: &Bench, ratio: f64) -> Result<()> {
    let shard = bench.subject.at(ratio, &bench.half_counters()?)?;
    let size = shard.info().ratio();
    let mut layers = std::collections::BTreeMap::new();
    for layer in shard.layers() {
        *layers.entry((layer.id.kind, layer.id.which)).or_insert(0) += layer.bytes;
    }
    for ((kind, which), bytes) in layers {
        let part = bytes as f64 / bench.records.input_bytes() as f64;
        line(format!("at {ratio}x: layer {}.{which}", kind.name()), part, "x", Bar::Nothing);
    }
    for skew in [Skew::Uniform, Skew::Zipf] {
        let operations = bench.operations(skew);
        for mix in Mix::ALL {
            let rate = operations.rate(mix, &shard, bench.cpu_secs);
            line(format!("{} at {size:.3}x, {}", mix.name(), skew.name()), rate, "a CPU-second", Bar::Nothing);
        }
    }
    Ok(())
}
