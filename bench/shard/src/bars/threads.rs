//! Bar of two readers on one shard, who must not wait for each other.

use std::sync::Barrier;

use forebay_bench_harness::{Bar, Figure, median};
use forebay_types::Result;

use super::Bench;
use crate::subject::Mix;
use crate::workload::Skew;

/// Rounds, in turns.
const ROUNDS: usize = 5;

/// Two threads against one, on one shard, by the clock on the wall: what they wait for each other counts. It wants two cores that
/// nobody else uses.
pub(crate) fn threads(bench: &Bench) -> Result<()> {
    let counters = bench.half_counters()?;
    let operations = bench.operations(Skew::Uniform);
    for ratio in [0.35, 0.55] {
        let shard = bench.subject.at(ratio, &counters)?;
        let together = |threads: usize| -> f64 {
            let begin = Barrier::new(threads);
            std::thread::scope(|scope| {
                let read = || {
                    begin.wait();
                    operations.rate_by_the_wall(Mix::Half, &shard, bench.cpu_secs)
                };
                let rates: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
                rates.into_iter().map(|rate| rate.join().expect("a reader")).sum()
            })
        };
        let (mut ones, mut twos) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ones.push(together(1));
            twos.push(together(2));
        }
        let what = format!("two reader threads at {ratio}x");
        let peer = "one reader thread";
        Figure::new(what, median(twos), "a second, summed", peer, median(ones), Bar::RatioAtLeast(1.8)).print(true);
    }
    Ok(())
}
