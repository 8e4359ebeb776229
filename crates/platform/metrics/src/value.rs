//! Values of metrics, as they are recorded and written.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::row::Kind;

/// Takes a sample: the suffix of its name, one more label where there is one, and the number.
pub type TakeSample<'a> = dyn FnMut(&str, Option<(&str, &str)>, &dyn Display) + 'a;

/// Values of a type of metrics.
pub trait Value: Send + Sync + Sized {
    /// One at 0, for a row of the table.
    fn new(kind: Kind) -> Self;

    /// Gives its samples, in order.
    fn write(&self, sample: &mut TakeSample<'_>);
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter that has come to `value` elsewhere.
    pub fn at(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Value for Counter {
    fn new(_: Kind) -> Self {
        Self::default()
    }

    fn write(&self, sample: &mut TakeSample<'_>) {
        sample("", None, &self.get());
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// A gauge that stands at `value`.
    pub fn at(value: f64) -> Self {
        Self(AtomicU64::new(value.to_bits()))
    }

    /// It is this now.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    /// So much more, or less.
    pub fn add(&self, more: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + more).to_bits());
        // It never says no.
        let _ = self.0.fetch_update(Relaxed, Relaxed, sum);
    }

    /// What it is.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl Value for Gauge {
    fn new(_: Kind) -> Self {
        Self::default()
    }

    fn write(&self, sample: &mut TakeSample<'_>) {
        sample("", None, &self.get());
    }
}

/// How often something took how long, by fixed bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds_ns: Box<[u64]>,
    /// One a bound, and one for what takes longer than all of them.
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Once more, and it took so long.
    pub fn record(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds_ns.partition_point(|bound| *bound < ns);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    /// How often so far.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }
}

impl Value for Histogram {
    fn new(kind: Kind) -> Self {
        let Kind::Histogram(buckets) = kind else { unreachable!("the table makes histograms of rows with buckets") };
        let bounds_ns: Box<[u64]> = buckets.bounds_ns().collect();
        let counts = (0..=bounds_ns.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds_ns, counts, sum_ns: AtomicU64::new(0) }
    }

    fn write(&self, sample: &mut TakeSample<'_>) {
        let (mut so_far, mut le) = (0, String::new());
        for (ix, count) in self.counts.iter().enumerate() {
            // Each bucket is read once, so that the count is that of the last one whatever is recorded meanwhile.
            so_far += count.load(Relaxed);
            le.clear();
            // Writing to a string does not fail.
            let _ = if let Some(bound) = self.bounds_ns.get(ix) { write!(le, "{}", seconds(*bound)) } else { write!(le, "+Inf") };
            sample("_bucket", Some(("le", &le)), &so_far);
        }
        sample("_sum", None, &seconds(self.sum_ns.load(Relaxed)));
        sample("_count", None, &so_far);
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 nanoseconds are 104 days; longer sums lose what nobody asks for")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Buckets;

    fn samples(value: &impl Value) -> Vec<String> {
        let mut all = Vec::new();
        value.write(&mut |suffix, label, number| {
            all.push(format!("{suffix}{} {number}", label.map_or(String::new(), |(name, value)| format!("{{{name}={value}}}"))));
        });
        all
    }

    #[test]
    fn a_bucket_has_what_took_up_to_its_bound_and_all_below_it() {
        let kind = Kind::Histogram(Buckets { first_ns: 4_000, factor: 2, count: 3 });
        let histogram = Histogram::new(kind);
        for ns in [0, 4_000, 4_001, 16_000, 16_001, 3_000_000_000] {
            histogram.record(Duration::from_nanos(ns));
        }
        assert_eq!(
            samples(&histogram),
            [
                "_bucket{le=0.000004} 2",
                "_bucket{le=0.000008} 3",
                "_bucket{le=0.000016} 4",
                "_bucket{le=+Inf} 6",
                "_sum 3.000040002",
                "_count 6"
            ]
        );
    }

    #[test]
    fn gauges_go_up_and_down_and_counters_up() {
        let (gauge, counter) = (Gauge::at(2.5), Counter::at(u64::MAX - 1));
        gauge.add(-3.0);
        counter.add(1);
        assert_eq!((samples(&gauge), samples(&counter)), (vec![" -0.5".to_string()], vec![format!(" {}", u64::MAX)]));
    }
}
