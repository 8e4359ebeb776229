//! Bytes that came through a socket over time, against a bound.

use std::time::{Duration, Instant};

use forebay_types::Result;

use forebay_bench_harness::{Bar, Figure};

/// How often the counter is looked at.
const EVERY: Duration = Duration::from_millis(20);
/// Of mounts that say nothing else.
const BURST_BYTES: f64 = 1_048_576.0;

/// A counter's value at some moments, in seconds and bytes since the first.
pub struct Traffic(Vec<(f64, u64)>);

impl Traffic {
    /// Looks at `counter` until `over` says so.
    pub async fn watch(mut counter: impl FnMut() -> Result<u64>, mut over: impl FnMut() -> bool) -> Result<Self> {
        let (start, first) = (Instant::now(), counter()?);
        let mut samples = vec![(0.0, 0)];
        while !over() {
            tokio::time::sleep(EVERY).await;
            samples.push((start.elapsed().as_secs_f64(), counter()? - first));
        }
        Ok(Self(samples))
    }

    /// Bytes a second from the first byte to the last.
    fn mean(&self) -> f64 {
        let all = self.0.last().map_or(0, |last| last.1);
        let start = self.0.iter().rev().find(|sample| sample.1 == 0).map_or(0.0, |sample| sample.0);
        let end = self.0.iter().find(|sample| sample.1 == all).map_or(start, |sample| sample.0);
        all as f64 / (end - start).max(EVERY.as_secs_f64())
    }

    fn most_in(&self, window: f64) -> f64 {
        let later = |(from, before): (f64, u64)| {
            let within = self.0.iter().filter(move |(to, _)| *to > from && to - from <= window);
            within.map(move |(_, after)| (after - before) as f64)
        };
        self.0.iter().copied().flat_map(later).fold(0.0, f64::max)
    }

    /// Most in any five seconds, against the bound and its burst.
    pub fn kept(&self, what: &str, bound: u64) -> Figure {
        let (most, may) = (self.most_in(5.0), 5.0 * bound as f64 + BURST_BYTES);
        Figure::alone(format!("{what}: most in any five seconds"), most / 1e6, "MB", Bar::RatioAtMost(1.0))
            .beside("five times the bound + burst of 1 MiB", may / 1e6)
    }

    /// How exactly a bound of bytes a second held.
    pub fn figures(&self, what: &str, bound: u64) -> Vec<Figure> {
        let bound = bound as f64;
        let mb = |bytes: f64| bytes / 1e6;
        vec![
            Figure::alone(format!("{what}: mean while data is missing"), mb(self.mean()), "MB/s", Bar::RatioAtLeast(0.9))
                .beside("the bound", mb(bound)),
            Figure::alone(format!("{what}: most in any second"), mb(self.most_in(1.0)), "MB", Bar::RatioAtMost(1.0))
                .beside("bound + burst of 1 MiB", mb(bound + BURST_BYTES)),
            Figure::alone(format!("{what}: most in any five seconds"), mb(self.most_in(5.0)), "MB", Bar::RatioAtMost(1.02))
                .beside("five times the bound", mb(5.0 * bound)),
        ]
    }
}
