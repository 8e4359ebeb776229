//! Who else has pages of a segment, as far as those who asked here have told.

use std::time::{Duration, Instant};

use forebay_types::{PAGES_PER_BLOCK, PageRun, SegmentId, WorkerId};
use lru::LruCache;
use parking_lot::Mutex;

use crate::bounded::bounded;

/// Segments that are remembered at most; those that were asked for longest ago are forgotten first.
const SEGMENTS_MAX: usize = 65_536;
/// Workers that are remembered of one: tasks are brought what they read where they run, so that parts of a segment are on several.
const PLACES_MAX: usize = 4;
/// Segments of which it is remembered that nobody has any.
const NOWHERE_MAX: usize = 4_096;
/// So long it stands that nobody had anything of a segment, unless somebody asks for it meanwhile.
const NOBODY_FOR: Duration = Duration::from_secs(1);

/// Who were the last to miss pages of a segment, and so have them by now: a worker that reads are not routed to asks their home before
/// it fetches, and that one knows from then on where they are: those who have missed pages of the same blocks are named before others. A word that
/// is wrong costs one question.
pub(crate) struct Whereabouts(Mutex<Seen>);

struct Seen {
    /// The last one first; at least one.
    at: LruCache<SegmentId, Vec<Place>>,
    /// All that could be asked had nothing, at that time. None of these is in `at`.
    nowhere: LruCache<SegmentId, Instant>,
}

/// A worker, and the blocks of which it has missed pages, or given some.
struct Place {
    worker: WorkerId,
    /// A bit each, of which a segment has no more.
    blocks: u64,
}

impl Default for Whereabouts {
    fn default() -> Self {
        Self(Mutex::new(Seen { at: bounded(SEGMENTS_MAX), nowhere: bounded(NOWHERE_MAX) }))
    }
}

impl Whereabouts {
    /// A worker has some of these pages, or soon will.
    pub(crate) fn note(&self, segment: SegmentId, pages: PageRun, worker: WorkerId) {
        let mut seen = self.0.lock();
        seen.nowhere.pop(&segment);
        let mut places = seen.at.pop(&segment).unwrap_or_else(|| Vec::with_capacity(1));
        let known = places.iter().position(|place| place.worker == worker).map_or(0, |at| places.remove(at).blocks);
        places.insert(0, Place { worker, blocks: known | blocks_of(pages) });
        places.truncate(PLACES_MAX);
        debug_assert!(places.iter().skip(1).all(|place| place.worker != worker), "{worker} is named once");
        seen.at.put(segment, places);
    }

    /// Who has pages of it, the last who asked first.
    pub(crate) fn of(&self, segment: SegmentId) -> Vec<WorkerId> {
        self.those(segment, |_| true)
    }

    /// The same of those who have pages of the blocks that these lie in.
    pub(crate) fn near(&self, segment: SegmentId, pages: PageRun) -> Vec<WorkerId> {
        self.those(segment, |place| place.blocks & blocks_of(pages) != 0)
    }

    /// A worker has some of it, and none of these pages: it is not named for them again before it says so.
    pub(crate) fn has_none(&self, segment: SegmentId, pages: PageRun, worker: WorkerId) {
        let mut seen = self.0.lock();
        let Some(places) = seen.at.peek_mut(&segment) else { return };
        places.iter_mut().filter(|place| place.worker == worker).for_each(|place| place.blocks &= !blocks_of(pages));
    }

    fn those(&self, segment: SegmentId, are: impl Fn(&Place) -> bool) -> Vec<WorkerId> {
        let mut seen = self.0.lock();
        let places = seen.at.get(&segment).into_iter().flatten();
        places.filter(|place| are(place)).map(|place| place.worker).collect()
    }

    /// Nobody asks for it any more.
    pub(crate) fn forget_segment(&self, segment: SegmentId) {
        self.0.lock().at.pop(&segment);
    }

    /// A worker has nothing of it any more.
    pub(crate) fn forget(&self, segment: SegmentId, worker: WorkerId) {
        let mut seen = self.0.lock();
        let Some(places) = seen.at.peek_mut(&segment) else { return };
        places.retain(|place| place.worker != worker);
        if places.is_empty() {
            seen.at.pop(&segment);
        }
    }

