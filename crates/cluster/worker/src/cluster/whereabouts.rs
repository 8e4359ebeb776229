//! Who else has pages of a segment, as far as those who asked here have told.

use std::time::{Duration, Instant};

use forebay_types::{SegmentId, WorkerId};
use lru::LruCache;
use parking_lot::Mutex;

use crate::bounded::bounded;

/// Segments that are remembered at most; those that were asked for longest ago are forgotten first.
const SEGMENTS_MAX: usize = 65_536;
/// Workers that are remembered of one: tasks are brought what they read where they run, so that parts of a segment are on several.
const PLACES_MAX: usize = 4;
/// So long it stands that nobody had anything of a segment, unless somebody asks for it meanwhile.
const NOBODY_FOR: Duration = Duration::from_secs(1);

/// Who were the last to miss pages of a segment, and so have them by now: a worker that reads are not routed to asks their home before
/// it fetches, and that one knows from then on where they are. A word that is wrong costs one question.
pub(crate) struct Whereabouts(Mutex<LruCache<SegmentId, Seen>>);

enum Seen {
    /// The last one first; at least one.
    At(Vec<WorkerId>),
    /// All that could be asked had nothing, at that time.
    Nowhere(Instant),
}

impl Default for Whereabouts {
    fn default() -> Self {
        Self(Mutex::new(bounded(SEGMENTS_MAX)))
    }
}

impl Whereabouts {
    /// A worker has pages of it, or soon will.
    pub(crate) fn note(&self, segment: SegmentId, worker: WorkerId) {
        let mut seen = self.0.lock();
        let mut places = if let Some(Seen::At(places)) = seen.pop(&segment) { places } else { Vec::with_capacity(1) };
        places.retain(|place| *place != worker);
        places.insert(0, worker);
        places.truncate(PLACES_MAX);
        seen.put(segment, Seen::At(places));
    }

    /// Who has pages of it, the last who asked first.
    pub(crate) fn of(&self, segment: SegmentId) -> Vec<WorkerId> {
        match self.0.lock().get(&segment) {
            Some(Seen::At(places)) => places.clone(),
            _ => Vec::new(),
        }
    }

    /// A worker has nothing of it any more.
    pub(crate) fn forget(&self, segment: SegmentId, worker: WorkerId) {
        let mut seen = self.0.lock();
        let Some(Seen::At(places)) = seen.peek_mut(&segment) else { return };
        places.retain(|place| *place != worker);
        if places.is_empty() {
            seen.pop(&segment);
        }
    }

    /// Nobody that could be asked has anything of it, unless somebody was heard of meanwhile.
    pub(crate) fn nowhere(&self, segment: SegmentId) {
        let mut seen = self.0.lock();
        if !matches!(seen.peek(&segment), Some(Seen::At(_))) {
            seen.put(segment, Seen::Nowhere(forebay_runtime::now()));
        }
    }

    /// Whether that was found out a moment ago.
    pub(crate) fn is_nowhere(&self, segment: SegmentId) -> bool {
        matches!(self.0.lock().peek(&segment), Some(Seen::Nowhere(at)) if at.elapsed() < NOBODY_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_who_asked_is_known_and_what_nobody_had_is_not_asked_for_again_at_once() {
        let (whereabouts, segment) = (Whereabouts::default(), SegmentId(1));
        assert!(!whereabouts.is_nowhere(segment));
        whereabouts.nowhere(segment);
        assert!(whereabouts.is_nowhere(segment) && whereabouts.of(segment).is_empty());
        whereabouts.note(segment, WorkerId(7));
        whereabouts.nowhere(segment);
        assert!(!whereabouts.is_nowhere(segment), "somebody has asked for it since");
        whereabouts.forget(segment, WorkerId(8));
        assert_eq!(whereabouts.of(segment), [WorkerId(7)]);
        whereabouts.forget(segment, WorkerId(7));
        assert!(whereabouts.of(segment).is_empty());
        assert!(!whereabouts.is_nowhere(segment));
        for worker in [1, 2, 3, 2, 4, 5] {
            whereabouts.note(segment, WorkerId(worker));
        }
        assert_eq!(whereabouts.of(segment), [5, 4, 2, 3].map(WorkerId), "the last ones, each once");
        whereabouts.forget(segment, WorkerId(2));
        assert_eq!(whereabouts.of(segment), [5, 4, 3].map(WorkerId));
        for other in 0..2 * SEGMENTS_MAX as u128 {
            whereabouts.note(SegmentId(other), WorkerId(1));
        }
        assert_eq!(whereabouts.0.lock().len(), SEGMENTS_MAX);
    }
}
