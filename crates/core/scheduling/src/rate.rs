//! What a kind of job reads a second.

use std::collections::BTreeMap;

/// Weight of a finished task beside what is known of its kind: about the last twenty tasks count.
const WEIGHT: f64 = 0.1;
/// Kinds remembered; the one that was heard of longest ago goes first.
const KINDS_MAX: usize = 4_096;

/// Bytes a second of task time that jobs consume: what a job's tasks will need of the network, known before it runs.
///
/// A job is of a kind: whatever names its table and operators. A new kind is taken for one that reads at `default`
/// until its first task is done (MixApart, section 3.2: the rate of similar jobs seen before).
///
/// ```
/// use forebay_scheduling::IoRates;
///
/// let mut rates = IoRates::new(50_000_000);
/// assert_eq!(rates.estimate("sales: filter, count"), 50_000_000);
/// rates.observe("sales: filter, count", 64_000_000, 2.0);
/// assert_eq!(rates.estimate("sales: filter, count"), 32_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct IoRates {
    default_bytes_per_sec: u64,
    kinds: BTreeMap<String, Kind>,
    observed: u64,
}

#[derive(Clone, Debug)]
struct Kind {
    bytes_per_sec: f64,
    last: u64,
}

impl IoRates {
    /// Nothing known: every kind is taken to read at `default_bytes_per_sec`.
    pub fn new(default_bytes_per_sec: u64) -> Self {
        Self { default_bytes_per_sec, kinds: BTreeMap::new(), observed: 0 }
    }

    /// What a task of this kind is expected to read, in bytes a second.
    pub fn estimate(&self, kind: &str) -> u64 {
        self.kinds.get(kind).map_or(self.default_bytes_per_sec, |kind| kind.bytes_per_sec as u64)
    }

    /// A task of this kind has read `bytes` in `secs` of its own time, waiting for data left out.
    pub fn observe(&mut self, kind: &str, bytes: u64, secs: f64) {
        if bytes == 0 || secs <= 0.0 || !secs.is_finite() {
            return;
        }
        self.observed += 1;
        let (rate, last) = (bytes as f64 / secs, self.observed);
        if let Some(known) = self.kinds.get_mut(kind) {
            known.bytes_per_sec += WEIGHT * (rate - known.bytes_per_sec);
            known.last = last;
            return;
        }
        if self.kinds.len() == KINDS_MAX
            && let Some(oldest) = self.kinds.iter().min_by_key(|(_, kind)| kind.last).map(|(name, _)| name.clone())
        {
            self.kinds.remove(&oldest);
        }
        self.kinds.insert(kind.to_owned(), Kind { bytes_per_sec: rate, last });
        assert!(self.kinds.len() <= KINDS_MAX, "{} kinds are remembered", self.kinds.len());
    }
}
