//! Where ranges of objects lie in their segments.

use std::ops::Range;

use forebay_protocol::RangeSpec;
use forebay_types::SEGMENT_BYTES;

/// The first byte that is wanted; of a suffix the object's first, since its own depends on the object's size.
pub(super) fn start_of(range: RangeSpec) -> u64 {
    match range {
        RangeSpec::Bounded { start, .. } | RangeSpec::From { start } => start,
        RangeSpec::Suffix { .. } => 0,
    }
}

/// A range of an object that lies within one segment, as one of that segment.
pub(super) fn in_segment(range: &Range<u64>) -> Range<u32> {
    let start = (range.start % SEGMENT_BYTES) as u32;
    let len = range.end - range.start;
    assert!(u64::from(start) + len <= SEGMENT_BYTES, "{range:?} does not lie within one segment");
    start..start + len as u32
}
