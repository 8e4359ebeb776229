use forebay_types::Result;

use super::Bench;
use crate::measure::{Bar, Figure};
use crate::subject::Mix;
use crate::workload::Skew;

/// Two threads against one, on one shard.
pub(crate) fn threads(bench: &Bench) -> Result<()> {
    let counters = bench.half_counters()?;
    let operations = bench.operations(Skew::Uniform);
    for ratio in [0.35, 0.55] {
        let shard = bench.subject.at(ratio, &counters)?;
        let one = operations.rate(Mix::Half, &shard, bench.cpu_secs);
        // Operations a CPU-second of each thread while the other one runs: what they cost each other, whatever else runs.
        let two: f64 = std::thread::scope(|scope| {
            let rates: Vec<_> = (0..2).map(|_| scope.spawn(|| operations.rate(Mix::Half, &shard, bench.cpu_secs))).collect();
            rates.into_iter().map(|rate| rate.join().expect("a reader")).sum()
        });
        let what = format!("two reader threads at {ratio}x");
        Figure::against(what, two, "a CPU-second each, summed", "one reader thread", one, Bar::RatioAtLeast(1.8)).print();
    }
    Ok(())
}
