//! What of a unit was read.

use std::ops::Range;

/// Disjoint byte ranges of one unit in ascending order. Nearly always none or one.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans(Vec<Range<u64>>);

impl Spans {
    pub(super) fn of(span: Range<u64>) -> Self {
        Self(vec![span])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|span| span.end - span.start).sum()
    }

    pub(super) fn take_first(&mut self) -> Option<Range<u64>> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Adds a span that overlaps none of those here.
    pub(super) fn insert(&mut self, span: Range<u64>) {
        let at = self.0.partition_point(|other| other.start < span.start);
        self.0.insert(at, span);
        debug_assert!(self.0.windows(2).all(|two| two[0].end <= two[1].start), "no two spans overlap");
    }

    /// Takes out all of `range`; returns how many bytes of it were here.
    pub(super) fn remove(&mut self, range: &Range<u64>) -> u64 {
        let before = self.bytes();
        if before == 0 {
            return 0;
        }
        self.0 = self
            .0
            .iter()
            .flat_map(|span| [span.start..span.end.min(range.start), span.start.max(range.end)..span.end])
            .filter(|span| span.start < span.end)
            .collect();
        before - self.bytes()
    }

    /// Takes out all; returns how many bytes were here.
    pub(super) fn clear(&mut self) -> u64 {
        let bytes = self.bytes();
        self.0.clear();
        bytes
    }
}
