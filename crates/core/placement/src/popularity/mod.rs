//! How popular segments are: counts by window, aged, kept over restarts.

mod checkpoint;
mod heat;
mod shift;
mod speeds;
mod weigh;

pub use heat::Heat;
pub use speeds::Speeds;
pub use weigh::Weigh;

use std::collections::HashMap;

use forebay_types::SegmentId;

/// What was read of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Operations that read it, each counted once a window.
    pub accesses: f64,
    /// Reads, each time counted.
    pub reads: f64,
    /// Bytes given to readers.
    pub bytes: f64,
    /// Time that workers took to answer, in microseconds.
    pub service_us: f64,
}

impl Usage {
    fn scaled(self, by: f64) -> Self {
        Self { accesses: self.accesses * by, reads: self.reads * by, bytes: self.bytes * by, service_us: self.service_us * by }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            accesses: self.accesses + other.accesses,
            reads: self.reads + other.reads,
            bytes: self.bytes + other.bytes,
            service_us: self.service_us + other.service_us,
        }
    }
}

/// Popularity of all segments: the sum over windows of C_i / 2^(i-1), where C_1 is the window that was closed last
/// (Getafix, section 3.3).
///
/// Windows are numbered by [`Windows`]. Reports may come late and in any order: what belongs to an older window is aged
/// accordingly. Every worker's counts are added up; that each is reported once is the caller's to see to.
///
/// ```
/// use forebay_placement::{Popularity, Usage};
/// use forebay_types::SegmentId;
///
/// let accesses = |accesses: f64| Usage { accesses, ..Usage::default() };
/// let mut popularity = Popularity::new(10);
/// popularity.add(9, SegmentId(1), accesses(6.0));
/// popularity.add(10, SegmentId(1), accesses(8.0));
/// assert_eq!(popularity.of(SegmentId(1)).accesses, 8.0 + 6.0 / 2.0);
/// popularity.close(11);
/// assert_eq!(popularity.count(SegmentId(1)), 6, "5.5, rounded");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Popularity {
    /// The window that counts in full.
    window: u64,
    records: HashMap<SegmentId, Record>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Record {
    /// As of `window`.
    usage: Usage,
    window: u64,
    /// The accesses among them that are of `window` itself.
    newest: f64,
}

impl Record {
    /// As of a window that isn't earlier.
    fn at(&self, window: u64) -> Usage {
        self.usage.scaled(halved(window.saturating_sub(self.window)))
    }

    /// Accesses of the window itself, and the aged ones of those before it.
    fn parts(&self, window: u64) -> (f64, f64) {
        let newest = if self.window == window { self.newest } else { 0.0 };
        (newest, (self.at(window).accesses - newest).max(0.0))
    }
}

/// 1 / 2^windows.
fn halved(windows: u64) -> f64 {
    0.5f64.powi(i32::try_from(windows).unwrap_or(i32::MAX))
}

impl Popularity {
    /// Segments that are remembered at most; beyond it the least popular are forgotten.
    pub const SEGMENTS_MAX: usize = 16 << 20;
    /// What has faded below this many accesses is forgotten.
    const FADED: f64 = 1.0 / 1024.0;

    /// Nothing was read up to `window`.
    pub fn new(window: u64) -> Self {
        Self { window, records: HashMap::new() }
    }

    /// The window that counts in full.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Adds what was read in `window`; what comes from a window that isn't closed here yet counts as of the last one. Gives the segment's
    /// [heat](Self::heat).
    pub fn add(&mut self, window: u64, segment: SegmentId, usage: Usage) -> Heat {
        let now = self.window;
        let aged = usage.scaled(halved(now.saturating_sub(window)));
        let record = self.records.entry(segment).or_insert(Record { usage: Usage::default(), window: now, newest: 0.0 });
        let newest = record.parts(now).0 + if window >= now { usage.accesses } else { 0.0 };
        *record = Record { usage: record.at(now).plus(aged), window: now, newest };
        Heat { accesses: record.usage.accesses, window: now }
    }