    /// Nobody that could be asked has anything of it, unless somebody was heard of meanwhile.
    pub(crate) fn nowhere(&self, segment: SegmentId) {
        let mut seen = self.0.lock();
        if !seen.at.contains(&segment) {
            seen.nowhere.put(segment, forebay_runtime::now());
        }
    }

    /// Whether that was found out a moment ago.
    pub(crate) fn is_nowhere(&self, segment: SegmentId) -> bool {
        self.0.lock().nowhere.peek(&segment).is_some_and(|since| since.elapsed() < NOBODY_FOR)
    }
}

/// The blocks that pages lie in, a bit each.
fn blocks_of(pages: PageRun) -> u64 {
    let (first, last) = (pages.start / PAGES_PER_BLOCK, (pages.end() - 1) / PAGES_PER_BLOCK);
    assert!(last < u64::BITS, "a segment has no block {last}");
    u64::MAX << first & u64::MAX >> (u64::BITS - 1 - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: PageRun = PageRun { start: 300, len: 1 };

    #[test]
    fn the_last_who_asked_is_known_and_what_nobody_had_is_not_asked_for_again_at_once() {
        let (whereabouts, segment) = (Whereabouts::default(), SegmentId(1));
        assert!(!whereabouts.is_nowhere(segment));
        whereabouts.nowhere(segment);
        assert!(whereabouts.is_nowhere(segment) && whereabouts.of(segment).is_empty());
        whereabouts.note(segment, PAGES, WorkerId(7));
        whereabouts.nowhere(segment);
        assert!(!whereabouts.is_nowhere(segment), "somebody has asked for it since");
        whereabouts.forget(segment, WorkerId(8));
        assert_eq!(whereabouts.of(segment), [WorkerId(7)]);
        whereabouts.forget(segment, WorkerId(7));
        assert!(whereabouts.of(segment).is_empty());
        assert!(!whereabouts.is_nowhere(segment));
        for worker in [1, 2, 3, 2, 4, 5] {
            whereabouts.note(segment, PAGES, WorkerId(worker));
        }
        assert_eq!(whereabouts.of(segment), [5, 4, 2, 3].map(WorkerId), "the last ones, each once");
        whereabouts.forget(segment, WorkerId(2));
        assert_eq!(whereabouts.of(segment), [5, 4, 3].map(WorkerId));
        whereabouts.forget_segment(segment);
        assert!(whereabouts.of(segment).is_empty());
        for other in 0..2 * SEGMENTS_MAX as u128 {
            whereabouts.note(SegmentId(other), PAGES, WorkerId(1));
        }
        assert_eq!(whereabouts.0.lock().at.len(), SEGMENTS_MAX);
        for other in 0..2 * SEGMENTS_MAX as u128 {
            whereabouts.nowhere(SegmentId(other));
        }
        let seen = whereabouts.0.lock();
        assert_eq!((seen.at.len(), seen.nowhere.len()), (SEGMENTS_MAX, NOWHERE_MAX), "what stands for a second takes little");
    }

    #[test]
    fn who_had_pages_of_the_same_block_was_not_named_behind_one_that_asked_later_for_others() {
        let (whereabouts, segment, run) = (Whereabouts::default(), SegmentId(1), PageRun::new);
        whereabouts.note(segment, run(0, 600), WorkerId(1));
        whereabouts.note(segment, run(512, 1024), WorkerId(2));
        whereabouts.note(segment, run(16_383, 16_384), WorkerId(3));
        let near = |start, end| whereabouts.near(segment, run(start, end));
        assert_eq!(near(0, 1), [WorkerId(1)]);
        assert_eq!(near(767, 1025), [2, 1].map(WorkerId), "of the block that a page of it lies in, too");
        assert!(near(1024, 16_128).is_empty());
        assert_eq!(near(0, 16_384), [3, 2, 1].map(WorkerId));
        whereabouts.note(segment, run(1024, 1025), WorkerId(1));
        assert_eq!(near(256, 2_000), [1, 2].map(WorkerId), "what it had before is not forgotten");
        whereabouts.has_none(segment, run(300, 600), WorkerId(1));
        assert_eq!(near(256, 768), [WorkerId(2)], "it has given these blocks up");
        assert_eq!((near(0, 1), near(1_024, 1_025)), (vec![WorkerId(1)], vec![WorkerId(1)]), "and has others");
        assert_eq!(whereabouts.of(segment), [1, 3, 2].map(WorkerId));
    }
}
