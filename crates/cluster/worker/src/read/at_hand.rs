//! Reads that are answered where they are received.

use bytes::Bytes;
use forebay_protocol::{AccessWay, AtHand, Handed};
use forebay_types::{PageRun, SEGMENT_BYTES, SegmentId};

use super::Reads;
use crate::signals::{Made, ServedFrom};

impl Reads {
    /// An object of which all that is wanted is here: a version that stands under the mount's rule, what the store says of it,
    /// and pages of one segment in the DRAM tier. None for everything else, which is then asked as usual.
    pub(crate) fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        let began = forebay_runtime::now();
        let door = self.origin.mounts.find(wanted.mount)?;
        if !self.cluster.hearing.holds_at(began) {
            return None;
        }
        let (info, attributes) = self.catalogue.at_hand(&door, &wanted.key, wanted.complete)?;
        let Some(range) = wanted.range else { return Some(Handed { info, attributes, range: 0..0, bytes: Bytes::new() }) };
        let range = range.within(info.version.size).ok().filter(|range| !range.is_empty())?;
        let index = u32::try_from(range.start / SEGMENT_BYTES).ok()?;
        let start = u64::from(index) * SEGMENT_BYTES;
        if range.end - range.start > wanted.bytes_max.into() || range.end > start + SEGMENT_BYTES {
            return None;
        }
        // The caller's bytes are pinned as long as it sends them, which counts as any reading in place.
        if !self.in_place.on || self.in_place.is_full() {
            return None;
        }
        let segment = SegmentId::of(&info.version, index);
        let within = range.start - start..range.end - start;
        let run = PageRun::covering(within.clone())?;
        let pinned = self.origin.store.pin(segment, run)?;
        self.origin.claims.read(wanted.operation, segment, run);
        let skip = (within.start - run.bytes().start) as usize;
        let len = range.end - range.start;
        let bytes = pinned.into_bytes().slice(skip..skip + len as usize);
        let took = began.elapsed();
        self.signals.meters.read(Some(&*door.reads), 1, len, len);
        self.signals.meters.took(Some(&*door.reads), ServedFrom::Dram, took);
        self.signals.popularity.learn(segment, &info.version, index);
        self.signals.popularity.read(wanted.operation, segment, 1, len, took);
        self.signals.accessed.made(&Made {
            operation: Some(wanted.operation),
            object: (wanted.mount, &info.version.key),
            start: range.start,
            bytes: len,
            times: 1,
            way: AccessWay::AtHand,
        });
        Some(Handed { info, attributes, range, bytes })
    }
}
