//! What a kind of job reads a second, and how many tasks a bandwidth feeds.

use std::collections::BTreeMap;

/// Weight of a finished task beside what is known of its kind: about the last twenty tasks count.
const WEIGHT: f64 = 0.1;
/// What a task is taken to read a second before one of its kind was seen, in bytes.
pub const IO_RATE: u64 = 64 << 20;
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

impl Default for IoRates {
    /// Nothing known: every kind is taken to read at [`IO_RATE`].
    fn default() -> Self {
        Self::new(IO_RATE)
    }
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

/// How many parallel tasks shared storage can feed (MixApart, figure 1).
///
/// A task reads `task_bytes` in `task_secs`; `reuse` of its input (0 to 1) is in the cache already, so that only the
/// rest comes through `bandwidth_bytes_per_sec`. Tasks then start at bandwidth / ((1 - reuse) x bytes) a second, and
/// each of them runs for its duration. Everything in the cache feeds any number of tasks: infinity.
///
/// ```
/// use forebay_scheduling::sustained_tasks;
///
/// // The paper's example: tasks of 20 s over 64 MB, 80 % of it cached, behind 10 Gbit/s.
/// assert_eq!(sustained_tasks(0.8, 20.0, 64e6, 10e9 / 8.0).round(), 1953.0);
/// assert_eq!(sustained_tasks(0.0, 20.0, 64e6, 10e9 / 8.0).round(), 391.0);
/// ```
pub fn sustained_tasks(reuse: f64, task_secs: f64, task_bytes: f64, bandwidth_bytes_per_sec: f64) -> f64 {
    let fetched_bytes = (1.0 - reuse.clamp(0.0, 1.0)) * task_bytes;
    bandwidth_bytes_per_sec * task_secs / fetched_bytes
}
