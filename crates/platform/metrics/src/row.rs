//! What the table says of a metric.

/// A metric as scrapers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The whole name: `forebay_`, who counts, what, the unit, and `_total` for what only grows.
    pub name: &'static str,
    /// What Prometheus calls its type.
    pub kind: Kind,
    /// What it tells, in one line.
    pub help: &'static str,
    /// Names of the labels, in the order in which values are given.
    pub labels: &'static [&'static str],
}

/// Types of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many times took up to each of some bounds, and how long all of them took.
    Histogram(Buckets),
}

/// The upper bounds of a histogram: `count` of them from `first_ns` on, each `factor` times the one before. What takes longer than the
/// last is in a bucket of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// The lowest bound in nanoseconds.
    pub first_ns: u64,
    /// Above 1.
    pub factor: u64,
    /// Above 0.
    pub count: u32,
}

impl Buckets {
    /// All bounds in nanoseconds, in order.
    pub fn bounds_ns(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |power| self.first_ns * self.factor.pow(power))
    }
}

impl Row {
    /// The unit of its values, as its name says; none for plain numbers.
    pub fn unit(&self) -> Option<&'static str> {
        let base = self.name.strip_suffix("_total").unwrap_or(self.name);
        ["bytes_per_second", "bytes", "seconds"].into_iter().find(|unit| {
            let before = base.strip_suffix(unit);
            before.is_some_and(|before| before.ends_with('_'))
        })
    }

    /// The type's name in the text format.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        }
    }

    /// The names that its samples have, as queries use them.
    pub fn sample_names(&self) -> Vec<String> {
        match self.kind {
            Kind::Counter | Kind::Gauge => vec![self.name.to_string()],
            Kind::Histogram(_) => ["bucket", "sum", "count"].map(|part| format!("{}_{part}", self.name)).into(),
        }
    }
}
