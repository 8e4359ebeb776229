//! A plan in units.

use std::collections::BTreeMap;
use std::ops::Range;

use forebay_types::{PAGE_BYTES, SEGMENT_BYTES};

/// Bytes of a unit at most: large enough for full throughput of one request, small enough that demand which comes
/// between two units waits little.
pub const UNIT_BYTES_MAX: u64 = 4 << 20;

/// A range of bytes that a plan is about to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlannedRange {
    /// Which object version: the caller's own index of it.
    pub version_ix: usize,
    /// First byte of the object.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// One unit of a plan, within a segment.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) version_ix: usize,
    pub(super) span: Range<u64>,
    /// Neither handed out nor read.
    pub(super) pending: Spans,
    /// Handed out and not read.
    pub(super) outstanding: Spans,
    /// The place that handed it out.
    pub(super) place: usize,
}

impl Unit {
    pub(super) fn unread_bytes(&self) -> u64 {
        self.pending.bytes() + self.outstanding.bytes()
    }
}

/// The units of a plan, in plan order, and where they are in their versions.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) units: Vec<Unit>,
    /// (version, first byte) -> index of the unit. Units never overlap.
    by_offset: BTreeMap<(usize, u64), usize>,
    pub(super) pending_bytes: u64,
}

impl Plan {
    pub(super) fn cut(ranges: Vec<PlannedRange>) -> Self {
        let mut plan = Self { units: Vec::with_capacity(ranges.len()), by_offset: BTreeMap::new(), pending_bytes: 0 };
        for PlannedRange { version_ix, start, len } in ranges {
            let mut at = start;
            let end = start.saturating_add(len);
            // What is planned already splits the range; what is between becomes units.
            for unit_ix in plan.overlapping(version_ix, &(start..end)) {
                let planned = plan.units[unit_ix].span.clone();
                plan.push_units(version_ix, at..planned.start);
                at = planned.end;
            }
            plan.push_units(version_ix, at..end);
        }
        assert_eq!(plan.by_offset.len(), plan.units.len(), "no two units begin at a byte");
        debug_assert_eq!(plan.pending_bytes, plan.units.iter().map(Unit::unread_bytes).sum::<u64>(), "nothing is read yet");
        plan
    }

    fn push_units(&mut self, version_ix: usize, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            // Cuts stand at borders of pages, so that no page belongs to two units of one range.
            let page_border = (at + UNIT_BYTES_MAX) / PAGE_BYTES * PAGE_BYTES;
            let segment_border = (at / SEGMENT_BYTES + 1) * SEGMENT_BYTES;
            let span = at..range.end.min(page_border).min(segment_border);
            at = span.end;
            self.by_offset.insert((version_ix, span.start), self.units.len());
            self.pending_bytes += span.end - span.start;
            let pending = Spans::of(span.clone());
            self.units.push(Unit { version_ix, span, pending, outstanding: Spans::default(), place: 0 });
        }
    }

    /// The units that share bytes with `range`, in order of bytes.
    pub(super) fn overlapping(&self, version_ix: usize, range: &Range<u64>) -> Vec<usize> {
        if range.start >= range.end {
            return Vec::new();
        }
        let before_end = self.by_offset.range((version_ix, 0)..(version_ix, range.end)).rev();
        let mut units: Vec<usize> =
            before_end.map(|(_, unit_ix)| *unit_ix).take_while(|unit_ix| self.units[*unit_ix].span.end > range.start).collect();
        units.reverse();
        units
    }

    /// The units of the same version before this one, nearest first, in order of bytes.
    pub(super) fn before(&self, unit_ix: usize) -> impl Iterator<Item = usize> {
        let unit = &self.units[unit_ix];
        self.by_offset.range((unit.version_ix, 0)..(unit.version_ix, unit.span.start)).rev().map(|(_, unit_ix)| *unit_ix)
    }
}

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
