//! How often each segment is read: what placement goes by.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_placement::Reading;
use forebay_protocol::{ROOTS_MAX, SegmentUse, WindowReport};
use forebay_types::{Key, MountId, ObjectVersion, OperationId, SegmentId};
use lru::LruCache;
use parking_lot::Mutex;

use super::seen::Seen;
use crate::bounded::bounded;
use crate::segment::SegmentName;

/// Segments that a window counts at most. Beyond, those read least so far are left out (lossy counting: Manku and Motwani, 2002):
/// one that is read much is soon among the others again.
const COUNTED_MAX: usize = 256_000;
/// Segments whose names and popularity are remembered at most; those read longest ago are forgotten first.
const KNOWN_MAX: usize = 128_000;
/// One that was not read for so many windows, after which nothing is left of its popularity, and of which nothing is here, is forgotten before.
const FORGOTTEN_AFTER: u8 = 10;
/// Bytes of a report at most, about; the least read segments are left out beyond.
const REPORT_BYTES_MAX: usize = 8 << 20;
/// Bytes of an entry of a report beside its texts, about.
const USE_BYTES: usize = 64;
/// Operations whose reads are looked at for what belongs together; those that read last.
const READING_MAX: usize = 4_096;
/// Locks, so that readers seldom wait for each other.
const SHARDS: usize = 16;

/// Popularity reads by segment for the placement of replicas: an operation counts once a window (Getafix, section 3).
pub(crate) struct Popularity {
    shards: Arc<[Mutex<Shard>; SHARDS]>,
    /// What operations of this window read together.
    reading: Mutex<LruCache<OperationId, Together>>,
    began: Mutex<Instant>,
}

/// What one operation reads. Most read one object, which tells nothing and costs nothing.
enum Together {
    One(MountId, Key),
    Several(Reading),
}

impl Together {
    fn reads(&mut self, mount: MountId, key: &Key) {
        match self {
            Self::One(of, first) if *of == mount && first == key => {}
            Self::One(of, first) => {
                let mut reading = Reading::default();
                reading.reads(*of, first.as_str());
                reading.reads(mount, key.as_str());
                *self = Self::Several(reading);
            }
            Self::Several(reading) => reading.reads(mount, key.as_str()),
        }
    }

    fn several(&self) -> Option<&Reading> {
        match self {
            Self::One(..) => None,
            Self::Several(reading) => Some(reading),
        }
    }
}

/// A read of a segment that is under way, until this is dropped.
pub(crate) struct UnderWay {
    shards: Arc<[Mutex<Shard>; SHARDS]>,
    segment: SegmentId,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let under_way = &mut shard(&self.shards, self.segment).lock().under_way;
        debug_assert!(under_way.get(&self.segment).is_some_and(|(now, _)| *now > 0), "a read ends once");
        if let Some((now, _)) = under_way.get_mut(&self.segment) {
            *now -= 1;
            if *now == 0 {
                under_way.remove(&self.segment);
            }
        }
    }
}

struct Shard {
    seen: Seen,
    tallies: HashMap<SegmentId, Tally>,
    known: LruCache<SegmentId, Known>,
    /// Reads under way now, and the most that were since there were none.
    under_way: HashMap<SegmentId, (u32, u32)>,
    left_out: u64,
}

#[derive(Default)]
struct Tally {
    /// Counted where the count of pairs is not exact.
    operations: f64,
    reads: u64,
    bytes: u64,
    service: Duration,
    /// Most reads that were under way at once.
    peak: u32,
}

struct Known {
    name: SegmentName,
    /// Operations a window, aged: half of what a window counted is left after the next one.
    popularity: f64,
    /// Windows that have ended since it was read, or was seen to be here.
    unread: u8,
    /// Whether the worker has read it for itself not long ago, wherever clients are sent.
    own: bool,
}

impl Known {
    fn new(name: SegmentName) -> Self {
        Self { name, popularity: 0.0, unread: 0, own: false }
    }
}

impl Default for Shard {
    fn default() -> Self {
        let known = bounded(KNOWN_MAX / SHARDS);
        Self { seen: Seen::default(), tallies: HashMap::new(), known, under_way: HashMap::new(), left_out: 0 }
    }
}

