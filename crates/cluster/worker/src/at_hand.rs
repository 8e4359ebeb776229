use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use forebay_protocol::{AtHand, Handed, RangeSpec};
use forebay_types::{PageRun, SEGMENT_BYTES, SegmentId};

use crate::serving::Serving;

impl Serving {
    /// An object of which all that is wanted is here: a version that stands under the mount's rule, what the store says of it,
    /// and pages of one segment in the DRAM tier. None for everything else, which is then asked as usual.
    pub(crate) fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        let began = Instant::now();
        let door = self.mounts.find(wanted.mount)?;
        if !self.hearing.holds_at(began) {
            return None;
        }
        let rule = door.mount.options.validate;
        let (info, attributes) = self.versions.at_hand(wanted.mount, &wanted.key, rule, wanted.complete)?;
        let Some(range) = wanted.range else {
            return Some(Handed { info, attributes, range: 0..0, bytes: Bytes::new() });
        };
        let range = first_part(range, info.version.size)?;
        let index = u32::try_from(range.start / SEGMENT_BYTES).ok()?;
        let start = u64::from(index) * SEGMENT_BYTES;
        if range.end - range.start > wanted.bytes_max.into() || range.end > start + SEGMENT_BYTES {
            return None;
        }
        // The caller's bytes are pinned as long as it sends them, which counts as any reading in place.
        if !self.in_place.is_on() || self.store.pinned_bytes() > self.store.pinned_bytes_max() {
            return None;
        }
        let segment = SegmentId::of(&info.version, index);
        let within = range.start - start..range.end - start;
        let run = PageRun::covering(within.clone())?;
        let pinned = self.store.pin(segment, run)?;
        let skip = (within.start - run.bytes().start) as usize;
        let len = range.end - range.start;
        let bytes = pinned.into_bytes().slice(skip..skip + len as usize);
        let took = began.elapsed();
        self.meters.read(1, len, len);
        self.meters.took(took);
        self.counts.learn(segment, &info.version, index);
        self.counts.read(wanted.operation, segment, 1, len, took);
        Some(Handed { info, attributes, range, bytes })
    }
}

/// The bytes that are meant, if there are any.
fn first_part(range: RangeSpec, size: u64) -> Option<Range<u64>> {
    let (start, end) = match range {
        RangeSpec::Bounded { start, len } => (start, start.saturating_add(len).min(size)),
        RangeSpec::From { start } => (start, size),
        RangeSpec::Suffix { len } => (size.saturating_sub(len), size),
    };
    (start < end).then_some(start..end)
}
