//! Pins that are kept for the next read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use forebay_runtime::time::interval;
use forebay_types::SegmentId;
use lru::LruCache;
use parking_lot::Mutex;

use super::Pin;

/// Pins kept after their read, so that the next read of the same bytes needs no call. Bounded in number and in bytes,
/// least recently used segments first, and given back when idle.
pub(crate) struct PinCache {
    kept: Mutex<Kept>,
    pins_max: usize,
    idle: Duration,
}

struct Kept {
    segments: LruCache<SegmentId, Entry>,
    pins: usize,
    shed_at: Option<Instant>,
}

struct Entry {
    /// By start, and so by end too: none lies within another.
    pins: Vec<Arc<Pin>>,
    used: Instant,
}

impl Entry {
    /// Puts a pin in its place, unless one lies around it; what lies within it goes, into `gone`. Whether it is kept.
    fn insert(&mut self, pin: &Arc<Pin>, gone: &mut Vec<Arc<Pin>>) -> bool {
        let range = &pin.range;
        // The last one that starts early enough reaches furthest.
        while let Some(last) = self.pins.partition_point(|old| old.range.start <= range.start).checked_sub(1)
            && self.pins[last].range.end >= range.end
        {
            if self.pins[last].session.stands() && self.pins[last].range != *range {
                return false;
            }
            gone.push(self.pins.remove(last));
        }
        let first = self.pins.partition_point(|old| old.range.start < range.start);
        let within = self.pins[first..].partition_point(|old| old.range.end <= range.end);
        gone.extend(self.pins.splice(first..first + within, [Arc::clone(pin)]));
        let follows = |a: &Arc<Pin>, b: &Arc<Pin>| a.range.start < b.range.start && a.range.end < b.range.end;
        debug_assert!(self.pins.is_sorted_by(follows), "kept pins of a segment lie within each other");
        true
    }

    /// Takes the pins out that don't pass, into `gone`.
    fn retain(&mut self, gone: &mut Vec<Arc<Pin>>, keep: impl Fn(&Pin) -> bool) {
        gone.extend(self.pins.extract_if(.., |pin| !keep(pin)));
    }
}

impl Kept {
    fn gone(&mut self, pins: &[Arc<Pin>]) {
        assert!(self.pins >= pins.len(), "{} pins go of {} that are kept", pins.len(), self.pins);
        self.pins -= pins.len();
        for pin in pins {
            let kept = pin.session.kept.fetch_sub(pin.len(), Ordering::Relaxed);
            debug_assert!(kept >= pin.len(), "a pin of {} bytes goes of {kept} that are kept", pin.len());
        }
        assert!(self.pins == 0 || !self.segments.is_empty(), "{} pins are of no segment", self.pins);
    }

    fn pop(&mut self, gone: &mut Vec<Arc<Pin>>) -> bool {
        let Some((_, entry)) = self.segments.pop_lru() else { return false };
        self.gone(&entry.pins);
        gone.extend(entry.pins);
        true
    }
}

/// Workers that answer with copies have too many pins: the oldest of ours are given back, at most this often.
const SHED_PAUSE: Duration = Duration::from_millis(100);

impl PinCache {
    pub(crate) fn new(pins_max: usize, idle: Duration) -> Self {
        let kept = Kept { segments: LruCache::unbounded(), pins: 0, shed_at: None };
        Self { kept: Mutex::new(kept), pins_max, idle }
    }

    /// The pin that covers `range` of a segment, if one is kept and its connection stands.
    pub(crate) fn find(&self, segment: SegmentId, range: &Range<u32>) -> Option<Arc<Pin>> {
        let mut kept = self.kept.lock();
        let entry = kept.segments.get_mut(&segment)?;
        // The last one that starts early enough reaches furthest.
        let after = entry.pins.partition_point(|pin| pin.range.start <= range.start);
        let pin = entry.pins[..after].last().filter(|pin| pin.range.end >= range.end && pin.session.stands())?;
        let pin = Arc::clone(pin);
        entry.used = forebay_runtime::now();
        Some(pin)
    }

    /// Keeps a pin; what lies within it and what is too much goes.
    pub(crate) fn keep(&self, pin: &Arc<Pin>) {
        // Pins are dropped after the lock: each drop tells its worker.
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        let now = forebay_runtime::now();
        let entry = kept.segments.get_or_insert_mut(pin.segment, || Entry { pins: Vec::new(), used: now });
        entry.used = now;
        if entry.insert(pin, &mut gone) {
            kept.pins += 1;
            pin.session.kept.fetch_add(pin.len(), Ordering::Relaxed);
        }
        kept.gone(&gone);
        while (kept.pins > self.pins_max || pin.session.keeps_too_much()) && kept.pop(&mut gone) {}
        assert!(kept.pins <= self.pins_max, "{} pins are kept, {} are the most", kept.pins, self.pins_max);
        drop(kept);
    }

    /// Gives the older quarter back, since a worker has run out of room for pins.
    pub(crate) fn shed(&self) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        if kept.shed_at.is_some_and(|at| at.elapsed() < SHED_PAUSE) {
            return;
        }
        kept.shed_at = Some(forebay_runtime::now());
        for _ in 0..kept.segments.len().div_ceil(4) {
            kept.pop(&mut gone);
        }
        drop(kept);
    }

    /// Gives back what nobody has read for a while.
    pub(crate) fn release_idle(&self) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        while kept.segments.peek_lru().is_some_and(|(_, entry)| entry.used.elapsed() >= self.idle) {
            kept.pop(&mut gone);
        }
        drop(kept);
    }

    /// Gives all pins back.
    pub(crate) fn clear(&self) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        while kept.pop(&mut gone) {}
        assert_eq!(kept.pins, 0, "all pins are given back");
        drop(kept);
    }

    /// Lets go of pins whose connection closed.
    pub(crate) fn drop_closed(&self) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        let mut empty = Vec::new();
        for (segment, entry) in kept.segments.iter_mut() {
            entry.retain(&mut gone, |pin| pin.session.stands());
            if entry.pins.is_empty() {
                empty.push(*segment);
            }
        }
        for segment in &empty {
            kept.segments.pop(segment);
        }
        kept.gone(&gone);
        debug_assert_eq!(kept.pins, kept.segments.iter().map(|(_, entry)| entry.pins.len()).sum::<usize>(), "pins are counted");
        drop(kept);
    }

    /// Releases idle pins until its owner drops it.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tick = interval((self.idle / 4).max(Duration::from_millis(10)));
        loop {
            tick.tick().await;
            self.release_idle();
        }
    }
}

#[cfg(test)]
mod planted {
    use super::*;

    #[test]
    #[should_panic(expected = "1 pins are of no segment")]
    fn a_pin_is_counted_that_is_not_kept() {
        Kept { segments: LruCache::unbounded(), pins: 1, shed_at: None }.gone(&[]);
    }

    #[test]
    #[should_panic(expected = "all pins are given back")]
    fn pins_are_left_when_all_are_given_back() {
        let cache = PinCache::new(0, Duration::ZERO);
        cache.kept.lock().pins = 1;
        cache.clear();
    }
}