impl Shard {
    /// Forgets what was not read for long and is not here; those are counted on that are.
    fn forget_unread(&mut self, held_bytes: impl Fn(SegmentId) -> u64) {
        let mut gone = Vec::new();
        for (segment, known) in self.known.iter_mut().filter(|(_, known)| known.unread >= FORGOTTEN_AFTER) {
            if held_bytes(*segment) > 0 { (known.unread, known.own) = (0, false) } else { gone.push(*segment) }
        }
        for segment in gone {
            self.known.pop(&segment);
        }
        debug_assert!(self.known.iter().all(|(_, known)| known.unread < FORGOTTEN_AFTER), "the rest was read, or is here");
    }

    /// Makes room by half of the segments.
    fn leave_least_out(&mut self) {
        let mut operations: Vec<f64> = self.tallies.values().map(|tally| tally.operations).collect();
        let middle = operations.len() / 2;
        let (_, least, _) = operations.select_nth_unstable_by(middle, f64::total_cmp);
        let (least, mut ties) = (*least, middle);
        // Of those read equally often only as many go as there must.
        ties -= self.tallies.values().filter(|tally| tally.operations < least).count();
        let left_out = self.tallies.extract_if(|_, tally| {
            let goes = tally.operations < least || (tally.operations == least && ties > 0);
            ties -= usize::from(goes && tally.operations == least);
            goes
        });
        let reads = left_out.map(|(_, tally)| tally.reads).fold(0, u64::saturating_add);
        assert_eq!(ties, 0, "as many segments go as are to make room");
        self.left_out = self.left_out.saturating_add(reads);
    }
}

impl Popularity {
    pub(crate) fn new() -> Self {
        let shards = Arc::new(std::array::from_fn(|_| Mutex::default()));
        let reading = bounded(READING_MAX);
        Self { shards, reading: Mutex::new(reading), began: Mutex::new(forebay_runtime::now()) }
    }

    /// Remembers which segment an id is of, so that it can be reported.
    pub(crate) fn learn(&self, segment: SegmentId, version: &ObjectVersion, index: u32) {
        let mut shard = self.shard(segment).lock();
        let known = shard.known.get_or_insert_mut(segment, || Known::new(SegmentName { version: version.clone(), index }));
        known.unread = 0;
    }

    /// The same of a segment that the worker reads for itself.
    pub(crate) fn learn_own(&self, segment: SegmentId, version: &ObjectVersion, index: u32) {
        self.learn(segment, version, index);
        let mut shard = self.shard(segment).lock();
        if let Some(known) = shard.known.peek_mut(&segment) {
            known.own = true;
        }
        debug_assert!(shard.known.len() <= KNOWN_MAX / SHARDS, "what is known is bounded");
    }

    /// Whether the worker reads it for itself: what is here of it is of use, whatever is planned.
    pub(crate) fn is_own(&self, segment: SegmentId) -> bool {
        self.shard(segment).lock().known.peek(&segment).is_some_and(|known| known.own)
    }

    /// A read of a segment begins.
    pub(crate) fn enter(&self, segment: SegmentId) -> UnderWay {
        let mut shard = self.shard(segment).lock();
        let (now, most) = shard.under_way.entry(segment).or_default();
        *now += 1;
        *most = (*most).max(*now);
        UnderWay { shards: Arc::clone(&self.shards), segment }
    }

    /// Popularity reads of one operation in one segment.
    pub(crate) fn read(&self, operation: OperationId, segment: SegmentId, reads: u64, bytes: u64, service: Duration) {
        let mut shard = self.shard(segment).lock();
        let shard = &mut *shard;
        if shard.tallies.len() >= COUNTED_MAX / SHARDS && !shard.tallies.contains_key(&segment) {
            shard.leave_least_out();
            assert!(shard.tallies.len() < COUNTED_MAX / SHARDS, "there is room for one segment more");
        }
        let tally = shard.tallies.entry(segment).or_default();
        let counted = shard.seen.count(operation, segment);
        tally.operations += counted;
        tally.peak = tally.peak.max(shard.under_way.get(&segment).map_or(1, |(_, most)| *most));
        // What clients say that they read is as large as they like.
        tally.reads = tally.reads.saturating_add(reads);
        tally.bytes = tally.bytes.saturating_add(bytes);
        tally.service += service;
        // Once an operation and segment is enough to know what is read together, and nobody waits for that.
        if counted > 0.0
            && let Some(Known { name, .. }) = shard.known.peek(&segment)
            && let Some(mut reading) = self.reading.try_lock()
        {
            let (mount, key) = (name.version.mount, &name.version.key);
            reading.get_or_insert_mut(operation, || Together::One(mount, key.clone())).reads(mount, key);
        }
    }

