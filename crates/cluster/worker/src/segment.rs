//! A segment with the version that it is of.

use std::ops::Range;

use forebay_protocol::RangeSpec;
use forebay_types::{
    Error, ObjectVersion, PAGE_BYTES, PageRun, Result, RouteKey, SEGMENT_BYTES, SegmentId, check_object_bytes, segment_bytes,
};

/// Which segment an id is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentName {
    pub(crate) version: ObjectVersion,
    pub(crate) index: u32,
}

impl SegmentName {
    /// Where it is routed.
    pub(crate) fn route(&self) -> RouteKey {
        RouteKey::of(self.version.mount, &self.version.key, self.index)
    }
}

/// A segment with the version that it is of: what is fetched, and under which condition.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) version: ObjectVersion,
    pub(crate) id: SegmentId,
    /// Its first byte, counted from the object's start.
    pub(crate) start: u64,
    /// Its length; the last page may be shorter than a page.
    pub(crate) bytes: u32,
}

impl Segment {
    /// The segment that holds byte `at` of the object. `Invalid` past the object's end.
    pub(crate) fn holding(version: &ObjectVersion, at: u64) -> Result<Self> {
        if at >= version.size {
            return Err(Error::invalid(format!("{}: byte {at} is past its end, it has {} bytes", version.key, version.size)));
        }
        check_object_bytes(version.size).map_err(|error| error.context(&version.key))?;
        let index = (at / SEGMENT_BYTES) as u32;
        let segment = Self {
            version: version.clone(),
            id: SegmentId::of(version, index),
            start: u64::from(index) * SEGMENT_BYTES,
            bytes: segment_bytes(version.size, index) as u32,
        };
        assert!((segment.start..segment.end()).contains(&at), "segment {index} holds byte {at}");
        Ok(segment)
    }

    /// One past its last byte, counted from the object's start.
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }

    /// One past its last page.
    pub(crate) fn pages(&self) -> u32 {
        self.bytes.div_ceil(PAGE_BYTES as u32)
    }

    /// The bytes of the segment that `run` really has: the last page ends with the segment.
    pub(crate) fn bytes_of(&self, run: PageRun) -> Range<u64> {
        let bytes = run.bytes();
        debug_assert!(bytes.start < u64::from(self.bytes), "a run begins within its segment");
        bytes.start..bytes.end.min(u64::from(self.bytes))
    }

    /// The same, counted from the object's start.
    pub(crate) fn object_bytes_of(&self, run: PageRun) -> Range<u64> {
        let bytes = self.bytes_of(run);
        self.start + bytes.start..self.start + bytes.end
    }

    /// Those pages of the segment that lie wholly within `range` of the object; the last page counts as whole when the
    /// range reaches the segment's end.
    pub(crate) fn pages_within(&self, range: Range<u64>) -> Option<PageRun> {
        let start = range.start.checked_sub(self.start)?.div_ceil(PAGE_BYTES) as u32;
        let end = match range.end {
            end if end >= self.end() => self.pages(),
            end => (end.checked_sub(self.start)? / PAGE_BYTES) as u32,
        };
        (start < end).then(|| PageRun::new(start, end))
    }
}

/// The bytes of an object of `size` that are meant, up to the end of the segment that they start in. `Invalid` when the
/// object ends before them.
pub(crate) fn first_part(range: RangeSpec, size: u64) -> Result<Range<u64>> {
    let Range { start, end } = range.within(size)?;
    Ok(start..end.min((start / SEGMENT_BYTES + 1) * SEGMENT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::{Key, MountId, VersionTag};

    fn version(size: u64) -> ObjectVersion {
        ObjectVersion { mount: MountId(1), key: Key::new("k").unwrap(), tag: VersionTag::etag("\"t\""), size }
    }

    #[test]
    fn whole_pages_of_a_range() {
        let segment = Segment::holding(&version(10_000), 0).unwrap();
        assert_eq!(segment.pages_within(0..10_000), Some(PageRun::new(0, 3)));
        assert_eq!(segment.pages_within(1..10_000), Some(PageRun::new(1, 3)));
        assert_eq!(segment.pages_within(0..9_999), Some(PageRun::new(0, 2)));
        assert_eq!(segment.pages_within(4097..8191), None);
        assert_eq!(segment.bytes_of(PageRun::new(2, 3)), 8192..10_000);
    }

    #[test]
    fn second_segment() {
        let segment = Segment::holding(&version(SEGMENT_BYTES + 5000), SEGMENT_BYTES + 1).unwrap();
        assert_eq!((segment.start, segment.bytes, segment.pages()), (SEGMENT_BYTES, 5000, 2));
        assert_eq!(segment.pages_within(SEGMENT_BYTES - 4096..SEGMENT_BYTES + 5000), None, "starts in the segment before");
        assert_eq!(segment.object_bytes_of(PageRun::new(1, 2)), SEGMENT_BYTES + 4096..SEGMENT_BYTES + 5000);
        assert!(Segment::holding(&version(5000), 5000).is_err());
        assert!(Segment::holding(&version(300 << 50), 1).is_err(), "300 PiB");
    }

    #[test]
    fn the_first_part_ends_with_the_object_or_the_segment() {
        assert_eq!(first_part(RangeSpec::From { start: 0 }, SEGMENT_BYTES + 1).unwrap(), 0..SEGMENT_BYTES);
        assert_eq!(first_part(RangeSpec::Bounded { start: 10, len: u64::MAX }, 30).unwrap(), 10..30);
        assert!(first_part(RangeSpec::Bounded { start: 31, len: 5 }, 30).is_err());
    }
}