    /// From now on `window` counts in full, and every earlier one half of what it did a window ago. Forgets what has
    /// faded. O(s) for s segments.
    pub fn close(&mut self, window: u64) {
        self.window = self.window.max(window);
        let now = self.window;
        self.records.retain(|_, record| record.at(now).accesses >= Self::FADED);
        self.keep_most_popular(Self::SEGMENTS_MAX);
    }

    /// Once the counts of a window are in: forgets of the windows before it what it contradicts. Gives the share of them that
    /// is kept: 1 as long as the window is like them but for chance, and then the sum is the paper's; less the more of what is
    /// read now was not read then. Halving alone takes three windows to follow when everything has changed. O(s).
    pub fn follow(&mut self) -> f64 {
        let now = self.window;
        let kept = shift::kept(|| self.records.values().map(|record| record.parts(now)));
        if kept < 1.0 {
            for record in self.records.values_mut() {
                let (newest, older) = record.parts(now);
                if older > 0.0 {
                    let usage = record.at(now).scaled((newest + kept * older) / (newest + older));
                    *record = Record { usage, window: now, newest };
                }
            }
        }
        kept
    }

    /// Starts a segment that was just written or discovered with the popularity of the newest segment of its dataset before it:
    /// readers of the newest data will read this one. Nothing happens when it is counted already, or when that other segment isn't
    /// counted. Returns whether it was started: then a plan should be made at once, since until then one worker serves all of its
    /// readers.
    pub fn start_like(&mut self, fresh: SegmentId, newest_before: SegmentId) -> bool {
        let (usage, window) = (self.of(newest_before), self.window);
        let starts = usage.accesses >= Self::FADED && !self.records.contains_key(&fresh);
        if starts {
            self.records.insert(fresh, Record { usage, window, newest: 0.0 });
        }
        starts
    }

    /// What `segment` is used, aged.
    pub fn of(&self, segment: SegmentId) -> Usage {
        self.records.get(&segment).map(|record| record.at(self.window)).unwrap_or_default()
    }

    /// Accesses of `segment`, to be kept beside what else is known of it.
    pub fn heat(&self, segment: SegmentId) -> Heat {
        Heat { accesses: self.of(segment).accesses, window: self.window }
    }

    /// Accesses of `segment` as a plan counts them: aged, and rounded to a whole number.
    pub fn count(&self, segment: SegmentId) -> u64 {
        self.of(segment).accesses.round() as u64
    }

    /// Forgets a segment, as when its object was deleted or overwritten.
    pub fn forget(&mut self, segment: SegmentId) {
        self.records.remove(&segment);
    }

    /// All segments that are remembered, by id.
    pub fn segments(&self) -> Vec<(SegmentId, Usage)> {
        let mut all: Vec<_> = self.records.iter().map(|(segment, record)| (*segment, record.at(self.window))).collect();
        all.sort_unstable_by_key(|(segment, _)| *segment);
        all
    }

    /// How many segments are remembered.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether no segment is remembered.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn keep_most_popular(&mut self, most: usize) {
        if self.records.len() > most {
            let mut all = self.segments();
            all.sort_by(|one, other| other.1.accesses.total_cmp(&one.1.accesses));
            for (segment, _) in &all[most..] {
                self.records.remove(segment);
            }
        }
    }
}

/// Numbers the counting windows: all who know the period and the time agree, over restarts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    period_ms: u64,
}

impl Windows {
    /// Windows of `period_ms` milliseconds, at least 1, counted from the start of 1970.
    pub fn new(period_ms: u64) -> Self {
        Self { period_ms: period_ms.max(1) }
    }

    /// The window that `time_ms` is in.
    pub fn of(self, time_ms: u64) -> u64 {
        time_ms / self.period_ms
    }
}