    /// Ends the period and begins the next one: what was read, and of `also` what wasn't. `held_bytes` says what of a
    /// segment is here.
    pub(crate) fn report(
        &self,
        window: u64,
        also: Vec<(SegmentId, SegmentName)>,
        held_bytes: impl Fn(SegmentId) -> u64,
    ) -> WindowReport {
        let lasted = std::mem::replace(&mut *self.began.lock(), forebay_runtime::now()).elapsed();
        let mut report = WindowReport { window, lasted, ..WindowReport::default() };
        let mut read = HashSet::new();
        let reading = std::mem::replace(&mut *self.reading.lock(), bounded(READING_MAX));
        let several = reading.iter().filter_map(|(_, together)| together.several());
        let roots = several.flat_map(Reading::roots);
        let roots: BTreeSet<(MountId, &str)> = roots.take(ROOTS_MAX * 16).collect();
        report.roots = roots.into_iter().take(ROOTS_MAX).map(|(mount, root)| (mount, root.to_string())).collect();
        for shard in self.shards.iter() {
            let mut shard = shard.lock();
            shard.seen.clear();
            report.reads_left_out = report.reads_left_out.saturating_add(std::mem::take(&mut shard.left_out));
            for (_, known) in shard.known.iter_mut() {
                known.popularity /= 2.0;
                known.unread = known.unread.saturating_add(1);
            }
            for (segment, tally) in std::mem::take(&mut shard.tallies) {
                let Some(known) = shard.known.get_mut(&segment) else {
                    report.reads_left_out = report.reads_left_out.saturating_add(tally.reads);
                    continue;
                };
                known.popularity += tally.operations;
                known.unread = 0;
                read.insert(segment);
                report.uses.push(entry(&known.name, tally, held_bytes(segment)));
            }
            shard.forget_unread(&held_bytes);
        }
        let unread = also.into_iter().filter(|(segment, _)| !read.contains(segment));
        report.uses.extend(unread.map(|(segment, name)| entry(&name, Tally::default(), held_bytes(segment))));
        cut(&mut report);
        report
    }

    /// Which segment an id is of, if that is known.
    pub(crate) fn name(&self, segment: SegmentId) -> Option<SegmentName> {
        self.shard(segment).lock().known.peek(&segment).map(|known| known.name.clone())
    }

    /// The same of the mount alone.
    pub(crate) fn mount(&self, segment: SegmentId) -> Option<MountId> {
        self.shard(segment).lock().known.peek(&segment).map(|known| known.name.version.mount)
    }

    /// Segments that are known here and of no use where no client is sent to them, with their popularity.
    pub(crate) fn known(&self) -> Vec<(SegmentId, SegmentName, f64)> {
        let mut all = Vec::new();
        for shard in self.shards.iter() {
            let shard = shard.lock();
            let known = shard.known.iter().filter(|(_, known)| !known.own);
            all.extend(known.map(|(segment, known)| (*segment, known.name.clone(), known.popularity)));
        }
        all
    }

    fn shard(&self, segment: SegmentId) -> &Mutex<Shard> {
        shard(&self.shards, segment)
    }
}

fn shard(shards: &[Mutex<Shard>; SHARDS], segment: SegmentId) -> &Mutex<Shard> {
    &shards[segment.0 as usize % SHARDS]
}

fn entry(name: &SegmentName, tally: Tally, held_bytes: u64) -> SegmentUse {
    SegmentUse {
        version: name.version.clone(),
        index: name.index,
        // Who read it is not nobody, however its operations were taken.
        operations: (tally.operations.round() as u32).max(u32::from(tally.reads > 0)),
        reads: tally.reads,
        bytes: tally.bytes,
        service: tally.service,
        peak: tally.peak,
        held_bytes,
    }
}

/// Leaves out what is too much for a message, the least read first.
fn cut(report: &mut WindowReport) {
    report.uses.sort_by_key(|entry| std::cmp::Reverse(entry.operations));
    let mut bytes = 0;
    let fits = report.uses.iter().position(|entry| {
        bytes += USE_BYTES + entry.version.key.as_str().len() + entry.version.tag.as_str().len();
        bytes > REPORT_BYTES_MAX
    });
    if let Some(fits) = fits {
        report.reads_left_out += report.uses.drain(fits..).map(|entry| entry.reads).sum::<u64>();
    }
}

#[cfg(test)]
mod tests;
